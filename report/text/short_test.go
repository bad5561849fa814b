package text

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/stat"
	"tare/record"
)

func TestShortGolden(t *testing.T) {
	for _, width := range []int{50, 80, 200} {
		var b bytes.Buffer
		if err := WriteShort(&b, testResult(), testHosts(), Options{Width: width, Dir: "results/first"}); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("short-%d", width), b.Bytes())
		fits(t, b.String(), min(width, 80))
	}
	var b bytes.Buffer
	if err := WriteMarkdown(&b, testResult(), testHosts(), Options{Dir: "results/first"}); err != nil {
		t.Fatal(err)
	}
	golden(t, "short-markdown", b.Bytes())
}

// manyOf has so many sandboxes, workloads and variants of each workload, and warnings.
func manyOf(sandboxes, workloads, variants int) *analyse.Result {
	r := testResult()
	r.Treatments, r.Compared = r.Treatments[:1], nil
	for i := range sandboxes {
		cell := record.Cell{{Factor: "sandbox", Value: fmt.Sprintf("sandbox-number-%d", i)}}
		r.Treatments = append(r.Treatments, analyse.Treatment{Key: cell.Key(), Cell: cell})
	}
	verdicts := []stat.Verdict{stat.Slower, stat.Equivalent, stat.Undecided, stat.Faster}
	for w := range workloads {
		for v := range variants {
			shared := record.Cell{{Factor: "workload", Value: fmt.Sprintf("workload-%d", w)}, {Factor: "size", Value: fmt.Sprint(v)}}
			for i, x := range r.Treatments {
				c := analyse.Comparison{Workload: shared[0].Value, Stratum: shared.Key(), Shared: shared, Treatment: x.Key, Cell: append(shared[:2:2], x.Cell...), Response: latency, First: true,
					Baseline: i == 0, Base: analyse.Level{N: 6, Typical: 1e-5}, Level: analyse.Level{N: 6, Typical: 2e-5}}
				if ratio := 1 + float64(i+w+v); i > 0 {
					c.Verdict, c.Estimate = verdicts[(i+w+v)%4], stat.Estimate{Ratio: ratio, Lo: ratio / 3, Hi: ratio * 3, N: 6}
				}
				r.Compared = append(r.Compared, c)
			}
		}
	}
	long := strings.Repeat("a warning that goes on ", 30)
	for i := range 30 {
		r.Warnings = append(r.Warnings, analyse.Warning{Code: fmt.Sprintf("code-%d", i), Text: long, Trials: i})
	}
	r.Modelled, r.Finished, r.Reason = true, false, long
	return r
}

// TestShortFitsAScreen: whatever was measured, the answer and the line that names the page
// are 40 lines of 80 columns.
func TestShortFitsAScreen(t *testing.T) {
	for _, n := range [][3]int{{0, 0, 0}, {1, 1, 1}, {4, 8, 1}, {4, 8, 9}, {12, 30, 1}, {40, 40, 2}} {
		res := manyOf(n[0], n[1], n[2])
		for _, width := range []int{80, 200} {
			var b bytes.Buffer
			if err := WriteShort(&b, res, testHosts(), Options{Width: width, Dir: "results/first"}); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(b.String(), "\n"); lines > 39 {
				t.Errorf("%v: %d lines:\n%s", n, lines, b.String())
			}
			fits(t, b.String(), 80)
			for _, want := range []string{"MODELLED", "--full", "--on model."} {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%v: it lacks %q:\n%s", n, want, b.String())
				}
			}
		}
	}
}

// TestShortHasVariants: each workload variant has a row if there is room for all. Otherwise each workload has one row, with the
// range of its variants.
func TestShortHasVariants(t *testing.T) {
	for _, c := range []struct {
		variants int
		has, not string
	}{{6, "workload-1 size=5 ", "workload-1 lat"}, {7, "workload-1 lat", "size=5 "}} {
		var b bytes.Buffer
		if err := WriteShort(&b, manyOf(2, 2, c.variants), testHosts(), Options{Width: 80, Dir: "results/first"}); err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(b.String(), "'s cost")
		if !strings.Contains(table, "\n"+c.has) || strings.Contains(table, c.not) {
			t.Errorf("%d variants:\n%s", c.variants, table)
		}
	}
}

// TestShortSaysOneDirection: a third of a throughput and three times a latency are the same
// cost, and what is surely small is not what is too noisy to say: another word, sign and colour.
func TestShortSaysOneDirection(t *testing.T) {
	r := testResult()
	r.Compared = slices.DeleteFunc(r.Compared, func(c analyse.Comparison) bool {
		return c.Workload != "net" || c.Shared.Key() == "workload=net,size=64K"
	})
	for i := range r.Compared {
		c := &r.Compared[i]
		switch {
		case c.Treatment == "sandbox=runsc-systrap" && c.Response.Better == record.Higher:
			c.Estimate.Ratio, c.Estimate.Lo, c.Estimate.Hi = 0.5, 0.4, 0.6
		case c.Treatment == "sandbox=runsc-ptrace":
			c.Verdict = stat.Undecided
			c.Estimate = stat.Estimate{Ratio: 1, Lo: 0.5, Hi: 2, N: 6}
			if c.Response.Better == record.Higher {
				c.Estimate = stat.Estimate{Ratio: 0.7, Lo: 0.5, Hi: 0.95, N: 3}
			}
		case c.Treatment == "sandbox=runc" && c.Response.Better == record.Higher:
			c.Verdict = stat.Undecided
			c.Estimate = stat.Estimate{Ratio: 1, Lo: 0.97, Hi: 1.2, N: 6, Bound: 0.031}
		}
	}
	var b bytes.Buffer
	w, ink := paper(&b, true)
	if err := WriteShort(w, r, nil, Options{Ink: ink}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.00 × ▼", "3.41 × ▼", "≤ 4 %", "0.50–2.00 ?", "no cost above 4 % in", "too noisy to say in", "1.43 × (▼)", "perhaps costs more, too few blocks"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if colour := func(s string) string { i := strings.Index(b.String(), s); return b.String()[i-5 : i] }; colour("≤ 4 %") == colour("0.50–2.00 ?") {
		t.Error("both have the same colour")
	}
}

// TestShortSaysASettingOnce: where two rules lead a sandbox to one setting, the short answer has it once.
func TestShortSaysASettingOnce(t *testing.T) {
	r := testResult()
	sets := func(value string) record.Cell { return record.Cell{{Factor: "sandbox", Value: value}} }
	r.Advice = nil
	for _, x := range []struct {
		rule, set string
		of        int
	}{{"a", "runsc-systrap", 1}, {"b", "runsc-systrap", 1}, {"c", "runsc-systrap", 2}} {
		of := r.Treatments[x.of].Key
		r.Advice = append(r.Advice, advice.Item{Rule: x.rule, Change: "Set " + x.rule, Text: "Set " + x.rule + ".", Treatment: of, Treatments: []string{of},
			Cells: []record.Cell{r.Treatments[x.of].Cell}, Sets: sets(x.set)})
	}
	var b bytes.Buffer
	if err := WriteShort(&b, r, testHosts(), Options{Dir: "results/first"}); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]bool{"Set a": true, "Set b": false, "Set c": true} {
		if strings.Contains(b.String(), set) != want {
			t.Errorf("%q is there: %v, want %v:\n%s", set, !want, want, b.String())
		}
	}
}
