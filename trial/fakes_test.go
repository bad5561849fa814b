package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/collect"
	"tare/host/probe"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// journal notes what the engine asks of its parts, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// endOf is the role in a sandbox's name.
func endOf(name string) string { return name[strings.LastIndex(name, "-")+1:] }

// kind is a sandbox that only notes; bad says what goes wrong.
type kind struct {
	j     *journal
	name  string
	bad   string
	check error // what Check says
}

func (k *kind) Name() string                { return k.name }
func (*kind) About() string                 { return "notes" }
func (*kind) Params() []param.Param         { return nil }
func (k *kind) Check(context.Context) error { return k.check }
func (k *kind) Traits(map[string]string) sandbox.Traits {
	return sandbox.Traits{Traits: record.Traits{Family: record.FamilyNative, Native: k.name}}
}
func (k *kind) Start(_ context.Context, s sandbox.Spec) (sandbox.Instance, error) {
	end := endOf(s.Name)
	k.j.note("start %s", end)
	if k.bad == "start "+end {
		return nil, errors.New("no kernel")
	}
	if k.bad == "no image for "+end {
		return nil, fmt.Errorf("node a cannot pull it: %w", sandbox.ErrNoImage)
	}
	if k.bad == "refuse "+end {
		return nil, fmt.Errorf("x-1-%s: %w", end, &sandbox.RefusedError{Why: "it may not", Raw: "words"})
	}
	return &instance{k: k, end: end}, nil
}

type instance struct {
	k   *kind
	end string
}

func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	i.k.j.note("exec %s", strings.Join(c.Args, " "))
	switch i.k.bad {
	case "die " + i.end:
		return sandbox.Exit{}, errors.New("the sandbox ended")
	case "oom " + i.end:
		return sandbox.Exit{Code: 137, Signal: "SIGKILL", OOM: true}, nil
	case "exit " + i.end:
		_, _ = io.WriteString(c.Stderr, "first line\nwrite: No space left on device\n")
		return sandbox.Exit{Code: 1}, nil
	case "hang " + i.end:
		<-ctx.Done()
		return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil
	case "hang and lose " + i.end:
		<-ctx.Done()
		return sandbox.Exit{}, fmt.Errorf("it hangs (node a: %w)", sandbox.ErrNodeLost)
	}
	if i.end == "server" {
		_, _ = io.WriteString(c.Stdout, "listening on 1\n")
		<-ctx.Done()
		i.k.j.note("ended %s", i.end)
		_, _ = io.WriteString(c.Stdout, "served\n")
		return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil
	}
	time.Sleep(30 * time.Millisecond)
	_, _ = io.WriteString(c.Stdout, "42\n")
	return sandbox.Exit{}, nil
}

func (i *instance) Addr() netip.Addr {
	if i.end == "server" {
		return netip.MustParseAddr("198.18.0.2")
	}
	return netip.MustParseAddr("198.18.0.3")
}
func (*instance) Scope() sandbox.LocalScope { return sandbox.LocalScope{} }
func (i *instance) Facts() map[string]string {
	return map[string]string{"runtime": i.k.name}
}

func (i *instance) Stop(context.Context) error {
	i.k.j.note("stop %s", i.end)
	if i.k.bad == "stop "+i.end {
		return errors.New("device busy")
	}
	return nil
}

// load is a workload of two endpoints.
type load struct {
	j      *journal
	bad    string
	warmup param.Type // "": none
}

func (*load) Name() string  { return "load" }
func (*load) About() string { return "test" }
func (l *load) Params() []param.Param {
	if l.warmup == "" {
		return nil
	}
	return []param.Param{{Name: "warmup", Type: l.warmup}}
}
func (*load) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "answer", Unit: record.Count, Better: record.Higher}}
}

func (*load) Roles(param.Values) ([]workload.Role, error) {
	return []workload.Role{
		{Name: "server", Mode: workload.Exec, Args: []string{"serve"}, Ready: "listening", Background: true},
		{Name: "client", Mode: workload.Exec, Args: []string{"call", "{server}:1"}, Warmup: 10 * time.Millisecond},
	}, nil
}

func (l *load) Parse(role string, _ param.Values, out io.Reader) (record.Reading, error) {
	l.j.note("parse %s", role)
	b, _ := io.ReadAll(out)
	switch l.bad {
	case "all refused":
		return record.Reading{}, fmt.Errorf("the report: %w", &workload.Refused{Why: "no right"})
	case "garbage":
		return record.Reading{}, &workload.Unfit{Err: fmt.Errorf("no number in %q", b), Printed: "words"}
	}
	if role == "client" {
		return record.Reading{Samples: []record.Sample{{Name: "answer", Unit: record.Count, Value: 42}}}, nil
	}
	return record.Reading{}, nil
}

// meter is a collector of one counter that rises by one a read.
type meter struct{ j *journal }

func (*meter) Name() string              { return "meter" }
func (*meter) About() string             { return "test" }
func (*meter) Series() []record.Response { return nil }
func (*meter) Check() error              { return nil }
func (m *meter) Open(_ context.Context, s []sandbox.LocalScope) (collect.Probe, error) {
	ends := make([]string, len(s))
	for i := range s {
		ends[i] = s[i].Endpoint
	}
	m.j.note("open collectors on %s", strings.Join(ends, "+"))
	return &meterProbe{m: m}, nil
}

type meterProbe struct {
	m *meter
	n float64
}

func (p *meterProbe) Read(dst []record.Sample) ([]record.Sample, error) {
	p.n++
	return append(dst, record.Sample{Name: "reads", Unit: record.Count, Kind: record.Counter, Value: p.n}), nil
}
func (p *meterProbe) Source() string { return "a register" }

func (p *meterProbe) Close() error { p.m.j.note("close collectors"); return nil }

// place only notes. Servers listen on this host itself.
type place struct {
	j         *journal
	lacks     error // what Check says
	image     Image // what Image says
	images    error // likewise
	caches    error // what DropCaches says
	link      error // what Shape says
	prepare   error // what Prepare says
	available func() int64
	cores     int  // that Apart splits
	nowhere   bool // it gives sandboxes no addresses

	mu       sync.Mutex
	wants    []sandbox.Want
	networks []string
	retired  []string
}

func (p *place) Check(Demand) error          { return p.lacks }
func (p *place) Image(string) (Image, error) { return p.image, p.images }

func (p *place) Prepare(_ context.Context, want sandbox.Want) (sandbox.Spec, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wants = append(p.wants, want)
	spec := sandbox.Spec{Want: sandbox.Want{Name: want.Name, MemoryLimit: want.MemoryLimit, Options: want.Options}}
	if want.Networked && !p.nowhere {
		p.j.note("attach %s", endOf(want.Name))
		p.networks = append(p.networks, want.Name)
		spec.Network = sandbox.Network{Path: "/run/netns/" + want.Name, Addr: netip.MustParsePrefix("127.0.0.1/8")}
	}
	return spec, p.prepare
}

func (p *place) Apart(n int) ([]string, error) {
	if p.cores < n {
		return nil, fmt.Errorf("this place has %d cores for %d ends", p.cores, n)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out, nil
}

func (p *place) Retire(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = append(p.retired, name)
	return nil
}

func (p *place) Release(_ context.Context, trial string) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.networks {
		p.j.note("detach %s", endOf(n))
	}
	p.j.note("release %s", trial)
	p.networks = nil
	return nil
}

func (p *place) Shape(l sandbox.Link, networks []sandbox.Network) error {
	for _, n := range networks {
		p.j.note("shape %s %s %d", endOf(n.Path), l.Delay, l.Rate)
	}
	return p.link
}

func (*place) Probe(ctx context.Context, addr netip.Addr, ask workload.Probe) (time.Time, error) {
	return probe.Wait(ctx, func() (int, error) {
		return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	}, addr, ask)
}

func (p *place) Available(context.Context, string) (int64, error) {
	if p.available == nil {
		return 1e9, nil
	}
	return p.available(), nil
}

func (p *place) DropCaches() error {
	p.j.note("drop caches")
	return p.caches
}

// all makes the trials that the plan asks for.
func all(t *testing.T, e *Maker, skips []record.Skip) (trials []record.Trial) {
	t.Helper()
	p := plan.New(e.Study, skips, nil)
	for next, more := p.Next(); more; next, more = p.Next() {
		trial, _ := e.Trial(t.Context(), next)
		trials = append(trials, *trial)
		p.Done(trial)
	}
	return trials
}

// engine makes an engine of fakes over a study of one cell and two blocks.
func engine(t *testing.T, bad string) (*Maker, *journal) {
	t.Helper()
	j := &journal{}
	k := &kind{j: j, name: "process", bad: bad}
	cell := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: "process"}}
	timeout := 20 * time.Second // what is not to hang has time on a busy machine
	if strings.HasPrefix(bad, "hang") {
		timeout = 400 * time.Millisecond
	}
	st := &study.Study{
		Name: "test", Seed: 1, Compare: "sandbox", Baseline: "process", Timeout: timeout,
		Factors:   []study.Factor{{Name: "workload", Levels: []string{"w"}}, {Name: "sandbox", Levels: []string{"process"}}},
		Workloads: []study.Workload{{Label: "w", Kind: "load", Responses: []string{"answer"}}},
		Strata:    []study.Stratum{{Key: "workload=w", Shared: cell[:1], Cells: []record.Cell{cell}}},
		Stop:      study.Stop{Fixed: 2},
		Collect:   study.Collect{Interval: 2 * time.Millisecond},
	}
	l := &load{j: j, bad: bad}
	cat := study.Catalogue{
		Workloads: map[string]study.WorkloadInfo{"load": {Endpoints: 2, Responses: l.Responses}},
		Sandboxes: map[string]study.SandboxInfo{"process": {}}, Native: "process",
	}
	return &Maker{
		ID: "x", Study: st, Catalogue: cat,
		Kinds: map[string]sandbox.Kind{"process": k}, Workloads: map[string]workload.Workload{"load": l},
		Collectors: []collect.Collector{&meter{j}}, Place: &place{j: j},
	}, j
}
