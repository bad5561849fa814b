package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/record"
	"tare/report/section"
	"tare/study"
)

func testStudy(t testing.TB) *study.Study {
	t.Helper()
	st := &study.Study{Name: "s", Compare: "sandbox", Baseline: "process", Seed: 1<<63 + 7, Source: []byte("study: s\n"),
		Factors:   []study.Factor{{Name: "workload", Levels: []string{"rr"}}, {Name: "size", Levels: []string{"1B", "2B", "3B"}}, {Name: "sandbox", Levels: []string{"process", "runc"}}},
		Workloads: []study.Workload{{Label: "rr", Kind: "net", Responses: []string{"rate", "latency_p99"}}},
		Stop:      study.Stop{Looks: []int{3, 4, 6}, Confidence: 0.95, Width: 0.015, Margin: 0.03}}
	for _, size := range st.Factors[1].Levels {
		shared := record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "size", Value: size}}
		s := study.Stratum{Key: shared.Key(), Shared: shared}
		for _, box := range st.Factors[2].Levels {
			s.Cells = append(s.Cells, append(slices.Clone(shared), record.Level{Factor: "sandbox", Value: box}))
		}
		st.Strata = append(st.Strata, s)
	}
	return st
}

// testTrials are four blocks, with a retry, a failed trial, a stray, a missing
// value and histograms.
func testTrials(t testing.TB, st *study.Study) []record.Trial {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out []record.Trial
	add := func(block, attempt int, c record.Cell, status record.Status) *record.Trial {
		x := record.Trial{Seq: len(out) + 1, Block: block, Attempt: attempt, Session: 1, Cell: c, Status: status, Start: start.Add(time.Duration(len(out)) * time.Second), Duration: 900 * time.Millisecond}
		if status == record.OK {
			h := hdrhistogram.New(1, 60e9, 3)
			for range 50 {
				_ = h.RecordValue(1000 + r.Int64N(100_000))
			}
			x.Samples = []record.Sample{{Name: "rate", Unit: record.PerSecond, Value: 1000 + 10*r.Float64()}, {Name: "latency_p99", Unit: record.Second, Value: 1e-3 * r.Float64()}}
			x.Histograms = []record.Histogram{{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: encode(t, h)}}
		} else {
			x.Failure = &record.Failure{Kind: "died", Reason: "it died"}
		}
		out = append(out, x)
		return &out[len(out)-1]
	}
	for block := 1; block <= 4; block++ {
		for i := range st.Strata {
			for j, c := range st.Strata[i].Cells {
				if block == 2 && i == 1 && j == 1 {
					add(block, 1, c, record.Failed)
					add(block, 2, c, record.OK)
					continue
				}
				add(block, 1, c, record.OK)
			}
		}
	}
	out[3].Samples = out[3].Samples[:1]
	out[4].Warnings = []record.Warning{{Code: "noisy", Text: "noise"}}
	stray := add(1, 1, record.Cell{{Factor: "workload", Value: "other"}}, record.OK)
	stray.Samples = append(stray.Samples, record.Sample{Name: "x"})
	add(1, 1, record.Cell{{Factor: "workload", Value: "another"}}, record.OK)
	return out
}

func build(t testing.TB, st *study.Study, trials []record.Trial, read ReadSeries) *Document {
	t.Helper()
	b := New(st)
	for i := range trials {
		b.Add(&trials[i])
	}
	return b.Document(Input{Tare: "v1", Dir: "d", File: "s.yaml", Result: analyse.Analyse(st, trials, nil), Series: read})
}

func text(t testing.TB, d *Document) string {
	t.Helper()
	b, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestColumnsSayWhatTheTrialsSay reads the columns back into trials.
func TestColumnsSayWhatTheTrialsSay(t *testing.T) {
	st := testStudy(t)
	trials := testTrials(t, st)
	d := build(t, st, trials, nil)
	if n := len(d.Trials.Seq); n != len(trials) {
		t.Fatalf("%d rows of %d trials", n, len(trials))
	}
	for i := range trials {
		x, c := &trials[i], d.Cells[d.Trials.Cell[i]]
		if c.Key != x.Cell.Key() || d.Trials.Seq[i] != x.Seq || d.Trials.Attempt[i] != x.Attempt || d.Trials.Block[i] != x.Block ||
			d.Trials.Session[i] != 1 || (d.Trials.OK[i] == 1) != (x.Status == record.OK) || d.Trials.Start[i] != float64(i) || d.Trials.Duration[i] != 0.9 {
			t.Errorf("row %d does not say what trial %d is", i, x.Seq)
		}
		if len(d.Trials.Values[i]) != len(c.Responses) {
			t.Fatalf("trial %d has %d values, its cell %d responses", x.Seq, len(d.Trials.Values[i]), len(c.Responses))
		}
		for j, name := range c.Responses {
			want, ok := x.Sample(name)
			got := d.Trials.Values[i][j]
			if ok != (got != nil) || ok && abs(*got/want-1) > 1e-5 {
				t.Errorf("trial %d, %s: %v, want %v (%v)", x.Seq, name, got, want, ok)
			}
		}
	}
	if want := []string{"noisy"}; !cmp.Equal(d.Trials.Warnings[4], want) || d.Trials.Warnings[5] != nil {
		t.Errorf("the warnings are %v and %v", d.Trials.Warnings[4], d.Trials.Warnings[5])
	}
	seed := section.Item{Lead: "seed", Text: "9223372036854775815"}
	if !slices.ContainsFunc(d.Sections, func(s *section.Section) bool {
		return slices.ContainsFunc(s.Blocks, func(b section.Block) bool { return slices.Contains(b.List, seed) })
	}) || d.Generated != trials[len(trials)-1].Start.Add(900*time.Millisecond).Format(time.RFC3339Nano) {
		t.Errorf("the seed is not there, or %s is not when it ended", d.Generated)
	}
	if c := d.Cells[1]; c.Treatment != "sandbox=runc" || c.Baseline || !d.Cells[0].Baseline || c.Stratum != "workload=rr,size=1B" {
		t.Errorf("the second cell is %+v", c)
	}
}

// TestResultIsTheAnalysis: to six digits, and the caller's own is left alone.
func TestResultIsTheAnalysis(t *testing.T) {
	st := testStudy(t)
	trials := testTrials(t, st)
	r := analyse.Analyse(st, trials, nil)
	b := New(st)
	for i := range trials {
		b.Add(&trials[i])
	}
	d := b.Document(Input{Result: r})
	if diff := cmp.Diff(analyse.Analyse(st, trials, nil), r); diff != "" {
		t.Errorf("the analysis was changed:\n%s", diff)
	}
	near := cmp.Comparer(func(a, b float64) bool { return a == b || abs(a-b) <= 1e-5*abs(a) })
	whole := *r
	whole.Causes, whole.Advice = nil, nil                                             // they are in the document, shorter: TestCausesRoundTrip
	whole.Skips, whole.Warnings, whole.Failures, whole.Overheads = nil, nil, nil, nil // sections have them
	if diff := cmp.Diff(&whole, d.Result, near); diff != "" {
		t.Errorf("(-analysis +document):\n%s", diff)
	}
}

func abs(x float64) float64 { return max(x, -x) }

func fakeSeries(lines, points int) ReadSeries {
	return func(t *record.Trial, use func([]record.Series)) error {
		r := rand.New(rand.NewPCG(uint64(t.Seq), uint64(t.Attempt)))
		var out []record.Series
		for i := range lines {
			s := record.Series{Name: "cpu_time", Labels: record.MakeLabels("role", fmt.Sprint(i)), Unit: record.Second, Kind: record.Counter}
			v := 0.0
			for p := range points {
				v += r.Float64()
				s.T, s.V = append(s.T, time.Duration(p)*time.Second/10), append(s.V, v)
			}
			out = append(out, s)
		}
		use(out)
		return nil
	}
}

// TestOrderDoesNotMatter: shuffled trials give the same document, byte for byte.
func TestOrderDoesNotMatter(t *testing.T) {
	st := testStudy(t)
	trials := testTrials(t, st)
	want := text(t, build(t, st, trials, fakeSeries(3, 20)))
	for seed := range uint64(5) {
		shuffled := slices.Clone(trials)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if d := cmp.Diff(want, text(t, build(t, st, shuffled, fakeSeries(3, 20)))); d != "" {
			t.Fatalf("seed %d (-in order +shuffled):\n%s", seed, d)
		}
	}
}

// TestSeriesOfEachStratumFirst: when room runs out, every stratum has had some,
// what is missing is said, and each is of the last good trial of its cell.
func TestSeriesOfEachStratumFirst(t *testing.T) {
	st := testStudy(t)
	trials := testTrials(t, st)
	d := build(t, st, trials, nil)
	b := New(st)
	for i := range trials {
		b.Add(&trials[i])
	}
	order := b.candidates()
	var strata []string
	for _, i := range order[:4] {
		strata = append(strata, d.Cells[d.Trials.Cell[i]].Stratum)
		for k := i + 1; k < len(trials); k++ {
			if trials[k].Cell.Key() == trials[i].Cell.Key() && trials[k].Status == record.OK {
				t.Errorf("trial %d is shown before %d of the same cell", trials[i].Seq, trials[k].Seq)
			}
		}
	}
	if want := []string{"workload=rr,size=1B", "workload=rr,size=2B", "workload=rr,size=3B", ""}; !cmp.Equal(strata, want) {
		t.Errorf("the first are of %v, want %v", strata, want)
	}
	big := build(t, st, trials, fakeSeries(maxLines, 5000))
	shown := 0
	for _, s := range big.Series {
		for _, l := range s.Lines {
			if len(l.T) != len(l.V) || len(l.V) > maxPoints {
				t.Fatalf("a line has %d times and %d values", len(l.T), len(l.V))
			}
		}
		shown++
	}
	if all := len(order); shown == 0 || shown > all || shown == all != (big.Omitted == "") {
		t.Errorf("%d of %d are shown, and it says %q", shown, all, big.Omitted)
	}
	damaged := build(t, st, trials, func(*record.Trial, func([]record.Series)) error { return errors.New("damaged") })
	if said := damaged.Omitted; !strings.Contains(said, "cannot be read") || !strings.Contains(said, fmt.Sprintf(" %d-%d, ", trials[order[0]].Seq, trials[order[0]].Attempt)) ||
		!strings.HasSuffix(said, fmt.Sprintf(" and %d more", len(order)-maxNamed)) {
		t.Errorf("of damaged series it says %q", damaged.Omitted)
	}
}

// TestSeriesOutOfTime: series that reading has no time for are left out, and named.
func TestSeriesOutOfTime(t *testing.T) {
	st := testStudy(t)
	var read atomic.Int64
	d := build(t, st, testTrials(t, st), func(x *record.Trial, use func([]record.Series)) error {
		if read.Add(1) > 1 {
			return fmt.Errorf("trial: %w", ErrNoTime)
		}
		return fakeSeries(1, 10)(x, use)
	})
	if len(d.Series) != 1 || !strings.Contains(d.Omitted, "are left out, because reading took too long") {
		t.Errorf("%d shown, %q", len(d.Series), d.Omitted)
	}
}

// TestRates: a counter becomes differences over time, by the unit of what it
// counts; a fall is a new beginning; threads are left out.
func TestRates(t *testing.T) {
	sec := func(s ...float64) (out []time.Duration) {
		for _, x := range s {
			out = append(out, time.Duration(x*1e9))
		}
		return out
	}
	s, err := Lines(&record.Trial{}, func(_ *record.Trial, use func([]record.Series)) error {
		use([]record.Series{
			{Name: "cpu_time", Labels: "end=server,role=sentry", Unit: record.Second, Kind: record.Counter, T: sec(1, 2, 4, 5, 6), V: []float64{0, 0.5, 2.5, 1, 2}},
			{Name: "thread_cpu_time", Labels: "role=x,tid=5", Unit: record.Second, Kind: record.Counter, T: sec(1, 2), V: []float64{0, 1}},
			{Name: "cgroup_memory", Labels: "end=server", Unit: record.Byte, Kind: record.Gauge, T: sec(0, 1), V: []float64{5, 6}},
			{Name: "cgroup_oom_kills", Unit: record.Count, Kind: record.Counter, T: sec(0, 1, 2), V: []float64{0, 0, 0}},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := TrialSeries{Lines: []Line{
		{Name: "cpu", Labels: "end=server,role=sentry", Unit: record.Cores, T: []float64{2, 4, 6}, V: []float64{0.5, 1, 1}},
		{Name: "cgroup_memory", Labels: "end=server", Unit: record.Byte, T: []float64{0, 1}, V: []float64{5, 6}},
	}}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
}

// TestThinKeepsExtremes: whatever the shape, ends, least and greatest stay.
func TestThinKeepsExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 199, 200, 201, 250, 1000, 99999} {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = float64(i), r.NormFloat64()
		}
		gx, gy := downsample(x, y, maxPoints)
		if len(gx) != len(gy) || len(gx) > maxPoints || n <= maxPoints && len(gx) != n {
			t.Fatalf("%d points of %d", len(gx), n)
		}
		if slices.Max(gy) != slices.Max(y) || slices.Min(gy) != slices.Min(y) || gx[0] != 0 || gx[len(gx)-1] != float64(n-1) || !slices.IsSorted(gx) {
			t.Errorf("of %d points the extremes, the ends or the order are lost", n)
		}
		for i := range gx {
			if y[int(gx[i])] != gy[i] {
				t.Fatalf("point %v is moved", gx[i])
			}
		}
	}
}

// TestNotesCiteTheMethod: each note's section is a heading of docs/method.md.
func TestNotesCiteTheMethod(t *testing.T) {
	b, err := os.ReadFile("../../docs/method.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, n := range notes(nil) {
		if !strings.Contains(string(b), "\n## "+n.Section+"\n") && !strings.Contains(string(b), "\n### "+n.Section+"\n") {
			t.Errorf("the note %s cites the section %q, which docs/method.md does not have", n.ID, n.Section)
		}
		if seen[n.ID] || n.Text == "" || n.Title == "" {
			t.Errorf("the note %s is there twice, or says nothing", n.ID)
		}
		seen[n.ID] = true
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct{ in, want float64 }{{0, 0}, {123456.7, 123457}, {-1.2345678e-9, -1.23457e-9}, {0.1, 0.1}, {math.MaxFloat64, 1.79769e308}} {
		if got := round(c.in, 6); got != c.want {
			t.Errorf("round(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}
