package words

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/analyse/merit"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

var (
	latency    = record.Response{Name: "latency", Unit: record.Second, Better: record.Lower}
	throughput = record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}
	memory     = record.Response{Name: "memory", Unit: record.Byte, Better: record.Lower}
	size       = record.Response{Name: "size", Unit: record.Byte, Better: record.Neither}
)

func of(w string, r record.Response, ratio float64, v stat.Verdict, levels ...string) analyse.Comparison {
	shared := record.Cell{{Factor: "workload", Value: w}}
	for _, l := range levels {
		f, x, _ := strings.Cut(l, "=")
		shared = append(shared, record.Level{Factor: f, Value: x})
	}
	return analyse.Comparison{Workload: w, Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=runc", Response: r, Verdict: v, First: true,
		Level: analyse.Level{N: 6, Typical: ratio}, Base: analyse.Level{N: 6, Typical: 1}, Estimate: stat.Estimate{Ratio: ratio, Lo: ratio * 0.9, Hi: ratio * 1.2, N: 6}}
}

func atMost(c analyse.Comparison, above float64) analyse.Comparison {
	c.Estimate.Bound = above
	return c
}

func result(c ...analyse.Comparison) *analyse.Result {
	return &analyse.Result{Study: "s", Compare: "sandbox", Baseline: "process", Margin: 0.03, Confidence: 0.95, Trials: 12, Finished: true, Reason: "done", Compared: c,
		Treatments: []analyse.Treatment{{Key: "sandbox=process", Cell: record.Cell{{Factor: "sandbox", Value: "process"}}, Baseline: true},
			{Key: "sandbox=runc", Cell: record.Cell{{Factor: "sandbox", Value: "runc"}}}}}
}

// about is the sentence of the one treatment.
func about(t *testing.T, r *analyse.Result) Sentence {
	t.Helper()
	for _, s := range Answer(r, Options{}) {
		if s.About == "sandbox=runc" {
			return s
		}
	}
	t.Fatalf("nothing is said of runc: %v", Answer(r, Options{}))
	return Sentence{}
}

// TestHonest: what was not measured, or came to nothing, is said and never called
// equal, better or worse.
func TestHonest(t *testing.T) {
	change := func(f func(*analyse.Comparison)) analyse.Comparison {
		c := of("a", latency, 0, "")
		c.Estimate, c.Verdict = stat.Estimate{}, stat.Undecided
		f(&c)
		return c
	}
	for want, c := range map[string]analyse.Comparison{
		"skipped: no KVM":                change(func(c *analyse.Comparison) { c.Skipped = "no KVM"; c.Level.N = 0 }),
		"failed: a":                      change(func(c *analyse.Comparison) { c.Failed = 3; c.Level.N = 0 }),
		"below noise: a":                 change(func(c *analyse.Comparison) { c.Level.BelowNoise = 2 }),
		"without a ratio: a":             change(func(c *analyse.Comparison) { c.Estimate.Undefined = "zero" }),
		"not measured: a":                change(func(c *analyse.Comparison) { c.Level.N = 0 }),
		"too few blocks to be sure in a": change(func(c *analyse.Comparison) { c.Estimate = stat.Estimate{Ratio: 1.4, N: 2} }),
	} {
		r := result(c)
		for _, s := range []Sentence{about(t, r), Headline(r)} {
			if s.Tone == Worse || s.Tone == Better || s.Tone == Equal || strings.Contains(s.Text, "free") || strings.Contains(s.Text, "×") {
				t.Errorf("%s: it says %s: %s", want, s.Tone, s.Text)
			}
		}
		if s := about(t, r); !strings.Contains(s.Text, want) {
			t.Errorf("%q lacks %q", s.Text, want)
		}
	}
	r := result(of("a", latency, 2, stat.Slower))
	r.Finished, r.Failed, r.Left = false, 2, plan.Progress{AtLeast: 4, AtMost: 9, MostTime: time.Minute}
	all := fmt.Sprint(Answer(r, Options{}))
	for _, want := range []string{"So far, of 1 comparison", "not finished: 4 to 9 trials left, at most 1 min", "2 of 12 trials failed"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not said: %s", want, all)
		}
	}
	r.Left.Past = 30 * time.Second
	r.Modelled = true
	if s := State(r); s != "Not finished: 4 to 9 trials left, at most 1 min of modelled time, 30 s past the budget" {
		t.Errorf("of a rehearsal: %s", s)
	}
	r.Modelled = false
	if s := State(r); s != "Not finished: 4 to 9 trials left, at most 1 min, 30 s past the budget" {
		t.Errorf("of a budget that is too short: %s", s)
	}
	if s := Headline(result()); s.Text != "Nothing has been compared with process." || s.Tone != Note {
		t.Errorf("of nothing it says %v", s)
	}
}

// TestEveryComparisonIsCounted: whatever the mix, the headline's numbers add up,
// and so do the items of the sentence and what it counts as more.
func TestEveryComparisonIsCounted(t *testing.T) {
	verdicts := []stat.Verdict{stat.Slower, stat.Faster, stat.Equivalent, stat.Undecided, stat.Higher}
	numbers := regexp.MustCompile(`(\d+) (?:cost more|cost less|free|too few blocks|too noisy|different)`)
	for n := 1; n <= 12; n++ {
		var c []analyse.Comparison
		for i := range n {
			c = append(c, of(fmt.Sprintf("w%d", i), latency, 1+float64(i), verdicts[(i*n)%len(verdicts)]))
		}
		h := Headline(result(c...))
		sum := 0
		for _, m := range numbers.FindAllStringSubmatch(h.Text, -1) {
			var k int
			_, _ = fmt.Sscan(m[1], &k)
			sum += k
		}
		if sum != n || !strings.HasPrefix(h.Text, "Of "+Count(n, "comparison")+" with process") {
			t.Errorf("%d comparisons, counted as %d: %s", n, sum, h.Text)
		}
		text := about(t, result(c...)).Text
		named := len(regexp.MustCompile(`\bw\d+\b`).FindAllString(text, -1))
		for _, m := range regexp.MustCompile(`(\d+) more`).FindAllStringSubmatch(text, -1) {
			var k int
			_, _ = fmt.Sscan(m[1], &k)
			named += k
		}
		if named != n {
			t.Errorf("%d comparisons, %d of them named or counted: %s", n, named, text)
		}
	}
}

// TestFurtherResponses: the headline counts what the sentences below it count, and mentions the rest.
func TestFurtherResponses(t *testing.T) {
	further := of("a", memory, 9, stat.Slower)
	further.First = false
	r := result(of("a", latency, 2, stat.Slower), of("b", latency, 1, stat.Equivalent), further)
	r.Discoveries = &analyse.Discoveries{Rate: 0.05, Rows: 3, Called: 2, Hold: 1} // of all responses
	got := Headline(r).Text
	if !strings.HasPrefix(got, "Of 2 comparisons with process: 1 cost more and 1 free") || !strings.HasSuffix(got, " Of 1 of further responses, 1 cost more, up to 9.00 × (runc in a memory).") || strings.Contains(got, "survive") {
		t.Error(got)
	}
	if s := about(t, result(of("a", latency, 2, stat.Undecided), further)); s.Text != "runc: 9.00 × the cost in a memory; too few blocks to be sure in a." || s.Tone != Worse {
		t.Errorf("nothing is decided of the first response: %s (%s)", s.Text, s.Tone)
	}
	r.Compared[2].Verdict = stat.Undecided
	if got := Headline(r).Text; !strings.HasSuffix(got, " Not counted: 1 of further responses.") {
		t.Errorf("nothing is decided of the rest: %s", got)
	}
}

func TestStopAndBudget(t *testing.T) {
	for want, got := range map[string]string{
		"5 blocks of each workload variant, whatever the results; intervals of 95 %.": Stop(study.Stop{Fixed: 5, Confidence: 0.95}),
		"Look after 3, 4 and 6 blocks; a workload variant ends when the interval of each first figure is within 5 % either way, or within a part of a large effect. Costs within 3 % are called free. Intervals of 95 %, whenever the study stopped.": Stop(study.Stop{Looks: []int{3, 4, 6}, Confidence: 0.95, Width: 0.05, Margin: 0.03}),
		"": Budget(study.Budget{}),
		"At most 3 blocks and 4 min of measuring.": Budget(study.Budget{Blocks: 3, Time: 4 * time.Minute}),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestShortBudget: what is said to give is a flag, with a tenth to spare.
func TestShortBudget(t *testing.T) {
	for want, c := range map[string]struct {
		s *plan.Shortage
		b study.Budget
	}{
		"": {},
		"the budget of 40 s allows about 1 block, but a verdict needs 3; for verdicts, give at least --budget 4m":                        {&plan.Shortage{Fits: 1, Needs: 3, Time: 200 * time.Second}, study.Budget{Time: 40 * time.Second}},
		"the budget of 2 blocks allows about 2 blocks, but a verdict needs 3; for verdicts, give at least --set budget.blocks=3":         {&plan.Shortage{Fits: 2, Needs: 3, Blocks: 3}, study.Budget{Blocks: 2, Time: time.Hour}},
		"the budget of 10 s allows about 1 block, but a verdict needs 3; for verdicts, give at least --budget 33s --set budget.blocks=3": {&plan.Shortage{Fits: 1, Needs: 3, Time: 30 * time.Second, Blocks: 3}, study.Budget{Blocks: 1, Time: 10 * time.Second}},
	} {
		if got := Short(c.s, c.b); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestPathIsOneWord: a shell reads what Path writes as that path alone.
func TestPathIsOneWord(t *testing.T) {
	for path, want := range map[string]string{"results/first-2": "results/first-2", "/tmp/a b": "'/tmp/a b'", "-x": "./-x", "- y": "'./- y'", "it's": `'it'\''s'`, "a$(b);c": "'a$(b);c'", "~a": "'~a'", "": "''"} {
		got := Path(path)
		if got != want {
			t.Errorf("%q is written %s, want %s", path, got, want)
		}
		out, err := exec.Command("sh", "-c", "printf %s "+got).Output()
		if err != nil {
			t.Fatal(err)
		}
		if s := string(out); s != path && s != "./"+path {
			t.Errorf("%s is %q to a shell, want %q", got, s, path)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{"1 sandbox": Count(1, "sandbox"), "3 sandboxes": Count(3, "sandbox"), "0 rows": Count(0, "row")} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestExaggerated names the differences whose correction is more than a tenth of them.
func TestExaggerated(t *testing.T) {
	near, far, equal := of("a", latency, 2, stat.Slower), of("a", latency, 2, stat.Slower), of("a", latency, 1.01, stat.Equivalent)
	near.Estimate.Shrunk, far.Estimate.Shrunk, equal.Estimate.Shrunk = 1.99, 1.6, 1.001
	if got := Exaggerated(result(near, equal)); got != "" {
		t.Error(got)
	}
	if got := Exaggerated(result(near, far)); !strings.HasPrefix(got, "One ratio is probably exaggerated") || !strings.Contains(got, "1.6 instead of 2") {
		t.Error(got)
	}
	rate := of("a", throughput, 0.5, stat.Slower)
	rate.Estimate.Shrunk = 1 / 1.6
	if got := Exaggerated(result(rate)); !strings.Contains(got, "1.6 instead of 2") { // a cost, as in the tables
		t.Error(got)
	}
	if got := Exaggerated(result(far, far, far, far, far, far)); !strings.HasPrefix(got, "6 ratios are ") || !strings.HasSuffix(got, "; 2 more (in --json).") {
		t.Error(got)
	}
}

func TestDiscoveries(t *testing.T) {
	for _, c := range []struct {
		d        analyse.Discoveries
		line     string
		headline string // in it; "" for nothing of it
	}{
		{analyse.Discoveries{Rate: 0.05, Rows: 44, Called: 22, Hold: 21},
			"21 of the 22 differences survive correction for multiple comparisons (Benjamini-Hochberg over 44 rows, at most 5 % of them false).",
			" 21 of the 22 differences survive correction for multiple comparisons."},
		{analyse.Discoveries{Rate: 0.05, Rows: 44, Called: 2, Hold: 2}, "All 2 differences survive ", ""},
		{analyse.Discoveries{Rate: 0.05, Rows: 1, Called: 1, Hold: 1}, "The one difference survives correction for multiple comparisons (Benjamini-Hochberg over 1 row, at most 5 % of them false).", ""},
		{analyse.Discoveries{Rate: 0.05, Rows: 9, Called: 3}, "None of the 3 differences survives ", "None of the 3"},
		{analyse.Discoveries{Rate: 0.05, Rows: 9}, "", ""},
	} {
		r := result(of("a", latency, 2, stat.Slower))
		r.Discoveries = &c.d
		if got := Discoveries(r); !strings.HasPrefix(got, c.line) || got != "" && c.line == "" {
			t.Errorf("got  %s\nwant %s", got, c.line)
		}
		if got := Headline(r).Text; !strings.Contains(got, c.headline) || c.headline == "" && strings.Contains(got, "multiple") {
			t.Errorf("the headline: %s", got)
		}
	}
}

// TestGaps: the closing line does not stop at "all blocks" when blocks have no figure of some cell.
func TestGaps(t *testing.T) {
	r := &analyse.Result{Finished: true, Reason: "1 of the 3 blocks that were asked for (a trial failed in the rest)", Gaps: analyse.Gaps{Blocks: 2, Of: 3, Reason: "no space left on device"}}
	if got, want := State(r), "Finished: 1 of the 3 blocks that were asked for (a trial failed in the rest). 2 of 3 blocks have no good trial of some cell (first failure: no space left on device)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSameRuntime: a treatment that ran the baseline's runtime is named, unless one of its comparisons differed in it, in something else, or
// does not tell.
func TestSameRuntime(t *testing.T) {
	const said = " runc ran the same runtime as process, so it is not what makes them differ."
	rr, rw := of("rr", latency, 0.8, stat.Faster), of("rw", latency, 1.2, stat.Slower)
	same := func(c analyse.Comparison) analyse.Certificate {
		return analyse.Certificate{Stratum: c.Stratum, Treatment: c.Treatment, Blocks: 6, Program: "/usr/sbin/runc"}
	}
	unlike := same(rw)
	unlike.Differ = []string{"node"}
	for name, c := range map[string]struct {
		certificates []analyse.Certificate
		says         bool
	}{
		"same":            {[]analyse.Certificate{same(rr), same(rw)}, true},
		"one differs":     {[]analyse.Certificate{same(rr), unlike}, false},
		"one is not told": {[]analyse.Certificate{same(rr)}, false},
		"none is told":    {nil, false},
	} {
		r := result(rr, rw)
		r.Certificates = c.certificates
		if got := Headline(r).Text; strings.HasSuffix(got, said) != c.says {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestComparedNumbers: a level that is a number is said with the name of its factor.
func TestComparedNumbers(t *testing.T) {
	c := of("fio", throughput, 0.5, stat.Faster)
	c.Treatment = "copies=2"
	r := result(c)
	r.Compare, r.Baseline = study.FactorCopies, "1"
	r.Treatments = []analyse.Treatment{{Key: "copies=1", Cell: record.Cell{{Factor: study.FactorCopies, Value: "1"}}, Baseline: true}, {Key: "copies=2", Cell: record.Cell{{Factor: study.FactorCopies, Value: "2"}}}}
	var said []string
	for _, s := range Answer(r, Options{}) {
		said = append(said, s.Text)
	}
	if text := strings.Join(said, "\n"); !strings.HasPrefix(text, "Of 1 comparison with copies=1: 1 cost less.\ncopies=2: ") {
		t.Errorf("%s", text)
	}
}

// TestSearchIsNotUndecided: a search has its answer, so its report neither counts its rows as undecided like those of a study of
// fixed blocks, nor says that nothing is slower. What is decided is still said.
func TestSearchIsNotUndecided(t *testing.T) {
	r := result(of("a", latency, 1.3, stat.Undecided), of("b", latency, 1.1, stat.Undecided))
	r.Tuned = []analyse.Tuned{{}}
	r.Causes = []cause.Finding{{Undecided: true, Cause: cause.None}}
	const unasked = "A search for a level stops when its answer is sure: "
	if all := Answer(r, Options{}); len(all) != 1 || all[0].Tone != Note || all[0].Text != unasked+"2 comparisons left undecided were not its question." {
		t.Errorf("%+v", all)
	}
	if s := CausesSentence(r); !strings.HasPrefix(s, unasked+"1 case left undecided was not its question.") {
		t.Error(s)
	}
	r.Tuned = nil
	if s := CausesSentence(r); !strings.Contains(s, "Whether 1 more costs is not sure: ") {
		t.Errorf("of fixed blocks: %s", s)
	}
	r.Tuned = []analyse.Tuned{{}}
	r.Compared[1] = of("b", latency, 2.1, stat.Slower)
	all := Answer(r, Options{})
	if len(all) != 2 || all[1].Text != "runc: 2.10 × the cost in b." || strings.Contains(all[0].Text, "too few") || !strings.HasPrefix(all[0].Text, "Of 2 comparisons") || !strings.HasSuffix(all[0].Text, unasked+"1 comparison left undecided was not its question.") {
		t.Errorf("%+v", all)
	}
}

// TestDifferenceFigure: a difference has its sign and its unit.
func TestDifferenceFigure(t *testing.T) {
	table := &merit.Table{Name: "added", Kind: study.FigureDifference, Of: "link-path", Base: "wire", Response: record.Response{Name: "latency_p50", Unit: record.Second}}
	if got, want := FigureTitle(&analyse.Result{}, table), "added: latency_p50 minus that with link-path wire"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for v, want := range map[float64][2]string{0: {"0 s", ""}, 12e-6: {"+12.0 µs", "−4.00 to +28.0 µs"}, -2e-6: {"−2.00 µs", "−18.0 to +14.0 µs"}} {
		c := &merit.Cell{Value: &v}
		if v != 0 {
			c.Interval = &[2]float64{v - 16e-6, v + 16e-6}
		}
		if first, second := FigureValue(table, &merit.Row{}, c); first != want[0] || second != want[1] {
			t.Errorf("%s, %s, want %v", first, second, want)
		}
	}
}

// TestAdviceFor: advice about levels that do not say what they are names their factor, once.
func TestAdviceFor(t *testing.T) {
	for compare, want := range map[string]string{"copies": "copies=2; 4", "sandbox": "2; 4"} {
		r := &analyse.Result{Compare: compare, Baseline: "1"}
		x := advice.Item{}
		for _, l := range []string{"2", "4"} {
			c := record.Cell{{Factor: compare, Value: l}}
			r.Treatments = append(r.Treatments, analyse.Treatment{Key: c.Key(), Cell: c})
			x.Treatments, x.Cells = append(x.Treatments, c.Key()), append(x.Cells, c)
		}
		if got := AdviceFor(r, &x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
