package section

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/record"
)

// TestBelowNoiseCells: where there is no ratio for noise, the cell says so, and a
// value that is clear of it is still shown.
func TestBelowNoiseCells(t *testing.T) {
	for name, c := range map[string]struct {
		comparison analyse.Comparison
		want       Cell
	}{
		"own":      {analyse.Comparison{Level: analyse.Level{N: 2, Missing: 1, BelowNoise: 1}, Base: analyse.Level{N: 3}}, Cell{First: "below noise"}},
		"baseline": {analyse.Comparison{Baseline: true, Level: analyse.Level{Missing: 3, BelowNoise: 3}}, Cell{First: "below noise"}},
		"other side": {analyse.Comparison{Response: record.Response{Unit: record.Byte}, Level: analyse.Level{N: 3, Typical: 25 << 20},
			Base: analyse.Level{Missing: 3, BelowNoise: 3}}, Cell{First: "25.0 MiB", Second: "no ratio"}},
	} {
		if d := cmp.Diff(c.want, comparison(&analyse.Result{}, &c.comparison)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
}

// TestCauseCell: the word of a cell is the tally's, of one finding and of several: a cost
// has its cause; without one, what is not decided is never no cost.
func TestCauseCell(t *testing.T) {
	ratio := 264.0
	cost := cause.Finding{Costs: true, Cause: cause.Quota, Confidence: 0.9}
	open := cause.Finding{Undecided: true, Ratio: &ratio, Cause: cause.Quota, Confidence: 0.5}
	free := cause.Finding{Cause: cause.None, Confidence: 0.9}
	base := cause.Finding{CellKey: record.CellKey{Baseline: true}, Cause: cause.None, Confidence: 0.7}
	for _, c := range []struct {
		list         []cause.Finding
		first, below string
		costs        bool
	}{
		{[]cause.Finding{cost}, "quota", "90 %", true}, {[]cause.Finding{open, cost, free}, "quota", "1 of 3, 90 %", true}, {[]cause.Finding{base}, "none ?", "70 %", false},
		{[]cause.Finding{open}, "undecided", "264 ×, quota", false}, {[]cause.Finding{open, free}, "undecided", "1 of 2", false},
		{[]cause.Finding{open, open}, "undecided", "all 2", false}, {[]cause.Finding{free}, "no cost", "", false}, {[]cause.Finding{free, free}, "no cost", "", false},
	} {
		at := make([]int, len(c.list))
		for i := range at {
			at[i] = i
		}
		got := CauseCell(&analyse.Result{Causes: c.list}, at)
		if got.First != c.first || got.Second != c.below || got.Cause.Costs != c.costs || got.Cause.Undecided != (c.first == "undecided") {
			t.Errorf("%d findings: %+v, want %q, %q", len(c.list), got, c.first, c.below)
		}
	}
	if got := CauseCell(&analyse.Result{}, nil); got.First != "-" || got.Cause != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestShare: shares near 1 are no powers of ten.
func TestShare(t *testing.T) {
	for v, want := range map[float64]string{1: "100 %", 0.996: "100 %", 0.82: "82 %", 0.055: "5.5 %", 0: "0 %"} {
		if got := share(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}

// TestHostProcessors: a cluster's node has processors, and cores only where somebody knows them.
func TestHostProcessors(t *testing.T) {
	for want, h := range map[string]record.Host{"cores 2, 4 threads": {Cores: 2, Threads: 4}, "CPUs 2": {Threads: 2}, "": {}} {
		got := ""
		for _, b := range Hosts([]record.Host{h}, []string{"now"}).Blocks {
			for _, i := range b.List {
				if i.Lead == "cores" || i.Lead == "CPUs" {
					got = i.Lead + " " + i.Text
				}
			}
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", h, got, want)
		}
	}
}
