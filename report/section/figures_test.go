package section

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/merit"
	"tare/record"
	"tare/study"
)

// TestFigures: each kind of figure is written in its own way, and what is not decided or has
// no value says so.
func TestFigures(t *testing.T) {
	response := record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}
	table := func(kind study.FigureKind, text string, cells ...merit.Cell) merit.Table {
		out := merit.Table{Name: "t", Figure: text, Kind: kind, Of: "threads", Base: "0", Share: 0.9, Response: response, Factors: []string{"bs", "rw"}, Across: []string{"jobs", "depth"}, Total: "rw",
			Columns: []record.Cell{{{Factor: "jobs", Value: "4"}, {Factor: "depth", Value: "16"}}}}
		for i, c := range cells {
			cell := record.Cell{{Factor: "bs", Value: "2KiB"}, {Factor: "rw", Value: "read"}}
			out.Rows = append(out.Rows, merit.Row{Cell: cell[:2-i%2], Total: i%2 == 1, Cells: []merit.Cell{c}})
		}
		return out
	}
	span := func(lo, hi float64) *[2]float64 { return &[2]float64{lo, hi} }
	r := &analyse.Result{Level: 0.95, Figures: []merit.Table{
		table(study.FigureFewest, "fewest 90% of threads", merit.Cell{Value: new(4.0), Interval: span(4, 6), Level: "4", Lowest: "4", Highest: "6"}, merit.Cell{Value: new(7.5), Interval: span(6, 8.2)},
			merit.Cell{Value: new(2.0), Interval: span(2, 2), Level: "2", Lowest: "2", Highest: "2", Decided: true}),
		table(study.FigureGain, "gain of threads", merit.Cell{Value: new(0.254), Interval: span(0.2, 0.3)}, merit.Cell{Value: new(4.94), Why: "an interval needs 3 blocks, and a level has 1"}),
		table(study.FigureBest, "best of threads", merit.Cell{Value: new(1.5e8), Interval: span(1.4e8, 1.6e8), Missing: []string{"8"}}, merit.Cell{Why: "there are no values"}),
		table(study.FigureOver, "vm over pod", merit.Cell{Value: new(0.905), Interval: span(0.88, 0.93)}),
	}}
	want := [][]string{
		{"4 | 4–6 ?", "8 | 6–8", "2 | "},
		{"25 % | 20–30 %", "494 % | "},
		{"150 MB/s* | 140–160 MB/s", "- | "},
		{"0.91 | 0.88–0.93"},
	}
	notes := []string{"not decided", "Total: the arithmetic mean over rw", "without the levels of threads that have no value", "95 % interval"}
	titles := []string{"fewest threads that reach 90 %", "than that with threads 0", "best throughput over threads", "of vm as a multiple of that of pod"}
	for i, s := range Figures(r) {
		rows := s.Blocks[0].Table.Rows
		for k, row := range rows {
			if got := row[2].First + " | " + row[2].Second; got != want[i][k] {
				t.Errorf("%s, row %d: %q, want %q", r.Figures[i].Figure, k, got, want[i][k])
			}
			if total := row[1].First == "Total"; total != (k%2 == 1) || total != row[1].Mean {
				t.Errorf("%s, row %d: %+v", r.Figures[i].Figure, k, row[1])
			}
		}
		if head := s.Blocks[0].Table.Columns[2].Head; head != "4×16" {
			t.Errorf("the column is called %q", head)
		}
		if !strings.Contains(s.Blocks[1].Note, notes[i]) || !strings.Contains(s.Blocks[1].Note, "Columns: jobs × depth.") || !strings.Contains(s.Title, titles[i]) {
			t.Errorf("%s: %q, %q", r.Figures[i].Figure, s.Title, s.Blocks[1].Note)
		}
	}
	if item := Figures(r)[1].Blocks[2].List[0]; item.Lead != "no interval" {
		t.Errorf("%+v", item)
	}
	if item := Figures(r)[2].Blocks[2].List[0]; item.Lead != "-" || item.Text != "there are no values" {
		t.Errorf("%+v", item)
	}
	words := table(study.FigureFewest, "fewest of engine", merit.Cell{Value: new(2.0), Level: "uring"}, merit.Cell{Why: "levels that are words have no mean"})
	s := Figures(&analyse.Result{Level: 0.95, Figures: []merit.Table{words}})[0]
	if total := s.Blocks[0].Table.Rows[1]; total[2].First != "-" || total[2].Second != "" || strings.Contains(s.Blocks[1].Note, "mean") || s.Blocks[2].List[0].Text != "levels that are words have no mean" {
		t.Errorf("the total of words: %+v, %+v", total, s.Blocks[1:])
	}
	if part := figuresPart(&analyse.Result{}); len(part) != 1 || len(part[0].Blocks) != 0 {
		t.Error("a page without figures has a part of them")
	}
}
