package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/collect"
	"tare/param"
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
func (k *kind) Start(_ context.Context, s sandbox.Spec) (sandbox.Instance, error) {
	end := endOf(s.Name)
	k.j.note("start %s", end)
	if k.bad == "start "+end {
		return nil, errors.New("no kernel")
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
func (*instance) Scope() sandbox.Scope { return sandbox.Scope{} }
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

// load is a workload of two ends.
type load struct {
	j   *journal
	bad bool
}

func (*load) Name() string          { return "load" }
func (*load) About() string         { return "test" }
func (*load) Params() []param.Param { return nil }
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
	if l.bad {
		return record.Reading{}, fmt.Errorf("no number in %q", b)
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
func (m *meter) Open(_ context.Context, s []sandbox.Scope) (collect.Probe, error) {
	ends := make([]string, len(s))
	for i := range s {
		ends[i] = s[i].End
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

type bridge struct{ j *journal }

func (b *bridge) Attach(name string) (sandbox.Network, error) {
	b.j.note("attach %s", endOf(name))
	return sandbox.Network{Path: "/run/netns/" + name, Addr: netip.MustParsePrefix("127.0.0.1/8")}, nil
}

func (b *bridge) Detach(name string) error {
	b.j.note("detach %s", endOf(name))
	return nil
}

// Socket is of the host itself, where the fake servers listen.
func (b *bridge) Socket() (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// memory is a store in memory.
type memory struct{ trials []record.Trial }

func (m *memory) Append(_ context.Context, t *record.Trial, _ record.Evidence) error {
	m.trials = append(m.trials, *t)
	return nil
}

// engine makes an engine of fakes over a study of one cell and two blocks.
func engine(t *testing.T, bad string) (*Engine, *journal) {
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
	l := &load{j: j, bad: bad == "garbage"}
	cat := study.Catalogue{
		Workloads: map[string]study.WorkloadInfo{"load": {Ends: 2, Responses: l.Responses}},
		Sandboxes: map[string][]param.Param{"process": nil},
	}
	dir := t.TempDir()
	return &Engine{
		ID: "x", Study: st, Catalogue: cat,
		Kinds: map[string]sandbox.Kind{"process": k}, Workloads: map[string]workload.Workload{"load": l},
		Collectors: []collect.Collector{&meter{j}}, Network: &bridge{j}, Store: &memory{},
		Dirs: Dirs{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data"), Memory: filepath.Join(dir, "memory")},
	}, j
}
