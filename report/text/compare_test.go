package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/analyse/compare"
	"tare/analyse/stat"
	"tare/record"
)

func testComparison() (*compare.Result, []compare.Breach) {
	p := func(x float64) *float64 { return &x }
	res := &compare.Result{Study: "first", Compare: "sandbox", Baseline: "process", Question: compare.Auto, Confidence: 0.95, Margin: 0.03, FDR: 0.05,
		A: compare.About{Name: "before", Trials: 120}, B: compare.About{Name: "after", Trials: 1}, Warnings: []string{"after is not finished"},
		Differences: []compare.Difference{{Field: "kernel", A: "6.1.0", B: "6.2.0"}, {Field: "tool runc", A: "1.1.5", B: "1.2.0\x1b[31m"}}}
	add := func(workload, box string, resp record.Response, q compare.Question, a, b float64, c *compare.Change) *compare.Row {
		cell := record.Cell{{Factor: "workload", Value: workload}, {Factor: "cpus", Value: "0"}, {Factor: "sandbox", Value: box}}
		m := func(v float64) *compare.Measured {
			return &compare.Measured{N: 8, Level: v * 1e-5, Cost: stat.Estimate{N: 6, Ratio: v}}
		}
		r := compare.Row{Workload: workload, Shared: cell[:2], Treatment: cell[2:], Cell: cell, Baseline: box == "process", Response: resp, Question: q, A: m(a), B: m(b)}
		if q == compare.Cost {
			r.Cost, r.Level = c, &compare.Change{Ratio: c.Ratio, Lo: c.Lo, Hi: c.Hi, P: c.P, Q: c.Q, Verdict: c.Verdict, Changed: c.Changed}
		} else {
			r.Level = c
		}
		res.Rows = append(res.Rows, r)
		return &res.Rows[len(res.Rows)-1]
	}
	change := func(ratio, lo, hi, q float64, v stat.Verdict, changed bool) *compare.Change {
		return &compare.Change{Ratio: ratio, Lo: lo, Hi: hi, P: p(q / 3), Q: p(q), Verdict: v, Changed: changed, Why: "so it is"}
	}
	add("rr", "process", latency, compare.Level, 1, 1.01, change(1.01, 0.99, 1.02, 0.4, stat.Equivalent, false))
	add("rr", "runc", latency, compare.Cost, 1.5, 1.65, change(1.1, 1.05, 1.15, 0.004, stat.Slower, true))
	add("rr", "runsc", latency, compare.Cost, 8, 4, change(0.5, 0.45, 0.56, 1e-9, stat.Faster, true))
	add("stream", "process", throughput, compare.Level, 1, 0.8, change(0.8, 0.7, 0.9, 0.03, stat.Slower, true))
	add("stream", "runc", throughput, compare.Cost, 1, 1.06, change(1.06, 1.01, 1.12, 0.2, stat.Faster, false))
	add("stream", "runsc", throughput, compare.Cost, 0.5, 0.51, change(1.02, 0.8, 1.3, 0.9, stat.Undecided, false))
	add("stream", "crun", throughput, compare.Cost, 1, 1, &compare.Change{Ratio: 1.3, Verdict: stat.Undecided, Why: "need n >= 3 on both sides, have 2 and 8"})
	add("rr", "crun", latency, compare.Cost, 1, 1, &compare.Change{Undefined: "B: the value is zero", Verdict: stat.Undecided})
	only := add("rr", "youki", latency, compare.Cost, 1, 1, &compare.Change{})
	only.Cost, only.Level, only.A, only.OnlyIn = nil, nil, nil, "B"
	res.Counts = compare.Counts{Rows: 9, Changed: 3, Unsure: 1, Equivalent: 1, Undecided: 2, Missing: 2}
	return res, []compare.Breach{{Gate: "worse than 5%", Row: 1}, {Gate: "worse than 5%", Row: 3}, {Gate: "missing", Row: 8}, {Gate: `verdict == "undecided"`, Row: 5}}
}

func TestWriteCompare(t *testing.T) {
	for name, opt := range map[string]CompareOptions{
		"compare":       {Options: Options{Width: 120}},
		"compare-all":   {Options: Options{Width: 120}, All: true, Study: true},
		"compare-gates": {Options: Options{Width: 80}, Gates: []string{"worse than 5%", "missing", `verdict == "undecided"`, "surely worse than 5%", "failed_b > 9"}},
		"compare-phone": {Options: Options{Width: 40}, All: true},
	} {
		res, broken := testComparison()
		if len(opt.Gates) > 0 {
			opt.Breaches = broken
			opt.Held = []compare.Held{{Gate: "worse than 20%", Power: 0.8, Breaks: 1.268}}
			opt.Doubts = []compare.Doubt{
				{Gate: "worse than 5%", Row: 6, Why: "need n >= 3 on both sides, have 2 and 8"},
				{Gate: "surely worse than 5%", Row: 5, Why: "the interval reaches the limit, 0.9524, and a change of that size would be found in 7 %", Limit: 1 / 1.05, Power: 0.07, Blocks: 96, Width: 0.021},
			}
			for range 14 {
				opt.Doubts = append(opt.Doubts, compare.Doubt{Gate: "surely worse than 5%", Row: 4, Why: "so it is", Blocks: 8, Width: 0.04})
			}
		}
		var b bytes.Buffer
		w, ink := paper(&b, name == "compare-gates")
		opt.Ink = ink
		if err := WriteCompare(w, res, opt); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
		for line := range strings.Lines(b.String()) {
			if !ink.On() && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > max(opt.Width, 40) {
				t.Errorf("%s: wider than %d: %s", name, opt.Width, line)
			}
		}
		if strings.Contains(b.String(), "1.2.0\x1b") {
			t.Errorf("%s: a tool drives the terminal", name)
		}
	}
}

// TestLoneFacts: many facts of which one side knows nothing share a line. A few are listed with their values.
func TestLoneFacts(t *testing.T) {
	res := &compare.Result{Compare: "sandbox", Differences: []compare.Difference{{Field: "kernel", A: "6.1.0", B: "-"}, {Field: "sandbox=runc: main.flags", A: "-", B: "--x"}}}
	for _, box := range []string{"process", "runc"} {
		for _, fact := range []string{"node_kernel", "network", "cpu_limit_in_force", "root_file_system"} {
			res.Differences = append(res.Differences, compare.Difference{Field: "sandbox=" + box + ": main." + fact, A: "known", B: "-"})
		}
	}
	var b bytes.Buffer
	if err := WriteCompare(&b, res, CompareOptions{Options: Options{Width: 200}}); err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{
		"kernel: 6.1.0 -> -": 1, "sandbox=runc: main.flags: - -> --x": 1, "known -> -": 0,
		"known only of A: main.node_kernel, main.network, main.cpu_limit_in_force, main.root_file_system (--json has the values)": 1,
	} {
		if got := strings.Count(b.String(), want); got != n {
			t.Errorf("%d times %q in\n%s", got, want, b.String())
		}
	}
}

// TestCompareOrder: what changed comes first, the farthest from 1 first, be it
// above or below; what has no ratio is in no table.
func TestCompareOrder(t *testing.T) {
	res, broken := testComparison()
	for want, opt := range map[string]CompareOptions{
		"[2 3 1]":         {},
		"[1 2 3]":         {Study: true},
		"[2 3 1 6 4 5 0]": {All: true},
		"[0 1 2 3 4 5 6]": {All: true, Study: true},
		"[2 3 1 5]":       {Breaches: broken},
	} {
		if got := fmt.Sprint(rowOrder(res, opt)); got != want {
			t.Errorf("%+v: %s, want %s", opt, got, want)
		}
	}
}

// TestChangeMark: what may be chance has its sign in brackets, whether it does not survive among all
// rows or rests on too few blocks; what holds 1 has none.
func TestChangeMark(t *testing.T) {
	for want, c := range map[string]compare.Change{
		"▼":   {Lo: 1.2, Hi: 1.4, Verdict: stat.Slower, Changed: true},
		"(▲)": {Lo: 0.8, Hi: 0.9, Verdict: stat.Faster},
		"(▼)": {Lo: 1.05, Hi: 1.6, Verdict: stat.Undecided},
		"?":   {Lo: 0.9, Hi: 1.6, Verdict: stat.Undecided},
	} {
		if got := changeMark(&c, record.Lower); got != want {
			t.Errorf("%+v has the mark %s, want %s", c, got, want)
		}
	}
}
