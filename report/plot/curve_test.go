package plot

import (
	"strings"
	"testing"

	"tare/analyse/merit"
	"tare/record"
	"tare/study"
)

// TestCurve: a table of ratios is a line for each row, which begins at 1.
func TestCurve(t *testing.T) {
	src := ioThreads()
	copies := func(n string) record.Cell { return record.Cell{{Factor: "io_threads", Value: n}} }
	row := func(sandbox string, last merit.Cell) merit.Row {
		return merit.Row{Cell: record.Cell{{Factor: "sandbox", Value: sandbox}}, Cells: []merit.Cell{
			{Value: new(1.0), Blocks: 4}, {Value: new(0.6), Interval: &[2]float64{0.5, 0.7}, Blocks: 4}, last}}
	}
	src.Result.Figures = []merit.Table{{Name: "neighbours", Kind: study.FigureRatio, Of: "io_threads", Base: "0", Factors: []string{"sandbox"}, Across: []string{"io_threads"},
		Response: record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}, Fixed: record.Cell{{Factor: "workload", Value: "fio"}},
		Columns: []record.Cell{copies("0"), copies("1"), copies("4")},
		Rows:    []merit.Row{row("pod", merit.Cell{Value: new(0.3), Interval: &[2]float64{0.2, 0.4}, Blocks: 4}), row("vm", merit.Cell{Why: "the study has no such cell"})}}}
	figs, notes, err := Build(src, Options{})
	if err != nil {
		t.Fatal(err, notes)
	}
	var f *Figure
	for i := range figs {
		if figs[i].Curve != nil {
			f = &figs[i]
		}
		if figs[i].Kind == Grid {
			t.Errorf("a grid of ratios: %s", figs[i].Name)
		}
	}
	if f == nil || f.Name != "curve-neighbours-fio-throughput" || len(f.Marks) != 6 || strings.Join(f.X.Levels, " ") != "0 1 4" || strings.Join(f.Colour.Levels, " ") != "pod vm" {
		t.Fatalf("%+v", f)
	}
	for i, want := range []float64{1, 1, 0.6, 0.6, 0.3} {
		if m := f.Marks[i]; m.Value != want || m.X != i/2 || m.HasInterval() != (i > 1) {
			t.Errorf("mark %d: %+v", i, m)
		}
	}
	if m := f.Marks[5]; m.Gap == "" || m.Colour != 1 {
		t.Errorf("the last mark: %+v", m)
	}
	if !strings.Contains(f.Title, "fio: neighbours: throughput relative to io_threads 0") || !strings.Contains(f.Caption, "resampling whole blocks") {
		t.Errorf("%q, %q", f.Title, f.Caption)
	}
	for _, format := range []string{"svg", "png", "pdf"} {
		if err := render(new(strings.Builder), f, Output{Format: format, DPI: 50, Style: style(t)}, newFonts()); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}
