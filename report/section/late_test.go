package section

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
)

// TestResultsLate: the main table says which values and ratios are bounds, because pods came late.
func TestResultsLate(t *testing.T) {
	for _, late := range []struct {
		base, level bool
		want        string
	}{{false, false, "15.0 s|2.00 "}, {true, false, "> 15.0 s|< 2.00 "}, {false, true, "15.0 s|> 2.00 "}, {true, true, "> 15.0 s|≷ 2.00 "}} {
		base := analyse.Level{N: 6, Typical: 15, AtLeast: late.base}
		x := analyse.Comparison{Response: record.Response{Name: "pod_start_p99", Unit: record.Second, Better: record.Lower}, Base: base, Level: base}
		x.Workload, x.Stratum, x.Treatment, x.Baseline = "pods", "workload=pods", "sandbox=process", true
		y := x
		y.Treatment, y.Baseline, y.Level, y.Estimate, y.Verdict = "sandbox=vm", false, analyse.Level{N: 6, Typical: 30, AtLeast: late.level}, stat.Estimate{N: 6, Ratio: 2, Lo: 1.9, Hi: 2.1}, stat.Slower
		r := &analyse.Result{Compare: "sandbox", Baseline: "process", Compared: []analyse.Comparison{x, y}}
		if got := comparison(r, &x).First + "|" + comparison(r, &y).First; !strings.HasPrefix(got, late.want) {
			t.Errorf("the cells are %s, want %q", got, late.want)
		}
		said := false
		for _, b := range Legend(r).Blocks {
			for _, sign := range b.Signs {
				said = said || sign.Mark == ">"
			}
		}
		if said != (late.base || late.level) {
			t.Errorf("%+v: the legend explains the sign: %t", late, said)
		}
	}
}
