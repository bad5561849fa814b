package analyse

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

var boxes = []string{"process", "runc", "runsc"}

func makeStudy() *study.Study {
	st := &study.Study{Name: "test", Seed: 3, Compare: "sandbox", Baseline: "process", Traits: native(),
		Factors: []study.Factor{{Name: "workload", Levels: []string{"rr", "stream", "noop"}}, {Name: "sandbox", Levels: boxes}},
		Workloads: []study.Workload{
			{Label: "rr", Kind: "net", Responses: []string{"p50", "p99"}},
			{Label: "stream", Kind: "net", Responses: []string{"throughput"}},
			{Label: "noop", Kind: "noop", Responses: []string{"time"}},
		},
		Stop: study.Stop{Looks: []int{3, 4, 6}, Confidence: 0.95, Width: 0.03, Margin: 0.03}}
	for i, w := range st.Workloads {
		l := record.Level{Factor: "workload", Value: w.Label}
		s := study.Stratum{Key: record.Cell{l}.Key(), Shared: record.Cell{l}, Workload: i}
		for _, b := range boxes {
			s.Cells = append(s.Cells, record.Cell{l, {Factor: "sandbox", Value: b}})
		}
		st.Strata = append(st.Strata, s)
	}
	return st
}

func describe(w study.Workload) []record.Response {
	return []record.Response{
		{Name: "p50", Unit: record.Second, Better: record.Lower},
		{Name: "p99", Unit: record.Second, Better: record.Lower},
		{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher},
		{Name: "time", Unit: record.Second, Better: record.Lower},
	}
}

// factor is what each sandbox does to a response that is lower when better.
var factor = map[string]float64{"process": 1, "runc": 1, "runsc": 2}

func outcome(n plan.Next) record.Trial {
	r := rand.New(rand.NewPCG(uint64(n.Block), uint64(n.Stratum*100+len(n.Cell.Key()))))
	box, _ := n.Cell.Get("sandbox")
	w, _ := n.Cell.Get("workload")
	f := factor[box]
	s := func(name string, u record.Unit, v float64) record.Sample {
		return record.Sample{Name: name, Unit: u, Value: v * math.Exp(0.01*r.NormFloat64())}
	}
	t := record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: time.Second,
		Phases: []record.Phase{{Name: "start", Duration: time.Duration(100*f) * time.Millisecond}, {Name: "stop", Duration: 10 * time.Millisecond}},
		Samples: []record.Sample{
			{Name: "sandbox_start", Labels: record.MakeLabels("end", "server", "sandbox", box), Unit: record.Second, Value: 0.1 * f},
			{Name: "sandbox_start", Labels: record.MakeLabels("end", "client", "sandbox", "other"), Unit: record.Second, Value: 9},
			{Name: "sandbox_stop", Labels: record.MakeLabels("end", "server", "sandbox", box), Unit: record.Second, Value: 0.01},
			{Name: "collector_cpu_rate", Labels: "collector=proc", Unit: record.Cores, Value: 0.02},
		}}
	switch w {
	case "rr":
		t.Samples = append(t.Samples, s("p50", record.Second, 1e-5*f), s("p99", record.Second, 1e-4*f*f))
		if box == "runsc" {
			t.Warnings = []record.Warning{{Code: "steady", Text: "no steady state"}}
		}
	case "stream":
		t.Samples = append(t.Samples, s("throughput", record.BytesPerSecond, 1e9/f))
	case "noop":
		t.Duration = time.Duration(300*f) * time.Millisecond
		t.Samples = append(t.Samples, s("time", record.Second, 0.3*f))
	}
	return t
}

func play(st *study.Study, skips []record.Skip, outcome func(plan.Next) record.Trial, nodes ...string) []record.Trial {
	var out []record.Trial
	p := plan.New(st, skips, nodes)
	for {
		n, ok := p.Next()
		if !ok {
			return out
		}
		t := outcome(n)
		t.Node = n.Node
		p.Done(&t)
		out = append(out, t)
	}
}

func find(t *testing.T, r *Result, workload, box, response string) Comparison {
	t.Helper()
	for _, c := range r.Compared {
		if c.Workload == workload && c.Treatment == "sandbox="+box && c.Response.Name == response {
			return c
		}
	}
	t.Fatalf("no comparison of %s %s %s", workload, box, response)
	return Comparison{}
}

func TestAnalyse(t *testing.T) {
	st := makeStudy()
	r := Analyse(st, play(st, nil, outcome), nil, Describe(describe))
	for _, c := range []struct {
		workload, box, response string
		ratio                   float64
		verdict                 stat.Verdict
	}{
		{"rr", "runc", "p50", 1, stat.Equivalent},
		{"rr", "runsc", "p50", 2, stat.Slower},
		{"rr", "runsc", "p99", 4, stat.Slower},
		{"stream", "runsc", "throughput", 0.5, stat.Slower},
		{"noop", "runsc", "time", 2, stat.Slower},
	} {
		got := find(t, r, c.workload, c.box, c.response)
		if got.Verdict != c.verdict || math.Abs(got.Estimate.Ratio/c.ratio-1) > 0.03 {
			t.Errorf("%+v: %s %+v %s", c, got.Verdict, got.Estimate, got.Why)
		}
		if got.Ending == nil || got.Ending.Code != plan.EndDecided || got.Level.N != got.Estimate.N {
			t.Errorf("%+v: ended %+v, level %+v", c, got.Ending, got.Level)
		}
		if q := got.Estimate.Value / got.Estimate.Base; math.Abs(q/got.Estimate.Ratio-1) > 1e-12 {
			t.Errorf("levels say %g, ratio %g", q, got.Estimate.Ratio)
		}
	}
	b := find(t, r, "rr", "process", "p50")
	if !b.Baseline || b.Verdict != "" || b.Level.N < 3 || b.Level.Unit != record.Second || b.Estimate.Ratio != 0 {
		t.Errorf("the baseline: %+v", b)
	}
	var rows []string
	for _, row := range r.Rows() {
		rows = append(rows, fmt.Sprintf("%s %s %d", row[0].Workload, row[0].Response.Name, len(row)))
	}
	if d := cmp.Diff([]string{"rr p50 3", "rr p99 3", "stream throughput 3", "noop time 3"}, rows); d != "" {
		t.Error(d)
	}
	if len(r.Warnings) != 2 || r.Warnings[0].Trials < 3 || len(r.Warnings[0].Cells) != 1 || r.Warnings[1].Code != "wide" {
		t.Errorf("warnings: %+v", r.Warnings)
	}
	o := r.Overheads[2]
	want := Overhead{Sandbox: "runsc", Trials: o.Trials, Trial: time.Second, Starts: o.Trials, Start: 200 * time.Millisecond, Stop: 10 * time.Millisecond,
		Phases:     []PhaseTime{{Name: "start", Trials: o.Trials, Median: 200 * time.Millisecond}, {Name: "stop", Trials: o.Trials, Median: 10 * time.Millisecond}},
		Noop:       600 * time.Millisecond,
		NoopTrials: find(t, r, "noop", "runsc", "time").Level.N, Collectors: []CollectorCost{{"proc", 0.02}}}
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("overhead: %s", d)
	}
	if !r.Finished || r.Reason == "" {
		t.Errorf("finished %v, %q", r.Finished, r.Reason)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestWithoutDescription(t *testing.T) {
	st := makeStudy()
	r := Analyse(st, play(st, nil, outcome), nil)
	c := find(t, r, "stream", "runsc", "throughput")
	if c.Verdict != stat.Lower || c.Response.Unit != record.BytesPerSecond {
		t.Errorf("%s %s", c.Verdict, c.Response.Unit)
	}
}

func TestOrderOfTrials(t *testing.T) {
	st := makeStudy()
	st.Retries = 1
	trials := play(st, nil, withFailures)
	want := Analyse(st, trials, nil, Describe(describe))
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
		if d := cmp.Diff(want, Analyse(st, trials, nil, Describe(describe))); d != "" {
			t.Fatalf("seed %d:\n%s", seed, d)
		}
	}
}

// withFailures fails the first attempt of some trials and gives a wrong value
// beside it, and never lets stream under runc succeed.
func withFailures(n plan.Next) record.Trial {
	t := outcome(n)
	box, _ := n.Cell.Get("sandbox")
	w, _ := n.Cell.Get("workload")
	if n.Attempt == 1 && n.Block == 2 || w == "stream" && box == "runc" {
		t.Status = record.Failed
		t.Failure = &record.Failure{Phase: "run", Kind: "died", Reason: "killed by signal 9"}
		for i := range t.Samples {
			t.Samples[i].Value *= 1000
		}
	}
	return t
}

func TestFailures(t *testing.T) {
	st := makeStudy()
	st.Retries = 1
	r := Analyse(st, play(st, nil, withFailures), nil, Describe(describe))
	c := find(t, r, "rr", "runsc", "p50")
	if c.Failed != 1 || c.Verdict != stat.Slower || math.Abs(c.Estimate.Ratio-2) > 0.1 {
		t.Errorf("a failed attempt counts: %d %s %+v", c.Failed, c.Verdict, c.Estimate)
	}
	c = find(t, r, "stream", "runc", "throughput")
	if c.Failed != 6 || c.GaveUp == "" || c.Verdict != stat.Undecided || !strings.Contains(c.Why, "signal 9") || c.Estimate.HasInterval() {
		t.Errorf("%+v", c)
	}
	if d := cmp.Diff([]Reason{{"run", "died", "killed by signal 9", 6}}, c.Failures); d != "" {
		t.Error(d)
	}
	if r.Failed != len(r.Failures) || r.Failed < 6 {
		t.Errorf("%d failed, %d listed", r.Failed, len(r.Failures))
	}
}

// TestNoImage: a cell whose image cannot be had is skipped with the reason, as if it had been found out before.
func TestNoImage(t *testing.T) {
	st := makeStudy()
	const why = "node n1 cannot pull the image a:1; push it"
	r := Analyse(st, play(st, nil, func(n plan.Next) record.Trial {
		x := outcome(n)
		w, _ := n.Cell.Get("workload")
		if box, _ := n.Cell.Get("sandbox"); w == "stream" && box == "runc" {
			x.Status, x.Failure = record.Failed, &record.Failure{Phase: "start", Kind: record.NoImage, Reason: why}
		}
		return x
	}), nil, Describe(describe))
	c := find(t, r, "stream", "runc", "throughput")
	if c.Failed != 1 || c.Outcome() != Skipped || c.GaveUp != "" || !strings.HasSuffix(c.Why, why) {
		t.Errorf("%+v", c)
	}
	if len(r.Skips) != 1 || r.Skips[0].Reason != why || r.Skips[0].Cell.Key() != c.Cell.Key() {
		t.Errorf("%v", r.Skips)
	}
	if c = find(t, r, "stream", "runsc", "throughput"); !c.Estimate.HasInterval() {
		t.Errorf("the others did not go on: %+v", c)
	}
}

// TestLastGoodAttempt: of several good attempts in a block the last counts.
func TestLastGoodAttempt(t *testing.T) {
	st := makeStudy()
	trials := play(st, nil, outcome)
	want := Analyse(st, trials, nil)
	older := trials[0]
	for i := range trials {
		trials[i].Attempt = 2
	}
	older.Samples = nil
	got := Analyse(st, append(trials, older), nil)
	if d := cmp.Diff(want.Compared, got.Compared); d != "" {
		t.Error(d)
	}
}

func TestUnitsAndBaseline(t *testing.T) {
	near := cmpopts.EquateApprox(1e-9, 0)
	st := makeStudy()
	st.Stop.Fixed = 5
	trials := play(st, nil, outcome)
	want := Analyse(st, trials, nil, Describe(describe))

	scaled := make([]record.Trial, len(trials))
	for i, tr := range trials {
		tr.Samples = append([]record.Sample(nil), tr.Samples...)
		for j := range tr.Samples {
			if tr.Samples[j].Labels == "" {
				tr.Samples[j].Value *= 1e6
			}
		}
		scaled[i] = tr
	}
	other := makeStudy()
	other.Stop.Fixed, other.Baseline = 5, "runsc"
	for i := range other.Strata {
		other.Strata[i].Baseline = 2
	}
	got := Analyse(st, scaled, nil, Describe(describe))
	swapped := Analyse(other, trials, nil, Describe(describe))
	for i, c := range want.Compared {
		g := got.Compared[i]
		g.Estimate.Base, g.Estimate.Value = c.Estimate.Base, c.Estimate.Value
		if d := cmp.Diff(c.Estimate, g.Estimate, near); d != "" || c.Verdict != g.Verdict {
			t.Errorf("other units: %s", d)
		}
	}
	opposite := map[stat.Verdict]stat.Verdict{stat.Slower: stat.Faster, stat.Faster: stat.Slower, stat.Equivalent: stat.Equivalent}
	for _, w := range []string{"rr p50", "stream throughput"} {
		wl, resp, _ := strings.Cut(w, " ")
		c, s := find(t, want, wl, "runsc", resp), find(t, swapped, wl, "process", resp)
		if math.Abs(c.Estimate.Ratio*s.Estimate.Ratio-1) > 1e-9 || s.Verdict != opposite[c.Verdict] {
			t.Errorf("swapped: %g and %g, %s and %s", c.Estimate.Ratio, s.Estimate.Ratio, c.Verdict, s.Verdict)
		}
	}
}

func TestInterruptedAndSkipped(t *testing.T) {
	st := makeStudy()
	skips := []record.Skip{{Cell: st.Strata[0].Cells[2], Reason: "runsc is not installed"}, {Cell: st.Strata[1].Cells[0], Reason: "no root"}}
	trials := play(st, skips, outcome)[:12]
	r := Analyse(st, trials, skips, Describe(describe))
	if r.Finished || r.Reason != "" || r.Left.AtLeast == 0 || r.Trials != 12 {
		t.Errorf("%+v", r.Left)
	}
	c := find(t, r, "rr", "runsc", "p50")
	if c.Verdict != stat.Undecided || !strings.Contains(c.Why, "not installed") {
		t.Errorf("skipped: %s %q", c.Verdict, c.Why)
	}
	c = find(t, r, "stream", "runsc", "throughput")
	if c.Verdict != stat.Undecided || !strings.Contains(c.Why, "baseline") {
		t.Errorf("baseline skipped: %s %q", c.Verdict, c.Why)
	}
	c = find(t, r, "noop", "runc", "time")
	if c.Estimate.HasInterval() || !strings.Contains(c.Why, "need n >= 3") || c.Ending != nil {
		t.Errorf("interrupted: %+v", c)
	}
	if empty := Analyse(st, nil, nil); len(empty.Compared) != 12 || empty.Finished {
		t.Errorf("no trials: %+v", empty)
	}
}

// TestAgreesWithPlan: the verdicts that made the plan stop are those printed.
func TestAgreesWithPlan(t *testing.T) {
	st := makeStudy()
	r := Analyse(st, play(st, nil, outcome), nil, Describe(describe))
	rule := plan.Rule(st)
	for _, c := range r.Compared {
		if c.Baseline || !c.First || c.Ending.Code != plan.EndDecided {
			continue
		}
		if !c.Verdict.Decided() && c.Estimate.HalfWidth() > rule.Width {
			t.Errorf("%s %s stopped as decided, and is %s: %s", c.Workload, c.Treatment, c.Verdict, c.Why)
		}
	}
}

// TestBelowNoise: no ratio is made with a value that is not clear of noise, on
// whichever side, and none of the blocks that remain.
func TestBelowNoise(t *testing.T) {
	st := makeStudy()
	var trials []record.Trial
	seq := 0
	for block := 1; block <= 4; block++ {
		for _, box := range boxes {
			seq++
			tr := outcome(plan.Next{Seq: seq, Block: block, Attempt: 1, Stratum: 1,
				Cell: record.Cell{{Factor: "workload", Value: "stream"}, {Factor: "sandbox", Value: box}}})
			if block == 2 && box == "runc" {
				tr.Warnings = append(tr.Warnings, record.Warning{Code: record.BelowNoise + "throughput", Text: "not clear of noise"})
			}
			trials = append(trials, tr)
		}
	}
	find := func(r *Result, box string) Comparison {
		for _, c := range r.Compared {
			if b, _ := c.Cell.Get("sandbox"); c.Workload == "stream" && b == box {
				return c
			}
		}
		t.Fatalf("%s is not compared", box)
		return Comparison{}
	}
	r := Analyse(st, trials, nil, Describe(describe))
	if c := find(r, "runc"); c.Estimate.Ratio != 0 || c.Estimate.HasInterval() || c.Verdict != stat.Undecided || c.Level.BelowNoise != 1 || c.Level.N != 3 ||
		!strings.Contains(c.Why, "throughput is below noise in 1 of 4 trials") {
		t.Errorf("own side below noise: %+v", c)
	}
	if c := find(r, "runsc"); c.Estimate.Ratio == 0 || c.Verdict == stat.Undecided {
		t.Errorf("nothing below noise: %+v", c)
	}
	for i := range trials {
		trials[i].Warnings = nil
		if b, _ := trials[i].Cell.Get("sandbox"); b == "process" {
			trials[i].Warnings = []record.Warning{{Code: record.BelowNoise + "throughput"}}
		}
	}
	r = Analyse(st, trials, nil, Describe(describe))
	if c := find(r, "runsc"); c.Estimate.Ratio != 0 || c.Verdict != stat.Undecided || c.Level.N != 4 || !strings.Contains(c.Why, "4 of 4 trials of the baseline") {
		t.Errorf("baseline below noise: %+v", c)
	}
	for i := range trials {
		trials[i].Warnings = []record.Warning{{Code: record.BelowNoise + "other"}}
	}
	if c := find(Analyse(st, trials, nil, Describe(describe)), "runsc"); c.Estimate.Ratio == 0 {
		t.Errorf("another response below noise: %+v", c)
	}
}

// native are the traits of the sandbox process, as a study parsed with tare's own kinds has
// them.
func native() map[string]record.Traits {
	return map[string]record.Traits{"process": {Family: record.FamilyNative}}
}

// TestImportedUnequal: imported cells with different numbers of blocks are all that there is. Tare
// measures no more of them, so nothing is left to do.
func TestImportedUnequal(t *testing.T) {
	st := makeStudy()
	trials := play(st, nil, outcome)
	trials = slices.DeleteFunc(trials, func(t record.Trial) bool {
		w, _ := t.Cell.Get("workload")
		return t.Block > 2 && w == "rr"
	})
	if r := Analyse(st, trials, nil, Describe(describe)); r.Finished || r.Left.AtMost == 0 {
		t.Fatalf("a study that lacks blocks is finished: %q, %+v", r.Reason, r.Left)
	}
	for i := range trials {
		trials[i].Facts = map[string]string{toolFact: "csv"}
	}
	if r := Analyse(st, trials, nil, Describe(describe)); !r.Finished || r.Reason != unequal || r.Left.AtMost != 0 || r.Left.Done != len(trials) {
		t.Errorf("imported: %q, %+v", r.Reason, r.Left)
	}
}

// TestGaps: a block that ran without a good trial of a cell is counted, with the first reason; a failure that a retry made good is not.
func TestGaps(t *testing.T) {
	st := makeStudy()
	st.Retries, st.Stop = 1, study.Stop{Fixed: 3, Confidence: 0.95, Margin: 0.03}
	full := func(from int) func(plan.Next) record.Trial {
		return func(n plan.Next) record.Trial {
			x := outcome(n)
			if box, _ := n.Cell.Get("sandbox"); box == "runsc" && (n.Block >= from || n.Attempt == 1 && n.Block == 1) {
				x.Status, x.Failure = record.Failed, &record.Failure{Phase: "prepare", Kind: "disk", Reason: "no space"}
			}
			return x
		}
	}
	for from, want := range map[int]Gaps{2: {2, 3, "no space"}, 9: {}} {
		if r := Analyse(st, play(st, nil, full(from)), nil, Describe(describe)); r.Gaps != want {
			t.Errorf("from block %d: %+v, want %+v", from, r.Gaps, want)
		}
	}
}
