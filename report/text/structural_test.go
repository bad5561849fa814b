package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tare/analyse"
	"tare/analyse/structural"
	"tare/record"
	"tare/report/section"
)

// TestStructural: the section has each share's figures, fits the width, and says
// once why others are missing.
func TestStructural(t *testing.T) {
	cell := func(box string) record.Cell { return record.Cell{{Factor: "sandbox", Value: box}} }
	res := &analyse.Result{Treatments: []analyse.Treatment{{Key: "a", Cell: cell("runsc-systrap")}, {Key: "b", Cell: cell("runsc-ptrace")}}}
	add := func(workload, treatment string, extra, explained float64, f structural.Finding) {
		res.Structural = append(res.Structural, structural.Share{CellKey: record.CellKey{Workload: workload, Stratum: workload, Treatment: treatment}, Operation: "request",
			Native: 20e-6, Extra: structural.Figure{Value: extra}, Calls: 5, Cost: structural.Figure{Value: explained / 5},
			Explained: structural.Figure{Value: explained}, Rest: extra - explained, Parallelism: 1, Finding: f})
	}
	add("redis", "a", 40e-6, 30e-6, structural.Structural)
	add("redis", "b", 40e-6, 100e-6, structural.Overlapped)
	add("http.node", "a", 40e-6, 2e-6, structural.NoExtra)
	for _, w := range []string{"x", "y", "y"} {
		res.Structural = append(res.Structural, structural.Share{CellKey: record.CellKey{Workload: w}, Missing: "not counted: no BPF"})
	}
	for _, width := range []int{80, 120, 40} {
		var b strings.Builder
		write(&b, section.Structural(res), Options{Width: width})
		for line := range strings.SplitSeq(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%d columns in %d: %q", n, width, line)
			}
		}
		for _, want := range []string{"20.0 µs", "40.0 µs", "30.0 µs", "10.0 µs", "75 %", "250 %", "-60.0 µs", "1 of 3 have no extra time", "x, y: not counted: no BPF"} {
			if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
				t.Errorf("%d columns: nothing of %q in\n%s", width, want, b.String())
			}
		}
	}
	var none strings.Builder
	write(&none, section.Structural(&analyse.Result{}), Options{Width: 80})
	if none.Len() > 0 {
		t.Error(none.String())
	}
}
