package plot

import (
	"math"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/merit"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// ioThreads is a study of a pod and machines with 0, 1 and 4 threads.
func ioThreads() Source {
	src := Source{Result: &analyse.Result{Compare: "sandbox", Baseline: "pod", Finished: true, Level: 0.95}, Study: &study.Study{Compare: "sandbox",
		Factors: []study.Factor{{Name: "bs", Levels: []string{"2KiB", "1MiB"}}, {Name: "rw", Levels: []string{"read", "write"}}, {Name: "jobs", Levels: []string{"1", "16"}},
			{Name: "sandbox", Levels: []string{"pod", "vm"}}, {Name: "io_threads", Levels: []string{"0", "1", "4"}}}}}
	response := record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}
	t := merit.Table{Name: "best", Kind: study.FigureBest, Of: "io_threads", Response: response, Factors: []string{"bs", "rw"}, Across: []string{"jobs"},
		Fixed: record.Cell{{Factor: "workload", Value: "fio"}, {Factor: "sandbox", Value: "vm"}}}
	for _, bs := range []string{"2KiB", "1MiB"} {
		for _, rw := range []string{"read", "write"} {
			t.Rows = append(t.Rows, merit.Row{Cell: record.Cell{{Factor: "bs", Value: bs}, {Factor: "rw", Value: rw}}})
			for _, jobs := range []string{"1", "16"} {
				shared := record.Cell{{Factor: "workload", Value: "fio"}, {Factor: "bs", Value: bs}, {Factor: "rw", Value: rw}, {Factor: "jobs", Value: jobs}}
				for i, threads := range []string{"", "0", "1", "4"} {
					own := record.Cell{{Factor: "sandbox", Value: "vm"}, {Factor: "io_threads", Value: threads}}
					if threads == "" {
						own = record.Cell{{Factor: "sandbox", Value: "pod"}}
					}
					src.Result.Compared = append(src.Result.Compared, analyse.Comparison{Workload: "fio", Stratum: shared.Key(), Shared: shared, Treatment: own.Key(),
						Cell: append(append(record.Cell{}, shared...), own...), Baseline: threads == "", Response: response,
						Level: analyse.Level{N: 4, Typical: 1e8 * float64(i+1)}, Estimate: stat.Estimate{N: 4, Value: 1, Base: 1, Ratio: 1, Lo: 0.9, Hi: 1.1}})
				}
			}
		}
		t.Rows = append(t.Rows, merit.Row{Cell: record.Cell{{Factor: "bs", Value: bs}}, Total: true})
	}
	t.Columns = []record.Cell{{{Factor: "jobs", Value: "1"}}, {{Factor: "jobs", Value: "16"}}}
	few := t
	few.Name, few.Kind = "fewest", study.FigureFewest // of the same values: no graph of its own
	src.Result.Figures = []merit.Table{t, few, {Name: "over", Kind: study.FigureOver, Response: response}}
	return src
}

func TestGrid(t *testing.T) {
	figs, notes, err := Build(ioThreads(), Options{Kind: Grid})
	if err != nil || len(figs) != 2 {
		t.Fatalf("%d figures, notes %v, error %v", len(figs), notes, err)
	}
	for i, bs := range []string{"2KiB", "1MiB"} {
		f := &figs[i]
		if level, _ := f.Fixed.Get("bs"); level != bs || f.Name != "grid-throughput-bs-"+bs || len(f.Panels) != 4 || len(f.Marks) != 16 {
			t.Errorf("%s: fixed %s, %d panels, %d marks", f.Name, f.Fixed, len(f.Panels), len(f.Marks))
		}
		p := &f.Panels[3]
		if p.Row != 1 || p.Column != 1 || !strings.HasPrefix(p.Title, "write") || strings.Join(p.X.Levels, " ") != "pod 0 1 4" {
			t.Errorf("the last panel: row %d, column %d, %q, levels %v", p.Row, p.Column, p.Title, p.X.Levels)
		}
		for k, want := range []float64{1e8, 2e8, 3e8, 4e8} {
			if m := p.Marks[k]; m.Value != want || m.X != k {
				t.Errorf("mark %d: %g at %d", k, m.Value, m.X)
			}
		}
		for _, format := range []string{"svg", "png", "pdf"} {
			if err := render(new(strings.Builder), f, Output{Format: format, DPI: 50, Style: style(t)}, newFonts()); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
	}
	if figs, _, _ := Build(ioThreads(), Options{}); figs[0].Kind != Grid {
		t.Errorf("without options the first figure is %q", figs[0].Kind)
	}
	if _, _, err := Build(ioThreads(), Options{Kind: Grid, By: []string{"jobs"}}); err == nil || !strings.Contains(err.Error(), "leave out --by") {
		t.Errorf("with --by: %v", err)
	}
	src := ioThreads()
	src.Result.Figures = nil
	if figs, notes, err := Build(src, Options{Kind: Grid}); err != nil || len(figs) != 0 || !strings.Contains(notes[0], "no figure of merit") {
		t.Errorf("without figures of merit: %d, %v, %v", len(figs), notes, err)
	}
}

// TestGridEnds: each graph has the labels of its first and of its last level, also where others have no room, and no two of them touch.
func TestGridEnds(t *testing.T) {
	src := ioThreads()
	levels := []string{"0", "1", "2", "3", "4", "6", "8", "12", "16"}
	src.Study.Factors[4].Levels = levels
	var with []analyse.Comparison
	for _, c := range src.Result.Compared {
		if c.Baseline { // a level that is no number: the others stand evenly
			with = append(with, c)
			continue
		}
		if v, _ := c.Cell.Get("io_threads"); v != "0" {
			continue
		}
		for _, l := range levels {
			n := c
			own := record.Cell{{Factor: "sandbox", Value: "vm"}, {Factor: "io_threads", Value: l}}
			n.Treatment, n.Cell = own.Key(), append(append(record.Cell{}, c.Shared...), own...)
			with = append(with, n)
		}
	}
	src.Result.Compared = with
	figs, _, err := Build(src, Options{Kind: Grid})
	if err != nil || len(figs) == 0 || len(figs[0].Panels) == 0 {
		t.Fatalf("%d figures, error %v", len(figs), err)
	}
	st := light()
	st.Width = panelWidth * 2 // as narrow as graphs get
	d := recordFigure(t, &figs[0], st)
	var labels []written
	for _, w := range d.texts {
		if w.size == sizePanel-1 {
			labels = append(labels, w)
		}
	}
	ends := map[string]int{}
	for i, a := range labels {
		ends[a.text]++
		for _, b := range labels[i+1:] {
			if math.Abs((a.at.Y-b.at.Y).Points()) < 1 && a.corners[0].X < b.corners[1].X && b.corners[0].X < a.corners[1].X {
				t.Errorf("the labels %s and %s touch", a.text, b.text)
			}
		}
	}
	if n := len(figs[0].Panels); ends["0"] != n || ends["16"] != n {
		t.Errorf("%d graphs, of which %d have the label 0, and %d 16; labels %v", n, ends["0"], ends["16"], ends)
	}
}

func style(t *testing.T) Style {
	t.Helper()
	theme, ok := NewTheme("light")
	if !ok {
		t.Fatal("no theme")
	}
	return Style{Theme: theme, Width: 576, Height: 360}
}

// TestJoins: a line leads from number to number only, because names have no order.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		levels []string
		want   string // of each level but the first
	}{
		{[]string{"1", "2", "4"}, "yy"},
		{[]string{"process", "runc"}, "n"},
		{[]string{"none", "auto", "1", "4"}, "nny"},
		{[]string{"process", "runc", "0", "1"}, "nny"},
	} {
		a, got := newAxis("level", c.levels, c.levels), ""
		for i := 1; i < len(a.Levels); i++ {
			if a.joins(i) {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.levels, got, c.want)
		}
	}
}
