package compare

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/store"
	"tare/study"
)

// planted measures a study twice on machines that scatter by 1 %, the second time
// with this factor on one cell.
func planted(strata, treats int, cell string, factor float64) (a, b Folder) {
	sc := scenery{name: "planted", noise: 0.01, second: 1, strata: strata, treats: treats, fixed: [2]int{8, 8}}
	r := rand.New(rand.NewPCG(11, 13))
	tr := sc.truth(r, true)
	sides := []*Folder{&a, &b}
	for i, s := range sides {
		st := makeStudy(strata, treats)
		st.Stop.Fixed, st.Seed = 8, uint64(i+1)
		for j := range st.Strata {
			for k, c := range st.Strata[j].Cells {
				if c.Key() == cell {
					tr.change[j][k] = math.Log(factor)
				}
			}
		}
		*s = Folder{Name: string(rune('A' + i)), Study: st, Trials: sc.measure(r, tr, st, i == 1)}
	}
	return a, b
}

// throughStore puts a side into a results folder and reads it back.
func throughStore(t *testing.T, s Folder, host record.Host, version string) Folder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), s.Name)
	db, err := store.Create(dir, store.Meta{StudySource: []byte("study: test\n"), StudyFile: "test.yaml", TareVersion: version,
		Host: host, Started: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Trials {
		if err := db.Append(context.Background(), &s.Trials[i], record.Evidence{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.OpenReadOnly(dir); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if s.Trials, err = db.Trials(); err != nil {
		t.Fatal(err)
	}
	if s.Sessions, err = db.Sessions(); err != nil {
		t.Fatal(err)
	}
	return s
}

func mustCompare(t *testing.T, a, b Folder, opt Options) *Result {
	t.Helper()
	if opt.Describe == nil {
		opt.Describe = describe
	}
	res, err := Compare([]Folder{a}, []Folder{b}, opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(res); err != nil {
		t.Errorf("the result is not JSON: %v", err)
	}
	n := res.Counts
	if n.Rows != len(res.Rows) || n.Changed+n.Unsure+n.Equivalent+n.Undecided+n.Missing != n.Rows {
		t.Errorf("counts do not add up: %+v, %d rows", n, len(res.Rows))
	}
	return res
}

func mustGate(t *testing.T, res *Result, a, b Folder, text string) []string {
	t.Helper()
	g, err := NewGate("--gate", text, a.Study, b.Study)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	br, err := res.Check([]*Gate{g})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := []string{}
	for _, x := range br {
		out = append(out, res.Rows[x.Row].Cell.Key())
	}
	return out
}

const culprit = "workload=w4,sandbox=box3"

// TestPlantedRegression finds 10 % in one cell of fifty, and nothing else.
func TestPlantedRegression(t *testing.T) {
	a, b := planted(10, 4, culprit, 1.1)
	a = throughStore(t, a, record.Host{Kernel: "6.1"}, "1")
	b = throughStore(t, b, record.Host{Kernel: "6.2"}, "1")
	res := mustCompare(t, a, b, Options{})
	if len(res.Rows) != 50 {
		t.Fatalf("%d rows, want 50", len(res.Rows))
	}
	var changed []string
	for i := range res.Rows {
		r := &res.Rows[i]
		if want := map[bool]Question{true: Level, false: Cost}[r.Baseline]; r.Question != want {
			t.Errorf("%s answers %s, want %s", r.Cell, r.Question, want)
		}
		if r.Change().Changed {
			changed = append(changed, r.Cell.Key())
			for name, c := range map[string]*Change{"cost": r.Cost, "level": r.Level} {
				if c.Verdict != stat.Slower || !c.Changed || math.Abs(c.Ratio-1.1) > 0.03 || c.Lo > 1.1 || c.Hi < 1.1 || *c.Q < *c.P {
					t.Errorf("%s: %+v", name, c)
				}
			}
		}
	}
	if d := cmp.Diff([]string{culprit}, changed); d != "" {
		t.Errorf("changed: %s", d)
	}
	for text, want := range map[string][]string{
		"worse than 5%":                   {culprit},
		"surely worse than 5%":            {culprit},
		"worse than 15%":                  {},
		`changed and verdict == "slower"`: {culprit},
		`changed && sandbox == "box1"`:    {},
		`verdict == "faster" and changed`: {},
		`factor["sandbox"] == "box3" && worse > 1.05 && workload in ["w4", "w5"]`: {culprit},
		`missing or only_in != "" or failed_b > 0`:                                {},
		`baseline and question == "cost"`:                                         {},
	} {
		if d := cmp.Diff(want, mustGate(t, res, a, b, text)); d != "" {
			t.Errorf("gate %s: %s", text, d)
		}
	}
	if d := cmp.Diff([]Difference{{"kernel", "6.1", "6.2"}}, res.Differences); d != "" {
		t.Errorf("differences: %s", d)
	}
}

// TestHigherIsBetter: a rate that falls is worse, whatever the ratio says.
func TestHigherIsBetter(t *testing.T) {
	a, b := planted(3, 4, culprit, 1)
	for i := range b.Trials {
		if b.Trials[i].Cell.Key() == "workload=w2,sandbox=box1" {
			b.Trials[i].Samples[0].Value /= 1.25
		}
	}
	opt := Options{Describe: func(study.Workload) []record.Response {
		return []record.Response{{Name: "time", Unit: record.Second, Better: record.Higher}}
	}}
	res := mustCompare(t, a, b, opt)
	if d := cmp.Diff([]string{"workload=w2,sandbox=box1"}, mustGate(t, res, a, b, "surely worse than 10%")); d != "" {
		t.Error(d)
	}
	if got := mustGate(t, res, a, b, "worse_hi < worse_lo or worse > worse_hi or worse < worse_lo"); len(got) > 0 {
		t.Errorf("ends of the interval out of order: %v", got)
	}
	if d := cmp.Diff([]string{"workload=w2,sandbox=box1"}, mustGate(t, res, a, b, `verdict == "slower" and changed and ratio < 0.9`)); d != "" {
		t.Error(d)
	}
	opt.Describe = func(study.Workload) []record.Response {
		return []record.Response{{Name: "time", Unit: record.Second, Better: record.Neither}}
	}
	res = mustCompare(t, a, b, opt)
	if got := mustGate(t, res, a, b, "worse > 0 or worse <= 0"); len(got) > 0 {
		t.Errorf("what has no better side is worse: %v", got)
	}
	if d := cmp.Diff([]string{"workload=w2,sandbox=box1"}, mustGate(t, res, a, b, `verdict == "lower" and changed`)); d != "" {
		t.Error(d)
	}
}

// TestCopies: results that share trials are refused, whatever the order of the trials and
// whichever side they are on. Results that are equal by chance are compared.
func TestCopies(t *testing.T) {
	a, b := planted(3, 2, "", 1)
	stamped := func(f Folder, name string, blocks int, start time.Time) Folder {
		f.Name = name
		f.Trials = slices.Clone(f.Trials)
		for i := range f.Trials {
			if f.Trials[i].Block <= blocks {
				f.Trials[i].Start = start.Add(time.Duration(f.Trials[i].Seq) * time.Second)
			}
		}
		slices.Reverse(f.Trials)
		return f
	}
	day := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	whole, again := stamped(a, "A", 8, day), stamped(b, "B", 8, day)
	part := stamped(whole, "part", 0, day)
	part.Trials = slices.DeleteFunc(part.Trials, func(x record.Trial) bool { return x.Block > 3 })
	went := stamped(b, "went on", 8, day.Add(time.Hour)) // two blocks of A, then its own
	for i := range went.Trials {
		for _, x := range whole.Trials {
			if x.Block <= 2 && x.Seq == went.Trials[i].Seq {
				went.Trials[i] = x
			}
		}
	}
	untimed := a // imported: nobody knows when
	untimed.Name = "C"
	for want, sides := range map[string][2][]Folder{
		"A is given twice":           {{a}, {a}},
		"A and C hold the same":      {{a}, {untimed}},
		"A and part share 27 trials": {{whole}, {part}},
		"A and went on share 18":     {{whole}, {went}},
		"C and A hold the same tri":  {{again, untimed}, {a}},
		"B and B2 hold the same tri": {{whole}, {again, stamped(again, "B2", 0, day)}},
	} {
		_, err := Compare(sides[0], sides[1], Options{Describe: describe})
		var r *Refusal
		if !errors.As(err, &r) || !r.Copy || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	chance := stamped(b, "B", 0, day)
	chance.Trials[0] = a.Trials[len(a.Trials)-1]
	if _, err := Compare([]Folder{a}, []Folder{chance}, Options{Describe: describe}); err != nil {
		t.Errorf("one trial of the same value, of results that know no times: %v", err)
	}
	nearly := stamped(a, "nearly", 0, day)
	nearly.Trials[0].Samples = []record.Sample{{Name: "time", Unit: record.Second, Value: 1.2345}}
	if res := mustCompare(t, a, nearly, Options{}); len(res.Warnings) == 0 || !strings.Contains(res.Warnings[0], "agree in 71 trials (of 72 and 72)") {
		t.Errorf("a copy with one value changed: %q", res.Warnings)
	}
}

// TestShuffledAndTurned: the order of trials says nothing; A and B exchanged turn
// every ratio round and nothing else.
func TestShuffledAndTurned(t *testing.T) {
	a, b := planted(6, 4, culprit, 1.2)
	res := mustCompare(t, a, b, Options{})
	shuffled := b
	shuffled.Trials = slices.Clone(b.Trials)
	r := rand.New(rand.NewPCG(5, 6))
	r.Shuffle(len(shuffled.Trials), func(i, j int) {
		shuffled.Trials[i], shuffled.Trials[j] = shuffled.Trials[j], shuffled.Trials[i]
	})
	if d := cmp.Diff(res, mustCompare(t, a, shuffled, Options{})); d != "" {
		t.Errorf("another order of trials: %s", d)
	}
	turned := mustCompare(t, b, a, Options{})
	near := cmpopts.EquateApprox(1e-9, 1e-12)
	for i := range res.Rows {
		for name, pair := range map[string][2]*Change{"cost": {res.Rows[i].Cost, turned.Rows[i].Cost}, "level": {res.Rows[i].Level, turned.Rows[i].Level}} {
			x, y := pair[0], pair[1]
			if x == nil && y == nil {
				continue
			}
			want := Change{Ratio: 1 / x.Ratio, Lo: 1 / x.Hi, Hi: 1 / x.Lo, N: x.N, P: x.P, Q: x.Q, SE: x.SE, DF: x.DF, Changed: x.Changed}
			got := *y
			got.Verdict, got.Why = "", ""
			if d := cmp.Diff(want, got, near); d != "" {
				t.Errorf("%s of %s turned round: %s", name, res.Rows[i].Cell, d)
			}
			opposite := map[stat.Verdict]stat.Verdict{stat.Slower: stat.Faster, stat.Faster: stat.Slower}
			want.Verdict = x.Verdict
			if o, ok := opposite[x.Verdict]; ok {
				want.Verdict = o
			}
			if y.Verdict != want.Verdict {
				t.Errorf("%s of %s: %s, turned round %s", name, res.Rows[i].Cell, x.Verdict, y.Verdict)
			}
		}
	}
}

// TestByHand computes one row from its trials: the cost by the ratios of the
// blocks, without moderation, and the level by the values.
func TestByHand(t *testing.T) {
	a, b := planted(1, 1, "workload=w1,sandbox=box1", 1.07)
	res := mustCompare(t, a, b, Options{})
	value := func(s Folder, cell string) map[int]float64 {
		out := map[int]float64{}
		for _, x := range s.Trials {
			if x.Cell.Key() == cell {
				out[x.Block] = math.Log(x.Samples[0].Value)
			}
		}
		return out
	}
	moments := func(v []float64) (mean, se2 float64) {
		for _, x := range v {
			mean += x / float64(len(v))
		}
		for _, x := range v {
			se2 += sq(x-mean) / float64(len(v)-1) / float64(len(v))
		}
		return mean, se2
	}
	cost := func(s Folder) (out []float64) {
		base := value(s, "workload=w1,sandbox=process")
		for k, v := range value(s, "workload=w1,sandbox=box1") {
			out = append(out, v-base[k])
		}
		return out
	}
	level := func(s Folder) (out []float64) {
		for _, v := range value(s, "workload=w1,sandbox=box1") {
			out = append(out, v)
		}
		return out
	}
	row := res.Rows[1]
	for name, c := range map[string]struct {
		of  func(Folder) []float64
		got *Change
	}{"cost": {cost, row.Cost}, "level": {level, row.Level}} {
		ma, va := moments(c.of(a))
		mb, vb := moments(c.of(b))
		df := sq(va+vb) / (va*va/7 + vb*vb/7)
		if got := c.got; math.Abs(math.Log(got.Ratio)-(mb-ma)) > 1e-12 || math.Abs(got.SE-math.Sqrt(va+vb)) > 1e-12 || math.Abs(got.DF-df) > 1e-9 {
			t.Errorf("%s: %+v, want ratio %g, se %g, df %g", name, got, math.Exp(mb-ma), math.Sqrt(va+vb), df)
		}
		if got := c.got; got.HasInterval() != true || (*got.P < 0.05) != (got.Lo > 1 || got.Hi < 1) {
			t.Errorf("%s: p %g beside the interval %g to %g", name, *got.P, got.Lo, got.Hi)
		}
	}
}

// TestStoppedAtVerdict: rows that an older version stopped because they looked
// different, less precise than asked, are told; those of a fixed number of
// blocks, precise ones and those at the last look are not.
func TestStoppedAtVerdict(t *testing.T) {
	st := makeStudy(1, 1)
	row := func(n int, lo, hi float64, ending *plan.Ending) analyse.Comparison {
		return analyse.Comparison{Ending: ending, Estimate: stat.Estimate{N: n, Ratio: math.Sqrt(lo * hi), Lo: lo, Hi: hi}}
	}
	res := &analyse.Result{Compared: []analyse.Comparison{row(3, 1.01, 1.3, nil), row(3, 0.9, 1.2, nil), row(16, 1.01, 1.3, nil), row(5, 1.01, 1.3, nil),
		row(3, 1.1, 1.15, &plan.Ending{Code: plan.EndDecided}), {}}}
	if got := stoppedAtVerdict(res, st); got != 1 {
		t.Errorf("%d rows, want the first alone", got)
	}
	st.Stop.Fixed = 3
	if got := stoppedAtVerdict(res, st); got != 0 {
		t.Errorf("fixed: %d rows, want none", got)
	}
	a, b := planted(2, 1, "", 1)
	a.Study.Stop.Fixed = 0
	a.Trials = slices.Clone(a.Trials)
	a.Trials = slices.DeleteFunc(a.Trials, func(x record.Trial) bool { return x.Block > 3 })
	for i := range a.Trials {
		if l, _ := a.Trials[i].Cell.Get("sandbox"); l == "box1" {
			a.Trials[i].Samples = []record.Sample{{Name: "time", Value: 3 + 0.2*float64(a.Trials[i].Block)}}
		} else {
			a.Trials[i].Samples = []record.Sample{{Name: "time", Value: 2}}
		}
	}
	if w := strings.Join(mustCompare(t, a, b, Options{}).Warnings, "\n"); !strings.Contains(w, "A has 2 rows that look different and are less precise than the study asks") {
		t.Errorf("warnings: %s", w)
	}
}

// TestSupersededTrialsHaveNoLevel: a good trial of a round that is over is not in
// the level either, as it is in no ratio.
func TestSupersededTrialsHaveNoLevel(t *testing.T) {
	a, _ := planted(1, 1, "", 1)
	cell := a.Study.Strata[0].Cells[0]
	res := &analyse.Result{Superseded: []analyse.Superseded{{Block: 2, Attempt: 1, Cell: cell}}}
	all := levelPart(counting(&analyse.Result{}, a.Trials)[cellKey(cell)], "time")
	rest := levelPart(counting(res, a.Trials)[cellKey(cell)], "time")
	if all.n != 8 || rest.n != 7 || all.mean == rest.mean {
		t.Errorf("%d and %d blocks, %g and %g", all.n, rest.n, all.mean, rest.mean)
	}
}
