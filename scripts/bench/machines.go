package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/host/image"
	"tare/host/rootfs"
	"tare/host/state"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/all"
	"tare/sandbox/vm/boot"
)

// Studies of virtual machines, small ones: the first samples one that does nothing, the
// second has sixteen at a time.
var (
	//go:embed studies/agent.yaml
	agentStudy string
	//go:embed studies/sixteen.yaml
	sixteenStudy string
)

// agent is the CPU that sampling a virtual machine takes: the agent's in the guest, by
// the guest's account, and that of telling the roles of its threads on the host.
func (b *bench) agent(ctx context.Context) ([]row, error) {
	trials, _, err := b.small(ctx, "agent", agentStudy, nil)
	if err != nil {
		return nil, err
	}
	inside, roles, asking := []float64(nil), []float64(nil), []float64(nil)
	for i := range trials {
		for _, s := range trials[i].Samples {
			switch {
			case s.Name == record.AgentCPU+record.RateSuffix:
				inside = append(inside, s.Value)
			case s.Name == "collector_cpu_rate" && s.Labels.Get("collector") == "proc":
				roles = append(roles, s.Value)
			case s.Name == "collector_cpu_rate" && s.Labels.Get("collector") == "guest":
				asking = append(asking, s.Value)
			}
		}
	}
	if len(inside) == 0 || len(roles) == 0 {
		return nil, errors.New("no trial has the figures")
	}
	accel := accelerated(trials)
	const figure = "CPU of sampling a virtual machine at 10 Hz: "
	rows := []row{
		row{Figure: figure + "the agent, of a vCPU", Unit: string(record.Cores), Tare: median(inside), Rounds: len(inside)}.below(0.01),
		row{Figure: figure + "roles of its threads, on the host", Unit: string(record.Cores), Tare: median(roles), Rounds: len(roles)}.below(0.01),
		row{Figure: figure + "asking the agent, on the host", Unit: string(record.Cores), Tare: median(asking), Rounds: len(asking)}.below(0.01),
	}
	rows[0].Note = "accelerator " + accel + "; a vCPU's time goes on while the host runs something else"
	return rows, nil
}

// sixteen is tare's peak memory while sixteen machines are up.
func (b *bench) sixteen(ctx context.Context) ([]row, error) {
	trials, u, err := b.small(ctx, "sixteen", sixteenStudy, nil)
	if err != nil {
		return nil, err
	}
	if len(trials) == 0 || trials[len(trials)-1].Status != record.OK {
		return nil, errors.New("the sixteen did not all come up")
	}
	r := row{Figure: "peak memory of tare with 16 virtual machines", Unit: "B", Tare: u.peak}.below(150e6)
	r.Note = fmt.Sprintf("VmHWM of the tare process alone, guests of 256 MiB, %.0f s", u.seconds)
	return []row{r}, nil
}

// small runs a study of this program's own and reads its trials.
func (b *bench) small(ctx context.Context, name, text string, see func(pid int)) ([]record.Trial, usage, error) {
	if os.Geteuid() != 0 {
		return nil, usage{}, errors.New("needs root; run it with sudo")
	}
	study := filepath.Join(b.work, name+".yaml")
	if err := os.WriteFile(study, []byte(text), 0o600); err != nil {
		return nil, usage{}, err
	}
	dir := filepath.Join(b.work, name)
	u, err := b.used(ctx, see, "run", "--wait", "--fresh", study, "-o", dir)
	if err != nil {
		return nil, u, err
	}
	trials, err := trialsOf(dir)
	return trials, u, err
}

// accelerated finds which accelerator the machines had.
func accelerated(trials []record.Trial) string {
	for i := range trials {
		for name, value := range trials[i].Facts {
			if strings.HasSuffix(name, "."+record.FactAccelerator) {
				return value
			}
		}
	}
	return "unknown"
}

// host is what machines that this program starts itself stand on.
type host struct {
	*bench
	name  string
	dir   string
	tree  string
	kind  sandbox.Kind
	files boot.Files
	count int
}

// machines makes it; release takes it away.
func (b *bench) machines(ctx context.Context) (_ *host, release func() error, err error) {
	h := &host{bench: b, name: "bench" + strconv.FormatInt(int64(os.Getpid()), 36)}
	release = func() error { return (state.Dirs{Base: state.RunDir}).Remove(h.name) }
	if err := h.open(ctx); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return h, release, nil
}

// open finds the kind, and what its machines are made of.
func (h *host) open(ctx context.Context) (err error) {
	if h.dir, err = (state.Dirs{Base: state.RunDir}).Make(h.name); err != nil {
		return err
	}
	const cache = "/var/cache/tare"
	source := &boot.Cache{Images: &image.Builder{Cache: filepath.Join(cache, "images")}, Dir: filepath.Join(cache, "vm", "boot"), Self: h.tare, Kernel: os.Getenv(boot.KernelVariable)}
	if h.files, err = source.Get(ctx); err != nil {
		return err
	}
	kinds := all.Kinds(all.Env{StateDir: h.dir, CacheDir: cache, Boot: source})
	h.kind = kinds[slices.IndexFunc(kinds, func(k sandbox.Kind) bool { return k.Name() == "vm" })]
	if err := h.kind.Check(ctx); err != nil {
		return err
	}
	tree, err := rootfs.Build(ctx, filepath.Join(cache, "rootfs"), h.tare, []string{"true"})
	h.tree = tree.Path
	return err
}

// start starts a machine of 256 MiB and one vCPU.
func (h *host) start(ctx context.Context) (sandbox.Instance, error) {
	h.count++
	dir := filepath.Join(h.dir, strconv.Itoa(h.count))
	if err := os.MkdirAll(dir, 0o700); err != nil { // all: a Check takes its directory away again
		return nil, err
	}
	return h.kind.Start(ctx, sandbox.Spec{
		Want: sandbox.Want{Name: fmt.Sprintf("%s-%d", h.name, h.count), Options: map[string]string{"default_memory": "256"}},
		Dir:  dir,
		Root: h.tree,
	})
}

// boot is the time from the call until a machine's agent is ready, beside the same QEMU,
// kernel, memory and vCPU with an init of two system calls and no devices.
func (b *bench) boot(ctx context.Context) (_ []row, err error) {
	h, release, err := b.machines(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	bare := filepath.Join(b.work, "bare.cpio")
	if err := writeBare(bare); err != nil {
		return nil, err
	}
	qemu, ok := rootfs.Lookup("qemu-system-x86_64")
	if !ok {
		return nil, errors.New("no qemu-system-x86_64")
	}
	accel, phases := "", map[string][]float64{}
	ours := func(ctx context.Context) (sum float64, err error) {
		i, err := h.start(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, i.Stop(context.WithoutCancel(ctx))) }()
		accel = i.Facts()[record.FactAccelerator]
		for _, p := range i.(sandbox.Booter).Boot() {
			if phases[p.Name] = append(phases[p.Name], p.Took.Seconds()); p.Name != "plug" {
				sum += p.Took.Seconds()
			}
		}
		return sum, nil
	}
	if _, err := ours(ctx); err != nil { // files come into the page cache; the accelerator is known
		return nil, err
	}
	clear(phases)
	cpu, line := "max", "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check net.ifnames=0"
	if accel == "kvm" {
		cpu = "host"
	} else {
		line += " mitigations=off"
	}
	args := []string{"-machine", "q35,accel=" + accel, "-cpu", cpu, "-smp", "1", "-m", "256", "-kernel", h.files.Kernel, "-initrd", bare, "-append", line}
	peer := func(ctx context.Context) (float64, error) { return bareBoot(ctx, qemu, args) }
	pairs, err := inTurn(ctx, b.wants(8), ours, peer)
	if err != nil {
		return nil, err
	}
	r := row{Figure: "boot of a virtual machine until its agent is ready", Unit: "s"}.beside("ratio", "QEMU, the same kernel, a bare init", pairs).atMost(1.2)
	fast, bareFast := sides(pairs)
	r.Note = fmt.Sprintf("accelerator %s; medians: process %.3g s, kernel %.3g s, agent %.3g s; the fastest %.3g s beside %.3g s", accel,
		median(phases["process"]), median(phases["kernel"]), median(phases["agent"]), fast[0], bareFast[0])
	return []row{r}, nil
}

// skew is how far apart two machines start a command at one gate.
func (b *bench) skew(ctx context.Context) (_ []row, err error) {
	h, release, err := b.machines(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	var two [2]sandbox.Instance
	for n := range two {
		if two[n], err = h.start(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, two[n].Stop(context.WithoutCancel(ctx))) }()
	}
	var skews, doubt []float64
	for range b.wants(50) {
		gate := sandbox.NewGate(len(two))
		var exits [2]sandbox.Exit
		var errs [2]error
		var wg sync.WaitGroup
		for n, i := range two {
			wg.Go(func() { exits[n], errs[n] = i.Exec(ctx, sandbox.Command{Args: []string{"/bin/true"}, Gate: gate}) })
		}
		wg.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		skews = append(skews, exits[0].Start.Sub(exits[1].Start).Abs().Seconds())
		var known time.Duration
		for _, i := range two {
			c, err := i.Scope().Guest.Clock(ctx)
			if err != nil {
				return nil, err
			}
			known += c.Uncertainty
		}
		doubt = append(doubt, known.Seconds())
	}
	slices.Sort(skews)
	rows := []row{
		row{Figure: "start of commands in two virtual machines at one moment: apart, p50", Unit: "s", Tare: quantile(skews, 0.5), Rounds: len(skews)}.below(1e-3),
		row{Figure: "the same, p95", Unit: "s", Tare: quantile(skews, 0.95), Rounds: len(skews)}.below(1e-3),
	}
	rows[0].Note = fmt.Sprintf("%d starts, the largest %s apart; their clocks are known within %s", len(skews), show(skews[len(skews)-1], "s"), show(median(doubt), "s"))
	return rows, nil
}
