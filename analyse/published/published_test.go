package published

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/stat"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Every figure of the embedded file has a mapping, every mapping a figure, and
// the ratio is that of the two columns.
func TestGuideIsMapped(t *testing.T) {
	c := csv.NewReader(strings.NewReader(guideCSV))
	c.Comment = '#'
	rows, err := c.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	figures, err := guideFigures()
	if err != nil {
		t.Fatal(err)
	}
	if len(figures) != len(rows)-1 || len(figures) < 30 {
		t.Fatalf("%d figures of %d rows", len(figures), len(rows)-1)
	}
	used := map[string]bool{}
	for i, r := range rows[1:] {
		f := figures[i]
		base, _ := strconv.ParseFloat(r[4], 64)
		other, _ := strconv.ParseFloat(r[5], 64)
		if f.Benchmark != r[0] || f.Case != r[1] || math.Abs(f.Ratio*base-other) > 1e-9*other {
			t.Errorf("row %v is read as %+v", r, f)
		}
		m := guideOf().mapping(f)
		if m.Kind == "" || m.Response == "" {
			t.Errorf("%s %s is mapped to nothing", f.Benchmark, f.Case)
		}
		used[f.Benchmark+"/"+f.Case] = true
	}
	for name := range guideOf().Figures {
		if !used[name] {
			t.Errorf("%s is mapped, and nobody published it", name)
		}
	}
	if !strings.HasPrefix(guideCSV, "# Source: ") || !strings.Contains(guideCSV, guideOf().Source) || !strings.Contains(guideCSV, guideOf().Date) {
		t.Error("the file does not say where it comes from, and from when")
	}
}

// Every word that a study may write has a table.
func TestSetsHaveTables(t *testing.T) {
	for _, name := range study.PublishedSets() {
		if tab := Compare(&study.Study{Published: name}, stat.Rule{}, nil, nil); tab == nil || tab.Name != name || len(tab.Rows) == 0 {
			t.Errorf("%s has no table", name)
		}
	}
	if tab := Compare(&study.Study{}, stat.Rule{}, nil, nil); tab != nil {
		t.Error("a study that asks for nothing has a table")
	}
}

func TestReadFiguresRefuses(t *testing.T) {
	const head = "benchmark,case,unit,direction,runc,runsc\n"
	for text, want := range map[string]string{
		"":                                  "published figures: EOF",
		"benchmark,case,unit,a,b,c\n":       "the columns are",
		head + "a,b,s,lower,1\n":            "wrong number of fields",
		head + "a,b,s,smaller,1,2\n":        `line 2: the direction is "smaller"`,
		head + "#\na,b,s,lower,0,2\n":       `line 3: "0" is not a positive number`,
		head + "a,b,s,lower,NaN,2\n":        `"NaN" is not a positive number`,
		head + "a,b,s,lower,1e-300,1e300\n": "out of range",
	} {
		if _, err := readFigures(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadFigures(f *testing.F) {
	f.Add(guideCSV)
	f.Fuzz(func(t *testing.T, text string) {
		figures, err := readFigures(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, x := range figures {
			if !(x.Ratio > 0) || math.IsInf(x.Ratio, 0) {
				t.Errorf("a ratio of %v", x.Ratio)
			}
		}
	})
}

func TestJudge(t *testing.T) {
	e := func(ratio, half float64) stat.Estimate {
		return stat.Estimate{N: 4, Ratio: ratio, Lo: ratio / (1 + half), Hi: ratio * (1 + half)}
	}
	for _, c := range []struct {
		name      string
		published float64
		e         stat.Estimate
		want      Agreement
	}{
		{"the same", 0.5, e(0.5, 0.02), Agrees},
		{"in the interval", 0.55, e(0.5, 0.2), Agrees},
		{"a quarter off", 0.5, e(0.5/1.24, 0.01), Agrees},
		{"more than a quarter off", 0.5, e(0.5/1.3, 0.01), SameDirection},
		{"far higher, both", 1.5, e(20, 0.02), SameDirection},
		{"near, on the other side", 0.95, e(1.1, 0.02), Disagrees},
		{"equal there, near here", 1.0, e(1.1, 0.02), Agrees},
		{"equal there, far here", 1.0, e(2, 0.02), Disagrees},
		{"far there, equal here", 2, e(1, 0.02), Disagrees},
		{"opposite", 0.4, e(2.5, 0.02), Disagrees},
		{"no direction here", 2, e(1.05, 0.1), Undecided},
		{"too wide to agree", 0.5, e(0.5, 0.6), SameDirection},
		{"too wide to agree, equal there", 1.01, e(1.9, 0.6), Undecided},
		{"too wide, with 1 in it", 1.5, e(1.5, 0.6), Undecided},
		{"wide, and far on the same side", 2, e(300, 1), SameDirection},
		{"wide, and far on the other side", 0.5, e(300, 1), Disagrees},
		{"two blocks", 0.5, stat.Estimate{N: 2, Ratio: 0.5}, NotMeasured},
		{"no ratio", 0.5, stat.Estimate{N: 3, Undefined: "a value is zero"}, NotMeasured},
	} {
		got, why := Judge(c.published, c.e, 0.03)
		if got != c.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", c.name, got, why, c.want)
		}
		// The answer must not depend on which side is divided by which.
		if c.e.Lo > 0 {
			turned := stat.Estimate{N: c.e.N, Ratio: 1 / c.e.Ratio, Lo: 1 / c.e.Hi, Hi: 1 / c.e.Lo}
			if again, _ := Judge(1/c.published, turned, 0.03); again != got {
				t.Errorf("%s: %s one way, %s the other", c.name, got, again)
			}
		}
	}
}

// guideStudy has a stratum for each mapping, all of its sandboxes in it.
func guideStudy(sandboxes ...string) *study.Study {
	st := &study.Study{Published: guideName, Compare: study.FactorSandbox}
	figures, _ := guideFigures()
	for i, f := range figures {
		m := guideOf().mapping(f)
		if f.Platform == "kvm" {
			m.Kind = "noop" // the stratum of the other platform measures this figure, too
		}
		p := param.Values{}
		for k, v := range m.Params {
			p[k] = v[strings.LastIndex(v, "|")+1:]
		}
		label := f.Benchmark + "-" + strconv.Itoa(i)
		st.Workloads = append(st.Workloads, study.Workload{Label: label, Kind: m.Kind, Params: p, Responses: []string{m.Response}})
		shared := record.Cell{{Factor: study.FactorWorkload, Value: label}}
		if m.Isolate != "" {
			shared = append(shared, record.Level{Factor: study.FactorIsolate, Value: m.Isolate})
		}
		s := study.Stratum{Key: shared.Key(), Shared: shared, Workload: i}
		for _, box := range sandboxes {
			s.Cells = append(s.Cells, append(shared[:len(shared):len(shared)], record.Level{Factor: study.FactorSandbox, Value: box}))
		}
		st.Strata = append(st.Strata, s)
	}
	return st
}

// Values made of known ratios come back as those ratios, of the right cells.
func TestCompare(t *testing.T) {
	st := guideStudy("process", "runc", "crun", "runsc-systrap", "runsc-ptrace")
	rule := stat.NewRule(0.95, 0.05, 0.03, []int{3, 4, 6}, 0)
	figures, _ := guideFigures()
	truth := map[string]float64{} // by workload: what runsc-ptrace costs here
	for i, w := range st.Workloads {
		switch i % 3 {
		case 0:
			truth[w.Label] = figures[i].Ratio // as published
		case 1:
			truth[w.Label] = figures[i].Ratio * figures[i].Ratio // the same direction, farther
		case 2:
			truth[w.Label] = 1 / figures[i].Ratio // the opposite
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	values := func(base, other record.Cell, response string) stat.Summary {
		if b, _ := base.Get(study.FactorSandbox); b != "runc" {
			t.Fatalf("the base is %s", b)
		}
		label, _ := other.Get(study.FactorWorkload)
		box, _ := other.Get(study.FactorSandbox)
		var pairs []stat.Pair
		for range 4 {
			machine := 3 * math.Exp(0.3*rng.NormFloat64()) // drift that both halves of a pair feel
			r := truth[label]
			if box == "runsc-systrap" {
				r = 7
			}
			pairs = append(pairs, stat.Pair{Base: machine, Other: machine * r * math.Exp(0.005*rng.NormFloat64())})
		}
		return stat.Summarise(pairs)
	}
	tab := Compare(st, rule, values, kinds())
	for _, row := range tab.Rows {
		if row.Platform == "kvm" {
			if row.Agreement != NotMeasured || !strings.Contains(row.Why, "runsc-kvm") || len(row.Measured) != 2 {
				t.Errorf("%+v", row)
			}
			continue
		}
		if len(row.Measured) != 2 || row.Measured[0].Level != "runsc-systrap" || row.Measured[1].Level != "runsc-ptrace" || row.Measured[0].Compared || !row.Measured[1].Compared {
			t.Fatalf("%s %s: %+v", row.Benchmark, row.Case, row.Measured)
		}
		e := row.Measured[1].Estimate
		if want := truth[row.Workload]; math.Abs(math.Log(e.Ratio/want)) > 0.02 || e.HalfWidth() > 0.05 || e.N != 4 {
			t.Errorf("%s %s: %+v, the truth is %g", row.Benchmark, row.Case, e, want)
		}
		if e := row.Measured[0].Estimate; math.Abs(math.Log(e.Ratio/7)) > 0.02 {
			t.Errorf("%s %s: systrap %+v", row.Benchmark, row.Case, e)
		}
		// What must come out of truth and publication, told without intervals.
		apart := math.Abs(math.Log(truth[row.Workload] / row.Ratio))
		_, n, _ := strings.Cut(row.Workload, "-")
		i, _ := strconv.Atoi(n)
		switch {
		case apart < math.Log(1.2):
			if row.Agreement != Agrees && i%3 != 2 { // opposite, and near
				t.Errorf("%s %s: %s (%s)", row.Benchmark, row.Case, row.Agreement, row.Why)
			}
		case apart > math.Log(1.35):
			want := map[int]Agreement{1: SameDirection, 2: Disagrees}[i%3]
			if row.Agreement != want {
				t.Errorf("%s %s: published %g, true here %g: %s (%s), want %s", row.Benchmark, row.Case, row.Ratio, truth[row.Workload], row.Agreement, row.Why, want)
			}
		}
	}
	if n := tab.Judged() + tab.Missing; n != len(tab.Rows) || tab.Agree == 0 || tab.Same == 0 || tab.Disagree == 0 || tab.Missing != 1 {
		t.Errorf("%d rows: %s", len(tab.Rows), tab.Summary)
	}
	if _, err := json.Marshal(tab); err != nil {
		t.Error(err)
	}
}

// What is not there is said to be missing, each in its words.
func TestCompareMissing(t *testing.T) {
	none := func(record.Cell, record.Cell, string) stat.Summary { return stat.Summarise(nil) }
	for _, c := range []struct {
		name string
		st   *study.Study
		why  string
	}{
		{"no stratum", &study.Study{Published: guideName}, "does not measure it"},
		{"no runc", guideStudy("process", "runsc-ptrace"), "both runc and runsc"},
		{"no trials", guideStudy("runc", "runsc-ptrace", "runsc-kvm"), "no block has a value of both"},
	} {
		tab := Compare(c.st, stat.NewRule(0.95, 0.05, 0.03, []int{3}, 0), none, kinds())
		for _, r := range tab.Rows {
			if r.Agreement != NotMeasured || !strings.Contains(r.Why, c.why) {
				t.Errorf("%s: %s %s: %s: %s", c.name, r.Benchmark, r.Case, r.Agreement, r.Why)
			}
		}
		if tab.Missing != len(tab.Rows) || !strings.HasPrefix(tab.Summary, "None of") {
			t.Errorf("%s: %q", c.name, tab.Summary)
		}
	}
}

// A workload with other parameters, another isolated endpoint, or without the
// response measures something else.
func TestFind(t *testing.T) {
	st := guideStudy("runc", "runsc-ptrace")
	up := guideOf().Figures["iperf/upload"]
	at := find(st, up)
	if len(at) != 1 {
		t.Fatalf("upload is found in %v", at)
	}
	stratum := &st.Strata[at[0]]
	stratum.Shared = record.Cell{{Factor: study.FactorIsolate, Value: "both"}}
	if got := find(st, up); len(got) != 0 {
		t.Errorf("both ends isolated are found as upload: %v", got)
	}
	randread := guideOf().Figures["fio.disk/randread"]
	at = find(st, randread)
	if len(at) != 1 {
		t.Fatalf("randread is found in %v", at)
	}
	w := &st.Workloads[st.Strata[at[0]].Workload]
	w.Responses = []string{"iops"}
	if got := find(st, randread); len(got) != 0 {
		t.Errorf("without its response it is found: %v", got)
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1MiB", "1048576", true}, {"1", "1.0", true}, {"500ms", "0.5s", true}, {"1", "10", false}, {"", "1", false}, {"", "", true}, {"read", "randread", false},
	} {
		if got := same(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

func TestSentence(t *testing.T) {
	got := (&Table{Title: "the guide", Agree: 3, Same: 1, Disagree: 2, Unsure: 1, Missing: 4}).sentence()
	want := "3 of 7 ratios that the guide published agree with what is measured here; 1 points in the same direction, 2 disagree, 1 is undecided."
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// kinds are the sandboxes of these tests, as tare has them.
func kinds() map[string]record.Traits {
	out := map[string]record.Traits{"process": {Family: record.FamilyNative}, "runc": {Runtime: "runc"}, "crun": {Runtime: "crun"}}
	for _, p := range []string{"systrap", "ptrace", "kvm"} {
		out["runsc-"+p] = record.Traits{Runtime: "runsc", Platform: p}
	}
	return out
}
