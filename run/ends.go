package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// end is one role's sandbox, or the pattern of the sandboxes that it makes.
type end struct {
	role    workload.Role
	kind    sandbox.Kind
	spec    sandbox.Spec
	inst    sandbox.Instance
	started time.Time     // when inst was there
	cost    record.Labels // of its start and stop times
	begun   time.Time     // when its command began, if it was gated,
	within  time.Duration // known to so much
	clock   sandbox.Clock // of inst, as it was at clockAt
	clockAt time.Time
}

// networked tells whether a role's sandboxes have a place on the bridge.
func networked(roles []workload.Role, r workload.Role) bool {
	return r.Probe != nil || len(roles) > 1 && r.Mode == workload.Exec
}

// prepare makes the places that the sandboxes need.
func (t *trial) prepare() error {
	for i := range t.roles {
		if err := t.prepareEnd(t.roles[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) prepareEnd(role workload.Role) error {
	en := &end{role: role}
	kind, isolated := t.kindOf(role)
	if en.kind = t.engine.Kinds[kind]; en.kind == nil {
		return fmt.Errorf("there is no sandbox %q", kind)
	}
	en.cost = record.MakeLabels("end", role.Name, "sandbox", kind)
	t.rec.Facts[role.Name+".where"] = where(kind)
	en.spec = sandbox.Spec{
		Name: t.prefix + "-" + role.Name,
		Dir:  filepath.Join(t.engine.Dirs.State, t.prefix, role.Name),
		Root: t.engine.Dirs.Root,
	}
	if role.Image != "" {
		if why := t.engine.imageMissing(role.Image); why != "" {
			return &failure{kind: "start", role: role.Name, err: errors.New(why)}
		}
		img := t.engine.Images[role.Image]
		en.spec.Root = img.Root
		t.rec.Facts[role.Name+".image"] = role.Image
		if img.Digest != "" {
			t.rec.Facts[role.Name+".image_digest"] = img.Digest
		}
	}
	if isolated {
		en.spec.CPULimit, en.spec.MemoryLimit, en.spec.CPUs = t.res.CPULimit, t.res.MemoryLimit, t.res.CPUs
		en.spec.Options = t.res.Options
		if t.res.CPUs != "" {
			t.rec.Facts[role.Name+".cpus"] = t.res.CPUs // pinned to
		}
	}
	t.ends = append(t.ends, en)
	if err := os.MkdirAll(en.spec.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the sandbox's directory: %w", err)
	}
	if err := t.makeData(en); err != nil {
		return err
	}
	if role.Mode != workload.Exec {
		return nil // each of its sandboxes has a network and an upper layer of its own
	}
	return t.furnish(en, &en.spec)
}

// makeData makes what the role sees as /data.
func (t *trial) makeData(en *end) error {
	if !en.role.Data {
		return nil
	}
	base := t.engine.Dirs.Data
	if en.role.DataInMemory {
		if base = t.engine.Dirs.Memory; base == "" {
			return &failure{kind: "start", role: en.role.Name, err: errors.New(noMemoryDir)}
		}
	}
	en.spec.Data = filepath.Join(base, t.prefix, en.role.Name)
	if err := os.MkdirAll(en.spec.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the data directory: %w", err)
	}
	return nil
}

const noMemoryDir = "this host has no memory file system for data: neither /dev/shm nor /run is a tmpfs; mount one on /dev/shm"

// furnish gives one sandbox its upper layer and its place on the bridge.
func (t *trial) furnish(en *end, spec *sandbox.Spec) error {
	if en.role.Writable {
		spec.Upper = filepath.Join(t.engine.Dirs.Data, t.prefix, spec.Name+"-upper")
		if err := os.MkdirAll(spec.Upper, 0o700); err != nil {
			return fmt.Errorf("cannot make the directory of the writable root: %w", err)
		}
	}
	if !networked(t.roles, en.role) {
		return nil
	}
	if t.engine.Network == nil {
		return &failure{kind: "start", role: en.role.Name, err: errors.New("there is no bridge for the sandbox's network; run as root")}
	}
	var err error
	if spec.Network, err = t.engine.Network.Attach(spec.Name); err != nil {
		return fmt.Errorf("cannot connect the sandbox to the bridge: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.networks = append(t.networks, spec.Name)
	return nil
}

// another is the spec of one more sandbox for a role that makes several.
func (t *trial) another(en *end, name string) (sandbox.Spec, error) {
	spec := en.spec
	spec.Name += "-" + name
	spec.Dir = filepath.Join(spec.Dir, name)
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		return spec, fmt.Errorf("cannot make the sandbox's directory: %w", err)
	}
	return spec, t.furnish(en, &spec)
}

// launcher is the role's kind as one that can make a command a sandbox's life.
func (en *end) launcher() (sandbox.Launcher, error) {
	l, ok := en.kind.(sandbox.Launcher)
	if !ok {
		return nil, &failure{kind: "start", role: en.role.Name, err: errors.New(notLaunchable(en.kind.Name()))}
	}
	return l, nil
}

func notLaunchable(kind string) string {
	return fmt.Sprintf("sandbox %s cannot be launched with a command as its whole life", kind)
}

func (en *end) command(stdout, stderr *output) sandbox.Command {
	return sandbox.Command{Args: en.role.Args, Env: en.role.Env, Stdout: stdout, Stderr: stderr}
}

// where is a kind as the place that an end ran in.
func where(kind string) string {
	if kind == study.Native {
		return "native"
	}
	return kind
}

// kindOf says where a role runs and whether that is the isolated end; the other
// end runs natively.
func (t *trial) kindOf(role workload.Role) (kind string, isolated bool) {
	if t.isolates(role.Name) {
		return t.res.Sandbox, true
	}
	return study.Native, false
}

// start starts the sandbox of every role that runs in a started one.
func (t *trial) start(ctx context.Context) error {
	for _, en := range t.ends {
		if p, ok := en.kind.(sandbox.Preparer); ok {
			if err := p.Prepare(ctx, en.spec); err != nil {
				return en.unstarted(ctx, err)
			}
		}
	}
	for _, en := range t.ends {
		if en.role.Mode != workload.Exec {
			continue
		}
		began := time.Now()
		inst, err := en.kind.Start(ctx, en.spec)
		if err != nil {
			return en.unstarted(ctx, err)
		}
		en.inst, en.started = inst, time.Now()
		t.sample("sandbox_start", en.cost, took(inst, en.started.Sub(began)))
		for k, v := range inst.Facts() {
			t.rec.Facts[en.role.Name+"."+k] = v
			if k == record.FactAccelerator {
				t.whereAccelerated(en, v)
			}
		}
		t.boot(en)
		t.clock(ctx, en, clockStart)
	}
	return t.link()
}

func (en *end) unstarted(ctx context.Context, err error) error {
	return &failure{kind: "start", role: en.role.Name, err: fmt.Errorf("%s did not start: %w", en.kind.Name(), withCause(ctx, err))}
}

// took is how long a start took. An instance that tells its steps has left out what
// was made on the way for others too, such as the snapshot that it came from.
func took(inst sandbox.Instance, whole time.Duration) time.Duration {
	b, ok := inst.(sandbox.Booter)
	if !ok {
		return whole
	}
	var sum time.Duration
	for _, p := range b.Boot() {
		sum += p.Took
	}
	return sum
}

func (t *trial) sample(name string, labels record.Labels, d time.Duration) {
	t.rec.Samples = append(t.rec.Samples, record.Sample{
		Name: name, Labels: labels, Unit: record.Second, Kind: record.Value, Value: d.Seconds(),
	})
}

// ordinal names the i-th sandbox of a role.
func ordinal(i int, what string) string { return strconv.Itoa(i) + what }
