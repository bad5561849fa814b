package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/record"
	"tare/report/section"
	"tare/report/words"
)

// causeResult is kataResult with a finding for each of its cells: some cost, some do
// not, of some nothing is decided, one is unclear, one was not read.
func causeResult() *analyse.Result {
	r := kataResult()
	r.Compared = nil
	for _, limit := range []string{"none", "1", "2"} {
		for i, connections := range []string{"1", "4", "16"} {
			shared := record.Cell{{Factor: "workload", Value: "stream"}, {Factor: "size", Value: "4KiB"}, {Factor: "cpu-limit", Value: limit}, {Factor: "connections", Value: connections}}
			for j, box := range r.Tables[0].Rows[:4] {
				ratio := 1 / float64(1+j)
				f := cause.Finding{CellKey: record.CellKey{Workload: "stream", Stratum: shared.Key(), Shared: shared, Treatment: box.Cell.Key(), Cell: append(shared[:4:4], box.Cell...), Baseline: j == 0}, Response: throughput, Ratio: &ratio, Costs: j >= 2, Undecided: j == 1 && limit == "1", Cause: cause.None, Confidence: 0.9, Trials: 3, Endpoint: "server", Text: "The client waits 3.1 ms of 4.0 ms."}
				switch {
				case j == 0:
					f.Ratio = nil
				case f.Undecided && i == 2:
					f.Cause, f.Confidence, f.Trials, f.Text = cause.Quota, 0.5, 1, "0.9 of 1 cores"
				case j == 2 && limit == "1" && i == 1:
					f.Cause, f.Confidence, f.Among, f.Text = cause.Untold, 0, []cause.Name{cause.Quota, cause.Helper}, "Both the quota and the helper are full"
				case j == 2 && limit != "none":
					f.Cause, f.Confidence, f.Text = cause.Quota, 0.97, "1.23 of 1.25 cores, throttled in 83 % of its periods"
				case j == 2:
					f.Cause, f.Role, f.Confidence, f.Text = cause.Helper, "vhost", 0.6, "One vhost thread is busy 88 % of its time"
					f.Price = &cause.Price{Unit: "GB", Cores: 4.5, Base: 1.8, Ratio: 2.5, Lo: 2.4, Hi: 2.6}
				case j == 3 && i == 0:
					f.Cause, f.Confidence, f.Missing, f.Text = cause.Unknown, 0, "the guest's processors; write collectors: [guest]", "not read"
				}
				r.Causes = append(r.Causes, f)
			}
		}
	}
	for _, box := range r.Tables[0].Rows[:4] {
		if r.Treatments = append(r.Treatments, analyse.Treatment{Key: box.Cell.Key(), Cell: box.Cell, Baseline: box.Baseline}); len(r.Treatments) == 3 {
			r.Treatments = r.Treatments[2:]
		}
	}
	return r
}

func TestCausesGolden(t *testing.T) {
	for _, tables := range []bool{true, false} {
		for _, width := range []int{60, 80, 120, 200} {
			r := causeResult()
			name := "causes-tables"
			if !tables {
				r.Tables, name = nil, "causes"
			}
			var b strings.Builder
			write(&b, section.Causes(r), Options{Width: width})
			fits(t, b.String(), width)
			golden(t, fmt.Sprintf("%s-%d", name, width), []byte(b.String()))
		}
	}
}

// TestCausesSaidOnce: what was not read stands once, however many cells lack it, and a
// study of which nothing was read has no table of question marks.
func TestCausesSaidOnce(t *testing.T) {
	r := causeResult()
	var b strings.Builder
	write(&b, section.Causes(r), Options{Width: 200})
	if n := strings.Count(b.String(), "write collectors: [guest]"); n != 1 || !strings.Contains(b.String(), "unknown in 3 cases") {
		t.Errorf("%d times:\n%s", n, b.String())
	}
	for i := range r.Causes {
		r.Causes[i].Cause, r.Causes[i].Missing = cause.Unknown, "all"
	}
	b.Reset()
	write(&b, section.Causes(r), Options{Width: 200})
	if lines := strings.Count(b.String(), "\n"); lines > 5 {
		t.Errorf("%d lines say that nothing is known:\n%s", lines, b.String())
	}
}

// TestModelledIsSaid at the top and below each table, and nowhere of measured figures.
func TestModelledIsSaid(t *testing.T) {
	r := causeResult()
	count := func() int {
		t.Helper()
		var b bytes.Buffer
		if err := Write(&b, r, nil, Options{Width: 120}); err != nil {
			t.Fatal(err)
		}
		if r.Modelled && !strings.Contains(strings.Join(strings.SplitN(b.String(), "\n", 5)[:4], "\n"), "MODELLED, not measured") {
			t.Errorf("the top does not say it:\n%.300s", b.String())
		}
		rules := 0
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSpace(line); line != "" && strings.Trim(line, "-") == "" {
				rules++
			}
		}
		if n := strings.Count(b.String(), words.Modelled); r.Modelled && n != rules {
			t.Errorf("%d tables, %d of them say it:\n%s", rules, n, b.String())
		}
		return strings.Count(strings.ToLower(b.String()), "modelled")
	}
	if n := count(); n > 0 {
		t.Errorf("measured figures say %d times that they are modelled", n)
	}
	r.Modelled = true
	if n := count(); n < 5 {
		t.Errorf("said %d times", n)
	}
}

// TestCostsOfAFactor: where no sandboxes are compared, a cost is not isolation's.
func TestCostsOfAFactor(t *testing.T) {
	for compare, want := range map[string][2]string{
		"sandbox": {"Isolation costs in 1 of 1 case", "because of isolation."},
		"targets": {"The level of targets costs in 1 of 1 case", "because of the level of targets."},
	} {
		r := &analyse.Result{Compare: compare, Causes: []cause.Finding{{Costs: true, Cause: cause.None}}}
		if s := words.CausesSentence(r); !strings.HasPrefix(s, want[0]) {
			t.Errorf("%s: %s", compare, s)
		}
		r.Causes[0].Costs = false
		if s := words.CausesSentence(r); !strings.Contains(s, want[1]) {
			t.Errorf("%s: %s", compare, s)
		}
	}
}

// TestUndecidedIsNotFree: cells of which nothing is decided are not counted as free.
func TestUndecidedIsNotFree(t *testing.T) {
	open := cause.Finding{Undecided: true, Cause: cause.None, Confidence: 0.6}
	r := &analyse.Result{Causes: []cause.Finding{open, open}}
	if s := words.CausesSentence(r); strings.Contains(s, "no cost") || !strings.Contains(s, "Whether 2 more cost is not sure: too noisy") {
		t.Errorf("all undecided: %s", s)
	}
}
