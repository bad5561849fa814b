package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse/merit"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// Panel is one small graph of a grid.
type Panel struct {
	Figure
	Row, Column int
}

// A panel's room, and its letters.
const (
	panelWidth  = vg.Length(92)
	panelHeight = vg.Length(84)
	sizePanel   = 6.5
	labelGap    = vg.Length(1.5) // between labels of x
)

// mostPanels bounds a grid.
const mostPanels = 400

// grids draw what the tables of figures of merit are computed from: the response over the
// factor, a small graph for each cell of the table. A table with several levels of its first
// row factor has a grid for each.
func (b *builder) grids(items []item) []Figure {
	if len(b.opt.By) > 0 || b.opt.Value == Cost || b.opt.Kind != "" && b.opt.Kind != Grid {
		return nil
	}
	var out []Figure
	drawn := make(map[string]bool)
	for i := range b.src.Result.Figures {
		t := &b.src.Result.Figures[i]
		key := fmt.Sprint(t.Of, t.Response.Name, t.Factors, t.Across, t.Fixed)
		if t.Of == "" || t.Kind.Each() || drawn[key] {
			continue
		}
		drawn[key] = true
		var rows []merit.Row
		for _, row := range t.Rows {
			if row.Total {
				continue
			}
			if len(rows) > 0 && above(t, rows[0].Cell).Key() != above(t, row.Cell).Key() {
				out, rows = append(out, b.grid(t, rows, items)), nil
			}
			rows = append(rows, row)
		}
		out = append(out, b.grid(t, rows, items))
	}
	return out
}

// above are the levels that all rows of a grid share: those of all row factors but the last.
func above(t *merit.Table, cell record.Cell) record.Cell {
	if len(t.Factors) == 0 {
		return cell
	}
	return cell.Without(t.Factors[len(t.Factors)-1])
}

func (b *builder) grid(t *merit.Table, rows []merit.Row, items []item) Figure {
	compare := b.src.Result.Compare
	f := Figure{Kind: Grid, Value: Level, Response: t.Response, Compare: compare, Baseline: b.src.Result.Baseline, Margin: b.src.Result.Margin,
		Fixed: append(t.Fixed.Without(study.FactorWorkload, compare), above(t, rows[0].Cell)...), X: Axis{Factor: t.Of}}
	f.Workload, _ = t.Fixed.Get(study.FactorWorkload)
	f.Across = t.Across
	if len(t.Factors) > 0 {
		f.Down = t.Factors[len(t.Factors)-1]
	}
	by := []string{t.Of}
	if having(items, t.Of, compare) > 1 {
		by = append(by, compare)
	}
	for i, row := range rows {
		for j, column := range t.Columns {
			if len(f.Panels) == mostPanels {
				b.notes = append(b.notes, fmt.Sprintf("%s: a grid has at most %d graphs", t.Name, mostPanels))
				return f
			}
			p := Panel{Row: i, Column: j, Figure: Figure{Kind: Line, Value: Level}}
			cell := append(append(slices.Clone(t.Fixed.Without(compare)), row.Cell...), column...)
			b.fill(&p.Figure, b.beside(of(items, t, cell), by), by)
			down, _ := row.Cell.Get(f.Down)
			p.Title = strings.TrimSpace(down + " " + words.FigureColumn(b.src.Result, t, column))
			if len(p.Marks) == 0 {
				continue
			}
			f.Panels, f.Marks = append(f.Panels, p), append(f.Marks, p.Marks...)
			f.X, f.Colour = p.X, p.Colour
		}
	}
	return f
}

// of are the items of a cell of the table. What lacks the factor belongs to all its cells.
func of(items []item, t *merit.Table, cell record.Cell) []item {
	var out []item
	for _, it := range items {
		if it.Response.Name == t.Response.Name && !slices.ContainsFunc(cell, func(l record.Level) bool {
			v, ok := it.place.Get(l.Factor)
			return ok && v != l.Value
		}) {
			out = append(out, it)
		}
	}
	return out
}

// having is how many levels of the compared factor have another one.
func having(items []item, factor, compare string) int {
	levels := make(map[string]bool)
	for _, it := range items {
		if _, ok := it.place.Get(factor); ok {
			l, _ := it.place.Get(compare)
			levels[l] = true
		}
	}
	return len(levels)
}

// describeGrid writes the words of a grid.
func (b *builder) describeGrid(f *Figure) {
	f.Title = fmt.Sprintf("%s by %s, a graph for each %s", f.Response.Name, f.X.Factor, words.List(append(slices.DeleteFunc([]string{f.Down}, func(s string) bool { return s == "" }), f.Across...)))
	if f.Workload != "" {
		f.Title = f.Workload + ": " + f.Title
	}
	var sub []string
	if len(f.Fixed) > 0 {
		sub = append(sub, words.Levels(b.src.Result, f.Fixed, ", "))
	}
	if f.Response.Better != record.Neither && f.Response.Better != "" {
		sub = append(sub, string(f.Response.Better)+" is better")
	}
	f.Subtitle = strings.Join(append(sub, "each graph has an axis of its own, from 0 unless it says log"), "; ")
	f.Caption = b.caption(f)
	f.Alt = alt(f)
}

// shape is how many rows and columns of panels there are.
func (f *Figure) shape() (rows, columns int) {
	for i := range f.Panels {
		rows, columns = max(rows, f.Panels[i].Row+1), max(columns, f.Panels[i].Column+1)
	}
	return max(1, rows), max(1, columns)
}

// grid draws the panels side by side.
func (s *sheet) grid() {
	rows, columns := s.f.shape()
	w, h := (s.area.Max.X-s.area.Min.X)/vg.Length(columns), (s.area.Max.Y-s.area.Min.Y)/vg.Length(rows)
	for i := range s.f.Panels {
		p := &s.f.Panels[i]
		sub := newSheet(&p.Figure, s.style, s.fonts)
		sub.c, sub.noBold = s.c, s.noBold
		x, y := s.area.Min.X+vg.Length(p.Column)*w, s.area.Max.Y-vg.Length(p.Row)*h
		sub.area = vg.Rectangle{Min: vg.Point{X: x, Y: y - h}, Max: vg.Point{X: x + w - 6, Y: y - 4}}
		sub.smallAxes()
		sub.lines()
	}
}

// bare is a level without what is said of it: vm (TCG) is vm.
func bare(level string) string {
	level, _, _ = strings.Cut(level, " (")
	return level
}

// smallAxes are axes with the fewest letters: the ends of the y axis, and the levels of x.
func (s *sheet) smallAxes() {
	var ticks []tick
	for _, t := range s.y.ticks {
		if t.label != "" {
			ticks = append(ticks, t)
		}
	}
	wide := vg.Length(0)
	for _, t := range ticks {
		wide = max(wide, s.width(t.label, sizePanel, false))
	}
	s.area.Max.Y -= sizePanel * 1.3
	title := s.f.Title
	if unit := s.y.unit; unit != "" {
		title += " (" + unit + ")"
	} else if s.y.log {
		title += " (log)"
	}
	s.text(vg.Point{X: s.area.Min.X + wide + 4, Y: s.area.Max.Y + 3}, s.fit(title, sizePanel, s.area.Max.X-s.area.Min.X-wide), sizePanel, true, s.th.Ink, draw.XLeft, 0)
	s.area.Min.X += wide + 4
	words := vg.Length(0) // levels that are words stand upright
	for i, l := range s.f.X.Levels {
		if s.f.X.Numbers == nil || math.IsNaN(s.f.X.Numbers[i]) {
			words = max(words, min(30, s.width(bare(l), sizePanel-1, false)))
		}
	}
	s.area.Min.Y += max(words, sizePanel) + 3
	for i, t := range ticks {
		y := s.at(t.at)
		s.line(s.th.Faint, 0.4, vg.Point{X: s.area.Min.X, Y: y}, vg.Point{X: s.area.Max.X, Y: y})
		if i == 0 || i == len(ticks)-1 {
			s.text(vg.Point{X: s.area.Min.X - 3, Y: y - sizePanel*0.35}, t.label, sizePanel, false, s.th.Ink, draw.XRight, 0)
		}
	}
	// The last level's label has its room before all others: it says where the axis ends.
	last, centres := vg.Length(math.Inf(-1)), s.centres(true)
	end := len(centres) - 1
	for i, x := range centres {
		l := s.f.X.Levels[i]
		if s.f.X.Numbers == nil || math.IsNaN(s.f.X.Numbers[i]) {
			s.text(vg.Point{X: x + sizePanel*0.3, Y: s.area.Min.Y - 3}, s.fit(bare(l), sizePanel-1, words), sizePanel-1, false, s.th.Ink, draw.XRight, math.Pi/2)
			continue
		}
		half, before := s.width(l, sizePanel-1, false)/2, vg.Length(math.Inf(1))
		if i < end {
			before = centres[end] - s.width(s.f.X.Levels[end], sizePanel-1, false)/2 - labelGap
		}
		if x-half > last && x+half < before {
			s.text(vg.Point{X: x, Y: s.area.Min.Y - sizePanel - 1}, l, sizePanel-1, false, s.th.Ink, draw.XCenter, 0)
			last = x + half + labelGap
		}
	}
	s.line(s.th.Ink, 0.6, vg.Point{X: s.area.Min.X, Y: s.area.Max.Y}, s.area.Min, vg.Point{X: s.area.Max.X, Y: s.area.Min.Y})
}
