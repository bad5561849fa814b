package trial

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/collect"
	"tare/collect/collecttest"
	"tare/collect/disk"
	"tare/collect/proc"
	"tare/collect/remote"
	"tare/collect/system"
	"tare/record"
	"tare/sandbox"
)

// hosts are collectors of this host that need no cgroup of a sandbox.
func hosts() []collect.Collector { return []collect.Collector{proc.New(), system.New(), disk.New()} }

// TestMain lets this binary read collectors for the tests that have them elsewhere.
func TestMain(m *testing.M) { os.Exit(collecttest.Main(m, hosts()...)) }

// direct is a collector of this process. Its series get a prefix, so that the same collector
// can be read elsewhere in the same trial.
type direct struct{ collect.Collector }

const prefix = "direct_"

func (d direct) Name() string { return prefix + d.Collector.Name() }

func (d direct) Open(ctx context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	p, err := d.Collector.Open(ctx, scopes)
	return directProbe{p}, err
}

type directProbe struct{ collect.Probe }

func (d directProbe) Read(dst []record.Sample) ([]record.Sample, error) {
	from := len(dst)
	dst, err := d.Probe.Read(dst)
	for i := range dst[from:] {
		dst[from+i].Name = prefix + dst[from+i].Name
	}
	return dst, err
}

// outside is a kind whose sandboxes each have a process that computes.
type outside struct {
	kind
	t *testing.T
}

func (o *outside) Start(_ context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	o.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{instance{k: &o.kind, end: endOf(spec.Name)}, cmd.Process.Pid}, nil
}

type process struct {
	instance
	pid int
}

func (p *process) Scope() sandbox.LocalScope { return sandbox.LocalScope{Pids: []int{p.pid}} }

func (p *process) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	if p.end == "client" {
		_ = sleep(ctx, time.Second)
	}
	return p.instance.Exec(ctx, c)
}

// TestCollectorsElsewhere: a trial whose collectors are all read by other processes has the
// series and figures that the same collectors give in this process, at the same time.
func TestCollectorsElsewhere(t *testing.T) {
	e, j := engine(t, "")
	e.Study.Collect.Interval = 20 * time.Millisecond
	e.Kinds["process"] = &outside{kind{j: j, name: "process"}, t}
	e.Collectors = nil
	for _, c := range hosts() {
		e.Collectors = append(e.Collectors, direct{c}, collecttest.Elsewhere(c, e.Study.Collect.Interval))
	}
	trial, evidence := e.Trial(t.Context(), first(e))
	if trial.Status != record.OK || len(trial.Warnings) > 0 {
		t.Fatalf("%+v %+v", trial.Failure, trial.Warnings)
	}
	if trial.Facts["collector.proc"] != "another process: "+proc.New().Source() {
		t.Errorf("%v", trial.Facts)
	}
	here, there := map[string]bool{}, map[string]bool{}
	for i := range evidence.Series {
		s := &evidence.Series[i]
		name, isHere := strings.CutPrefix(s.Name+"{"+string(s.Labels)+"}", prefix)
		switch {
		case s.Labels.Get(record.LabelRole) == string(record.RoleHarness): // each process sees its own threads
		case strings.HasSuffix(s.Name, "system_cpu_softirq"): // of the processors that had some
		case isHere:
			here[name] = true
		default:
			there[name] = true
		}
	}
	if diff := cmp.Diff(here, there); diff != "" || len(here) < 10 {
		t.Errorf("%d series, read here and elsewhere (-here +elsewhere):\n%s", len(here), diff)
	}
	got := map[string]float64{}
	for _, s := range trial.Samples {
		got[s.Name+"{"+string(s.Labels)+"}"] = s.Value
	}
	for _, name := range []string{
		"cpu_time_rate{end=client,role=workload}", "cpu_time_rate{end=server,role=workload}", "threads_mean{end=client,role=workload}",
		"system_context_switches_rate{}", "system_memory_available_mean{}",
	} {
		a, b := got[prefix+name], got[name]
		if a <= 0 || b <= 0 || math.Abs(a-b) > 0.3*max(a, b)+0.05 {
			t.Errorf("%s: %g here, %g elsewhere", name, a, b)
		}
	}
}

// dying is a collector whose process is killed once it is open.
type dying struct {
	collect.Collector
	child *collecttest.Child
}

func (d *dying) Open(ctx context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	p, err := remote.New(d.Collector, time.Millisecond, func(ctx context.Context) (io.ReadWriteCloser, error) {
		stream, err := collecttest.Dial(ctx)
		d.child = stream.(*collecttest.Child)
		return stream, err
	}).Open(ctx, scopes)
	return p, errors.Join(err, d.child.Process.Kill())
}

// TestCollectorProcessDies: a warning says why the series end, and the trial goes on.
func TestCollectorProcessDies(t *testing.T) {
	e, j := engine(t, "")
	e.Kinds["process"] = &outside{kind{j: j, name: "process"}, t}
	e.Collectors = []collect.Collector{&dying{Collector: system.New()}}
	trial, _ := e.Trial(t.Context(), first(e))
	if trial.Status != record.OK {
		t.Errorf("%+v", trial.Failure)
	}
	if len(trial.Warnings) != 1 || !strings.Contains(trial.Warnings[0].Text, "collector system: the collector process ended") {
		t.Errorf("%+v", trial.Warnings)
	}
}
