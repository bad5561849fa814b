package plot

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
	"tare/study"
)

// withTable is a source with one summary table that has every kind of cell.
func withTable() Source {
	src := sizes().source()
	cell := func(value, ratio float64, v stat.Verdict) summary.Cell {
		return summary.Cell{Combinations: 2, Verdict: v, Estimate: stat.Estimate{N: 8, Value: value, Base: value / ratio, Ratio: ratio, Lo: ratio * 0.9, Hi: ratio * 1.1}}
	}
	few := cell(500, 0.5, stat.Slower)
	few.Fewer = true
	base := summary.Cell{Combinations: 2, Estimate: stat.Estimate{N: 2, Value: 1000, Base: 1000}}
	box := func(name string) record.Cell { return record.Cell{{Factor: "sandbox", Value: name}} }
	src.Result.Accelerators = []analyse.Accelerator{{Sandbox: "runc", Name: "runc (TCG)", Trials: map[string]int{"tcg": 4}}}
	src.Result.Tables = []summary.Table{{Name: "bandwidth", Response: record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher}, Factors: []string{"sandbox"}, Column: "size",
		Columns: []summary.Column{{Level: "1B", Combinations: 2}, {Level: "4KiB", Combinations: 2}}, Over: []summary.Levels{{Factor: "connections", Levels: []string{"1", "16"}}},
		Fixed: record.Cell{{Factor: "workload", Value: "rr"}},
		Rows: []summary.Row{{Cell: box("process"), Baseline: true, Cells: []summary.Cell{base, base}},
			{Cell: box("runc"), Cells: []summary.Cell{cell(420, 0.42, stat.Slower), few}},
			{Cell: box("runsc"), Cells: []summary.Cell{cell(1002, 1.002, stat.Equivalent), {Why: "no KVM"}}}}}}
	return src
}

// TestSummaryTableAsHeat: a cell has its value and cost; words say what it is.
func TestSummaryTableAsHeat(t *testing.T) {
	src := withTable()
	figs := build(t, src, Options{})
	f := figs[0]
	if f.Name != "table-bandwidth-rate-cost" || f.Kind != Heat || f.Title != "bandwidth: rate by sandbox and size" || len(f.Marks) != 6 {
		t.Fatalf("%s: %s, %s, %d marks", f.Name, f.Title, f.Kind, len(f.Marks))
	}
	var got []string
	for i := range f.Marks {
		got = append(got, f.place(&f.Marks[i])+": "+f.spoken(&f.Marks[i]))
	}
	want := []string{"1B, process: 1.00 k/s, the baseline", "1B, runc (TCG): 420 /s, 2.38 × the cost (2.16 to 2.65), slower", "1B, runsc: 1.00 k/s, 1.00 × the cost (0.91 to 1.11), equivalent",
		"4KiB, process: 1.00 k/s, the baseline", "4KiB, runc (TCG): 500 /s†, 2.00 × the cost (1.82 to 2.22), slower", "4KiB, runsc: no value, no KVM"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, s := range []string{"geometric means over connections 1, 16", "†: over fewer", "figures of runc (TCG) are not", "Value, and cost as a multiple of process's"} {
		if !strings.Contains(f.Caption, s) {
			t.Errorf("the caption does not say %q: %s", s, f.Caption)
		}
	}
	th, _ := NewTheme("light")
	var buf bytes.Buffer
	if err := render(&buf, &f, Output{Format: "svg", Style: Style{Theme: th, Width: 8 * vg.Inch, Height: 5 * vg.Inch}}, newFonts()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"420 /s", "2.38 ×", "500 /s†", "1.00 × =", "no value", "runc (TCG)"} {
		if !strings.Contains(buf.String(), s) {
			t.Errorf("the picture does not have %q", s)
		}
	}
	for name, opt := range map[string]Options{"levels": {Value: Level}, "only": {Only: []record.Level{{Factor: "size", Value: "1B"}}}, "by": {By: []string{"size"}}, "bars": {Kind: Bar}, "others": {Responses: []string{"latency"}}} {
		if slices.ContainsFunc(build(t, src, opt), func(f Figure) bool { return f.Summary != "" }) {
			t.Errorf("%s: the table of the whole study is there", name)
		}
	}
}

// TestBesideNested: default_vcpus in colour and the CPU limit in hatching, the
// baseline and other sandboxes beside the machines in one graph.
func TestBesideNested(t *testing.T) {
	l := lab{blocks: 3, compare: "sandbox", factors: []study.Factor{{Name: "sandbox", Levels: []string{"runc", "process", "vm"}}, {Name: "default_vcpus", Levels: []string{"1", "2", "all"}},
		{Name: "size", Levels: []string{"16B", "64KiB"}}, {Name: "cpu-limit", Levels: []string{"none", "1", "2"}}}}
	src := l.source()
	src.Result.Accelerators = []analyse.Accelerator{{Sandbox: "vm", Name: "vm (TCG)", Trials: map[string]int{"tcg": 1}}}
	// Only the machines have the nested factor.
	for i := range src.Result.Compared {
		c := &src.Result.Compared[i]
		c.Stratum = c.Cell.Without("sandbox", "default_vcpus").Key()
		if box, _ := c.Cell.Get("sandbox"); box != "vm" {
			c.Cell = c.Cell.Without("default_vcpus")
		}
	}
	seen := map[string]bool{}
	src.Result.Compared = slices.DeleteFunc(src.Result.Compared, func(c analyse.Comparison) bool {
		k := c.Cell.Key() + c.Response.Name
		defer func() { seen[k] = true }()
		return seen[k]
	})
	figs := build(t, src, Options{By: []string{"size", "default_vcpus", "cpu-limit"}, Responses: []string{"rate"}, Kind: Bar})
	if len(figs) != 1 || len(figs[0].Marks) != 2*5*3 {
		t.Fatalf("%d graphs", len(figs))
	}
	f := figs[0]
	if d := cmp.Diff([]string{"process", "runc", "1", "2", "all"}, f.Colour.Levels); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"process", "runc", "vm (TCG) 1", "vm (TCG) 2", "vm (TCG) all"}, f.Colour.Names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"none", "1", "2"}, f.Hatch.Levels); d != "" {
		t.Error(d)
	}
	for _, m := range f.Marks {
		if math.IsNaN(m.Value) {
			t.Errorf("%s has no value", m.Cell)
		}
	}
	// The same with commas and two factors: a graph for each message size.
	if figs := build(t, src, Options{By: []string{"cpu-limit", "default_vcpus"}, Responses: []string{"rate"}}); len(figs) != 2 || len(figs[0].Marks) != 15 {
		t.Errorf("%d graphs by cpu-limit and default_vcpus", len(figs))
	}
}
