package trial

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/collect"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// tally is a collector of system calls; bad says what goes wrong.
type tally struct {
	meter
	bad    string
	opened int
}

func (c *tally) Check() error {
	if c.bad == "check" {
		return errors.New("system calls cannot be counted: no BPF")
	}
	return nil
}

func (c *tally) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) {
	c.opened++
	if c.bad == "open" {
		return nil, errors.New("no room")
	}
	return &tallyProbe{c: c}, nil
}

type tallyProbe struct {
	c *tally
	n float64
}

func (p *tallyProbe) Read(dst []record.Sample) ([]record.Sample, error) {
	if p.c.bad == "nothing" {
		return dst, nil
	}
	p.n += 100
	counter := func(name string, u record.Unit, v float64, labels ...string) record.Sample {
		return record.Sample{Name: name, Labels: record.MakeLabels(labels...), Unit: u, Kind: record.Counter, Value: v}
	}
	return append(dst,
		counter("system_calls", record.Count, p.n, "end", "server", "call", "read"),
		counter("cpu_time", record.Second, p.n/1000, "end", "server", "role", "workload"),
		counter("cpu_time", record.Second, p.n, "end", "client", "role", "workload"),
		counter("cpu_time", record.Second, p.n, "end", "server", "role", "harness")), nil
}

func (*tallyProbe) Close() error { return nil }

// TestCountingTrials: the collector is open in the counting trial alone, whose
// samples say what the isolated endpoint called and used; where it does not work the
// trial is made twice, and the others are as good.
func TestCountingTrials(t *testing.T) {
	for _, c := range []struct {
		bad            string
		counting, good int
		reason         string
	}{
		{"", 1, 1, ""},
		{"open", 2, 0, "system calls were not counted: collector meter: no room"},
		{"nothing", 2, 0, "no system call was counted"},
		{"check", 0, 0, ""},
	} {
		t.Run("bad "+c.bad, func(t *testing.T) {
			e, j := engine(t, "")
			cell := e.Study.Strata[0].Cells[0]
			e.Study.Calls = true
			e.Study.Strata[0].Counting = study.CountingCell(cell)
			count := &tally{meter: meter{j}, bad: c.bad}
			e.Counting = count
			skips, err := e.Skips(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if told := slices.ContainsFunc(skips, func(s record.Skip) bool {
				return s.Cell.Key() == study.CountingAll().Key() && strings.Contains(s.Reason, "no BPF")
			}); told != (c.bad == "check") {
				t.Errorf("skips: %+v", skips)
			}
			counting, good, others := 0, 0, 0
			for _, x := range all(t, e, skips) {
				if !study.IsCounting(x.Cell) {
					others++
					if x.Status != record.OK || slices.ContainsFunc(x.Samples, func(s record.Sample) bool { return strings.HasPrefix(s.Name, "system_calls") }) {
						t.Errorf("another trial: %+v", x)
					}
					continue
				}
				counting++
				if x.Status != record.OK {
					if !strings.Contains(x.Failure.Reason, c.reason) {
						t.Errorf("the reason is %q, want %q", x.Failure.Reason, c.reason)
					}
					continue
				}
				good++
				calls, cores := 0.0, 0.0
				for _, s := range x.Samples {
					switch {
					case s.Name == "system_calls_rate" && s.Labels == "call=read,end=server":
						calls = s.Value
					case s.Name == plan.CoresSample && s.Labels == "":
						cores = s.Value
					}
				}
				if calls <= 0 || math.Abs(cores-calls/1000) > 1e-6*cores {
					t.Errorf("%g calls a second, %g cores", calls, cores)
				}
			}
			if counting != c.counting || good != c.good || others == 0 || count.opened != c.counting {
				t.Errorf("%d counting trials (%d good, %d opened the collector) beside %d", counting, good, count.opened, others)
			}
		})
	}
}

// TestCheckIsNotCounted: a program that goes on after its measured time makes calls
// that are nobody's; and counts are read more often than all else.
func TestCheckIsNotCounted(t *testing.T) {
	const own, check = 500.0, 1e6
	e, j := engine(t, "")
	count := &steps{meter: meter{j}}
	e.Counting, e.Study.Calls = count, true
	e.Study.Collect.Interval = 0 // nothing else is read but at the window's edges
	e.Study.Strata[0].Counting = study.CountingCell(e.Study.Strata[0].Cells[0])
	e.Study.Timeout = 20 * time.Second
	role := workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"timed"}, Until: "it took "}
	e.Workloads["load"] = &launchLoad{load: load{j: j}, roles: []workload.Role{role}}
	e.Kinds["process"] = &serving{kind: kind{j: j, name: "process"}, does: script{"timed": func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
		for range 5 {
			count.add(own / 5)
			if err := sleep(ctx, 30*time.Millisecond); err != nil {
				return sandbox.Exit{}, err
			}
		}
		_, _ = io.WriteString(c.Stdout, "said before\nit took 150 ms\n")
		seen := count.readings()
		for count.readings() < seen+3 && ctx.Err() == nil { // the window has ended, and its counts are read
			_ = sleep(ctx, 5*time.Millisecond)
		}
		count.add(check)
		return sandbox.Exit{}, sleep(ctx, 50*time.Millisecond)
	}}}
	next := first(e)
	next.Cell, next.Counting = e.Study.Strata[0].Counting, true
	trial, _ := e.Trial(t.Context(), next)
	if trial.Status != record.OK {
		t.Fatalf("%+v", trial.Failure)
	}
	window, _ := trial.Sample(plan.WindowSample)
	for _, s := range trial.Samples {
		// The first calls may come before the window opens.
		if n := s.Value * window; s.Name == "system_calls_rate" && (n <= 0 || n > own*1.000001) {
			t.Errorf("%g calls in the window, and the program made %g before its check", n, own)
		}
	}
	run := trial.Phases[slices.IndexFunc(trial.Phases, func(p record.Phase) bool { return p.Name == PhaseRun })]
	if window < 0.15 || math.Abs(window-run.Duration.Seconds()) > 1e-9 {
		t.Errorf("the window is %g s, the phase %v", window, run.Duration)
	}
	if n := count.readings(); n < 10 {
		t.Errorf("%d readings of the counts", n)
	}
}

// own is a workload with parameters of its own for counting trials.
type own struct{ *load }

func (own) Counting(v param.Values) param.Values {
	v = maps.Clone(v)
	v["counted"] = "yes"
	return v
}

func (own) Roles(v param.Values) ([]workload.Role, error) {
	return []workload.Role{{Name: "main", Mode: workload.Exec, Args: []string{"x"}, Expect: time.Duration(len(v["counted"])) * time.Hour}}, nil
}

// TestCountingParams: a workload's parameters for counting are those of counting trials
// and of no other, also where it is asked how long a trial takes.
func TestCountingParams(t *testing.T) {
	e, j := engine(t, "")
	e.Workloads["load"] = own{&load{j: j}}
	cell := e.Study.Strata[0].Cells[0]
	for counting, want := range map[bool]time.Duration{false: 0, true: 3 * time.Hour} {
		c := cell
		if counting {
			c = study.CountingCell(cell)
		}
		if got := e.Expected(c).Truncate(time.Hour); got != want {
			t.Errorf("counting %v: a trial takes %v, want %v", counting, got, want)
		}
		tr := e.begin(plan.Next{Cell: c})
		if err := tr.resolve(); err != nil {
			t.Fatal(err)
		}
		if got := tr.roles[0].Expect; got != want || (tr.res.Params["counted"] == "yes") != counting {
			t.Errorf("counting %v: the role measures for %v with %v", counting, got, tr.res.Params)
		}
	}
}

// steps is a collector of one counter.
type steps struct {
	meter
	mu    sync.Mutex
	n     float64
	reads int
}

func (c *steps) Name() string                                                      { return "steps" }
func (c *steps) Check() error                                                      { return nil }
func (c *steps) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) { return c, nil }
func (c *steps) Close() error                                                      { return nil }

func (c *steps) add(n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

func (c *steps) readings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

func (c *steps) Read(dst []record.Sample) ([]record.Sample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return append(dst, record.Sample{Name: "system_calls", Labels: record.MakeLabels("end", "main", "call", "read"), Unit: record.Count, Kind: record.Counter, Value: c.n}), nil
}

// TestActive: edges without work are left out, whatever is between them is not.
func TestActive(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{
		{[]float64{10, 10, 10, 10}, 1},
		{[]float64{0, 4, 10, 10, 10}, 10. * 5 / 34},
		{[]float64{0.5, 0.1, 2, 10, 10, 10, 10, 7, 0}, 10. * 9 / 49.6},
		{[]float64{3, 10, 10, 10, 2}, 1}, // slow, not idle
		{[]float64{10, 10, 0, 10, 10}, 1},
		{[]float64{0, 0, 0, 0}, 0},
		{[]float64{0, 0, 0, 10, 10}, 2.5},              // idle for more than half of it
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 10, 10}, 5}, // for nearly all
		{[]float64{5, 5}, 0},
		// Loading comes in bursts as fast as a slow work: fio's, before its jobs begin.
		{[]float64{3, 0, 0, 4, 0, 40, 40, 40, 40, 1, 0}, 40. * 11 / 168},
		{[]float64{10, 10, 0, 0, 10, 10}, 1}, // as much before as after: it is the work
	} {
		sums, sum := map[time.Duration]float64{0: 0}, 0.0
		for i, r := range c.rates {
			sum += r
			sums[time.Duration(i+1)*time.Second] = sum
		}
		if got := active(sums); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %g, want %g", c.rates, got, c.want)
		}
	}
}
