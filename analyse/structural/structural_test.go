package structural

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/stat"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// made is a study of applications and of kinds of the workload syscall, in one
// sandbox beside the baseline.
type made struct {
	st     study.Study
	rows   []Row
	trials []*record.Trial
}

func cellOf(workload, box string) record.Cell {
	return record.Cell{{Factor: "workload", Value: workload}, {Factor: "sandbox", Value: box}}
}

func (m *made) stratum(label, kind string, params param.Values, counting bool) record.Cell {
	m.st.Workloads = append(m.st.Workloads, study.Workload{Label: label, Kind: kind, Params: params, Responses: []string{"first"}})
	shared := record.Cell{{Factor: "workload", Value: label}}
	s := study.Stratum{Key: shared.Key(), Shared: shared, Workload: len(m.st.Workloads) - 1, Cells: []record.Cell{cellOf(label, "process"), cellOf(label, "box")}}
	if counting {
		s.Counting = study.CountingCell(s.Cells[0])
	}
	m.st.Strata = append(m.st.Strata, s)
	return shared
}

// row adds a comparison whose ratio is known to within 2 %.
func (m *made) row(shared record.Cell, kind string, r record.Response, base, ratio float64) *Row {
	label, _ := shared.Get("workload")
	m.rows = append(m.rows, Row{Workload: label, Kind: kind, Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=box", Cell: cellOf(label, "box"),
		First: true, Response: r, Estimate: stat.Estimate{N: 4, Base: base, Value: base * ratio, Ratio: ratio, Lo: ratio / 1.02, Hi: ratio * 1.02}})
	return &m.rows[len(m.rows)-1]
}

// call adds a kind of the workload syscall: its time natively and what the box
// adds, for an operation.
func (m *made) call(kind string, native, added float64) {
	shared := m.stratum("sys "+kind, "syscall", param.Values{"call": kind}, false)
	m.row(shared, "syscall", record.Response{Name: "time_per_call", Unit: record.Second, Operation: "call"}, native, (native+added)/native)
}

// count adds the counting trial of a workload: calls a second by end and name.
func (m *made) count(label string, first, cores float64, calls map[[2]string]float64) *record.Trial {
	t := &record.Trial{Seq: len(m.trials) + 1, Block: 1, Attempt: 1, Status: record.OK, Cell: study.CountingCell(cellOf(label, "process")),
		Samples: []record.Sample{{Name: "first", Value: first}, {Name: plan.CoresSample, Unit: record.Cores, Value: cores}}}
	for k, v := range calls {
		t.Samples = append(t.Samples, record.Sample{Name: callRate, Labels: record.MakeLabels("end", k[0], "call", k[1]), Unit: record.PerSecond, Value: v})
	}
	m.trials = append(m.trials, t)
	return t
}

func (m *made) shares(skips ...record.Skip) []Share { return Shares(&m.st, m.rows, m.trials, skips) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(math.Abs(want), 1e-12) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

var rate = record.Response{Name: "first", Unit: record.PerSecond, Operation: "request"}

// TestKnownTruth: a server that makes 5 calls a request in a box that adds 2 us to
// each and 7 us elsewhere.
func TestKnownTruth(t *testing.T) {
	const native, calls, cost, elsewhere = 20e-6, 5.0, 2e-6, 7e-6
	var m made
	m.call("getpid", 1e-7, cost)
	app := m.stratum("app", "redis", nil, true)
	slow := native + calls*cost + elsewhere
	m.row(app, "redis", rate, 1/native, native/slow)
	// Counting slowed it by a third, which must not matter; the client's calls are
	// not the isolated endpoint's.
	const counted = 0.75 / native
	m.count("app", counted, 0.4, map[[2]string]float64{{"server", "read"}: 3 * counted, {"server", "write"}: 2 * counted, {"client", "read"}: 90 * counted})
	got := m.shares()
	if len(got) != 1 || got[0].Missing != "" {
		t.Fatalf("%+v", got)
	}
	s := got[0]
	near(t, "native", s.Native, native)
	near(t, "extra", s.Extra.Value, slow-native)
	near(t, "calls", s.Calls, calls)
	near(t, "cost", s.Cost.Value, cost)
	near(t, "parallelism", s.Parallelism, 1)
	near(t, "explained", s.Explained.Value, calls*cost)
	near(t, "rest", s.Rest, elsewhere)
	near(t, "extra, from", s.Extra.Lo, native*(slow/native/1.02-1))
	near(t, "extra, to", s.Extra.Hi, native*(slow/native*1.02-1))
	if s.Finding != Mixed || s.Operation != "request" {
		t.Errorf("%s of a %s", s.Finding, s.Operation)
	}
	if d := cmp.Diff([]string{"read", "write"}, []string{s.Top[0].Name, s.Top[1].Name}); d != "" || s.Other != 0 {
		t.Errorf("%s; other %g", d, s.Other)
	}
	if p, ok := s.Part(); !ok || math.Abs(p-10./17) > 1e-9 {
		t.Errorf("part %g", p)
	}
}

// TestParallel: calls that are under way on several processors at once take their
// share of the time only.
func TestParallel(t *testing.T) {
	var m made
	m.call("getpid", 1e-7, 4e-6)
	app := m.stratum("app", "fio", nil, true)
	m.row(app, "fio", rate, 1e5, 0.2) // 10 us to 50 us
	m.count("app", 1e5, 2, map[[2]string]float64{{"main", "pread64"}: 1e6})
	s := m.shares()[0]
	near(t, "calls", s.Calls, 10)
	near(t, "explained", s.Explained.Value, 10*4e-6/2)
	near(t, "rest", s.Rest, 20e-6)
}

// TestRuns: the calls of a window are those of its runs, whatever else it held: a
// shell, the program's loading, setting up. A check after a run is not in the window.
func TestRuns(t *testing.T) {
	const calls, runs, time, beside = 30_000.0, 4.0, 0.05, 0.3
	var m made
	m.call("getpid", 1e-7, 1e-6)
	app := m.stratum("app", "x", nil, true)
	m.row(app, "x", record.Response{Name: "first", Unit: record.Second, Operation: "run"}, time, 2)
	const window = runs*time + beside
	trial := m.count("app", time, 1, map[[2]string]float64{{"main", "write"}: calls * runs / window})
	trial.Samples = append(trial.Samples, record.Sample{Name: plan.WindowSample, Value: window}, record.Sample{Name: record.Runs, Value: runs})
	near(t, "calls a run", m.shares()[0].Calls, calls)
	trial.Samples = trial.Samples[:len(trial.Samples)-1]
	near(t, "calls of the only run", m.shares()[0].Calls, calls*runs)
}

// TestUncounted: strata whose calls cannot be counted are not passed over.
func TestUncounted(t *testing.T) {
	var m made
	m.call("getpid", 1e-7, 1e-6)
	app := m.stratum("app", "x", nil, false)
	m.row(app, "x", record.Response{Name: "first", Unit: record.Second}, 1e-5, 0.5)
	m.st.Strata[1].Uncounted = "it weighs no call"
	if s := m.shares(); len(s) != 1 || s[0].Workload != "app" || s[0].Missing != "it weighs no call" {
		t.Errorf("%+v", s)
	}
}

// TestActive: what was counted while a tool was still beginning thins the calls out;
// an operation that is the whole run has all of them.
func TestActive(t *testing.T) {
	for operation, want := range map[string]float64{"request": 10 * 1.25, "run": 10} {
		var m made
		m.call("getpid", 1e-7, 1e-6)
		app := m.stratum("app", "x", nil, true)
		m.row(app, "x", record.Response{Name: "first", Unit: record.PerSecond, Operation: operation}, 1e5, 0.5)
		trial := m.count("app", 1e5, 1, map[[2]string]float64{{"main", "read"}: 1e6})
		trial.Samples = append(trial.Samples, record.Sample{Name: plan.ActiveSample, Value: 1.25})
		near(t, "calls a "+operation, m.shares()[0].Calls, want)
	}
}

// TestLoopOfCalls: the time of a call in a loop is a median, which a busy machine
// leaves alone; the calls of the window are those of its rate.
func TestLoopOfCalls(t *testing.T) {
	var m made
	shared := m.stratum("sys", "syscall", param.Values{"call": "getpid"}, true)
	m.row(shared, "syscall", record.Response{Name: "time_per_call", Unit: record.Second, Operation: "call"}, 1e-7, 21)
	trial := m.count("sys", 0, 1, map[[2]string]float64{{"main", "getpid"}: 6e6})
	trial.Samples = append(trial.Samples, record.Sample{Name: "time_per_call", Value: 1e-7}, record.Sample{Name: "rate", Value: 6e6})
	s := m.shares()[0]
	near(t, "calls", s.Calls, 1)
	near(t, "rest", s.Rest, 0)
}

// TestOperations: a rate of bytes is told by the million, a time as it is.
func TestOperations(t *testing.T) {
	var m made
	m.call("getpid", 1e-7, 1e-6)
	bytes := m.stratum("bytes", "net", nil, true)
	m.row(bytes, "net", record.Response{Name: "first", Unit: record.BytesPerSecond, Operation: "byte"}, 1e9, 0.5)
	m.count("bytes", 1e9, 1, map[[2]string]float64{{"server", "recvfrom"}: 16000, {"client", "sendto"}: 1})
	run := m.stratum("run", "ffmpeg", nil, true)
	m.row(run, "ffmpeg", record.Response{Name: "first", Unit: record.Second, Operation: "run"}, 8, 1.1)
	m.count("run", 10, 1, map[[2]string]float64{{"main", "futex"}: 5000})
	got := m.shares()
	if got[0].Operation != "MB" || got[1].Operation != "run" {
		t.Fatalf("%+v", got)
	}
	near(t, "calls a MB", got[0].Calls, 16)
	near(t, "a MB natively", got[0].Native, 1e-3)
	near(t, "extra of a MB", got[0].Extra.Value, 1e-3)
	near(t, "calls a run", got[1].Calls, 50_000)
	near(t, "extra of a run", got[1].Extra.Value, 0.8)
}

// TestKinds: calls whose kind is measured too are priced by it: what that costs more
// than getpid is the calls' own work. Kinds of two calls are halved, loops on
// several threads left out.
func TestKinds(t *testing.T) {
	var m made
	m.call("getpid", 1e-7, 2e-6)
	m.call("read_zero", 2e-7, 3e-6)
	m.call("open_close", 1e-6, 20e-6)
	m.call("write_null", 1e-7, 50e-6)
	m.st.Workloads[len(m.st.Workloads)-1].Params["threads"] = "2"
	app := m.stratum("app", "x", nil, true)
	m.row(app, "x", rate, 1e5, 0.25)
	m.count("app", 1e5, 1, map[[2]string]float64{{"main", "read"}: 2e5, {"main", "close"}: 1e5, {"main", "write"}: 1e5, {"main", "bpf"}: 1e5})
	s := m.shares()[0]
	near(t, "explained", s.Explained.Value, 5*2e-6)
	near(t, "calls priced", s.Priced, 3)
	near(t, "of calls", s.OfCalls, 2*1e-6+1*8e-6)
	kinds := map[string]string{}
	for _, c := range s.Top {
		kinds[c.Name] = c.Kind
	}
	if d := cmp.Diff(map[string]string{"read": "read_zero", "close": "open_close", "write": "", "bpf": ""}, kinds); d != "" {
		t.Error(d)
	}
}

// TestIsolatedEnd: the factor isolate says whose calls count.
func TestIsolatedEnd(t *testing.T) {
	for isolate, want := range map[string]float64{"": 1, "server": 1, "client": 10, "both": 11} {
		var m made
		m.call("getpid", 1e-7, 1e-6)
		app := m.stratum("app", "x", nil, true)
		m.row(app, "x", rate, 1e5, 0.5)
		trial := m.count("app", 1e5, 1, map[[2]string]float64{{"server", "read"}: 1e5, {"client", "read"}: 1e6})
		if isolate != "" {
			s := &m.st.Strata[1]
			s.Counting = study.CountingCell(append(s.Cells[0], record.Level{Factor: "isolate", Value: isolate}))
			trial.Cell = s.Counting
		}
		near(t, "calls with isolate "+isolate, m.shares()[0].Calls, want)
		// What the trial says of itself goes before.
		for _, end := range []string{"server", "client"} {
			trial.Samples = append(trial.Samples, record.Sample{Name: plan.IsolatedSample, Labels: record.MakeLabels("end", end, "sandbox", "process"), Value: 1})
		}
		near(t, "calls of both ends", m.shares()[0].Calls, 11)
	}
}

// TestFindings names them from figures.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		extra, lo, hi, explained float64
		want                     Finding
	}{
		{10, 9, 11, 9, Structural}, {10, 9, 11, 10.9, Structural}, {10, 9, 11, 30, Overlapped}, {10, 9, 11, 5, Mixed},
		{10, 9, 11, 1, Implementation}, {10, -1, 22, 9, NoExtra}, {-3, -4, -2, 1, NoExtra}, {10, 0, 0, 2, Implementation},
	} {
		s := Share{Extra: Figure{c.extra, c.lo, c.hi}, Explained: Figure{Value: c.explained}, Rest: c.extra - c.explained}
		if got := s.find(); got != c.want {
			t.Errorf("%+v is %s", c, got)
		}
	}
}

// TestMissing: what is not there is said.
func TestMissing(t *testing.T) {
	build := func(change func(*made)) Share {
		var m made
		m.call("getpid", 1e-7, 1e-6)
		app := m.stratum("app", "x", nil, true)
		m.row(app, "x", rate, 1e5, 0.5)
		m.count("app", 1e5, 1, map[[2]string]float64{{"main", "read"}: 1e5})
		change(&m)
		return m.shares()[0]
	}
	for want, change := range map[string]func(*made){
		"":            func(*made) {},
		"has not run": func(m *made) { m.trials = nil },
		"failed: it died": func(m *made) {
			m.trials[0].Status, m.trials[0].Failure = record.Failed, &record.Failure{Kind: "died", Reason: "it died"}
		},
		"no usable value":   func(m *made) { m.trials[0].Samples[0].Value = math.NaN() },
		"no ratio":          func(m *made) { m.rows[1].Missing = "it failed" },
		"no cost of a call": func(m *made) { m.rows = m.rows[1:] },
		"too large":         func(m *made) { m.rows[1].Estimate.Ratio = 1e-308; m.rows[1].Estimate.Base = 1e-300 },
		"is not positive":   func(m *made) { m.rows[1].Estimate.Base = -1 },
	} {
		if s := build(change); (want == "") != (s.Missing == "") || !strings.Contains(s.Missing, want) {
			t.Errorf("want %q, got %q", want, s.Missing)
		} else if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	}
	var m made
	app := m.stratum("app", "x", nil, true)
	m.row(app, "x", rate, 1e5, 0.5)
	if s := m.shares(record.Skip{Cell: study.CountingAll(), Reason: "no BPF here"}); s[0].Missing != "no BPF here" {
		t.Errorf("%q", s[0].Missing)
	}
	m.st.Strata[0].Counting = nil
	if s := m.shares(); s != nil {
		t.Errorf("%+v, and nothing was asked", s)
	}
}

// TestLimits: of two getpid strata, that with the limits of the application counts.
func TestLimits(t *testing.T) {
	var m made
	for limit, cost := range map[string]float64{"1": 1e-6, "2": 5e-6} {
		shared := m.stratum("sys "+limit, "syscall", param.Values{}, false)
		r := m.row(shared, "syscall", record.Response{Name: "time_per_call", Unit: record.Second}, 1e-7, (1e-7+cost)/1e-7)
		r.Shared = append(r.Shared, record.Level{Factor: "cpu-limit", Value: limit})
	}
	app := m.stratum("app", "x", nil, true)
	r := m.row(app, "x", rate, 1e5, 0.5)
	r.Shared = append(r.Shared, record.Level{Factor: "cpu-limit", Value: "2"})
	m.count("app", 1e5, 1, map[[2]string]float64{{"main", "read"}: 1e5})
	near(t, "cost", m.shares()[0].Cost.Value, 5e-6)
}

// TestSums: whatever is measured, explained and rest make the extra time, in any
// order of trials, and JSON takes it.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var m made
		m.call("getpid", math.Exp(r.NormFloat64()-16), math.Exp(3*r.NormFloat64()-13))
		for i := range 1 + r.IntN(4) {
			label := fmt.Sprintf("app%d", i)
			app := m.stratum(label, "x", nil, true)
			m.row(app, "x", rate, math.Exp(5*r.NormFloat64()+9), math.Exp(2*r.NormFloat64()))
			calls := map[[2]string]float64{}
			for k := range r.IntN(40) {
				calls[[2]string{"main", fmt.Sprintf("call%d", k)}] = math.Exp(4 * r.NormFloat64())
			}
			m.count(label, math.Exp(r.NormFloat64()+9), 4*r.Float64(), calls)
		}
		got := m.shares()
		for _, s := range got {
			if s.Missing != "" {
				t.Fatal(s.Missing)
			}
			if d := s.Explained.Value + s.Rest - s.Extra.Value; math.Abs(d) > 1e-12*(math.Abs(s.Extra.Value)+s.Explained.Value) {
				t.Errorf("explained %g and rest %g make %g too much of %g", s.Explained.Value, s.Rest, d, s.Extra.Value)
			}
			sum := s.Other
			for _, c := range s.Top {
				sum += c.PerOperation
			}
			if len(s.Top) > MaxTop || math.Abs(sum-s.Calls) > 1e-9*s.Calls {
				t.Errorf("%d calls named, %g of %g", len(s.Top), sum, s.Calls)
			}
			if s.Parallelism < 1 || s.Finding == "" {
				t.Errorf("%+v", s)
			}
		}
		slices.Reverse(m.trials)
		a, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(m.shares())
		if string(a) != string(b) {
			t.Fatal("it depends on the order of trials")
		}
	}
}
