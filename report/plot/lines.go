package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse/stat"
)

// lines joins the marks of each colour and hatching (here: dashes) along x. A
// line is broken where a cell has no value.
func (s *sheet) lines() {
	s.parity()
	centres := s.centres(true)
	least := s.area.Max.X - s.area.Min.X
	for i := 1; i < len(centres); i++ {
		least = min(least, centres[i]-centres[i-1])
	}
	step := min(5, least*0.6/vg.Length(len(s.rows))) // so that whiskers of one x stand side by side
	place := func(m *Mark) vg.Length {
		k := vg.Length(s.row[[2]int{m.Colour, m.Hatch}])
		return centres[m.X] + (k-vg.Length(len(s.rows)-1)/2)*step
	}
	byRow := make([][]*Mark, len(s.rows))
	for i := range s.f.Marks {
		m := &s.f.Marks[i]
		k := s.row[[2]int{m.Colour, m.Hatch}]
		byRow[k] = append(byRow[k], m)
	}
	for _, marks := range byRow {
		var run []vg.Point
		flush := func(m *Mark) {
			c, _ := s.look(m)
			s.dashed(c, 1.5, s.dashes(m.Hatch), run...)
			run = nil
		}
		for i, m := range marks {
			if m.Gap != "" || m.single() && !s.f.Plateaus {
				flush(m)
				continue
			}
			if i > 0 && (m.X != marks[i-1].X+1 || !s.f.X.joins(m.X)) {
				flush(m)
			}
			run = append(run, vg.Point{X: place(m), Y: s.at(m.Value)})
		}
		flush(marks[0])
	}
	gaps := make(map[int]int) // at each x
	for i := range s.f.Marks {
		m := &s.f.Marks[i]
		if m.Gap != "" {
			s.namedGap(m, centres[m.X], gaps[m.X])
			gaps[m.X]++
			continue
		}
		s.mark(m, place(m), 8)
	}
}

// dots are marks without lines, in the places of bars.
func (s *sheet) dots() {
	s.parity()
	for i := range s.f.Marks {
		m := &s.f.Marks[i]
		x, w := s.slot(m)
		if m.Gap != "" {
			s.gap(m, x, w)
			continue
		}
		s.mark(m, x, w)
	}
}

// mark is a glyph with its interval and blocks.
func (s *sheet) mark(m *Mark, x, w vg.Length) {
	fill, _ := s.look(m)
	if m.single() {
		s.singles(m, x, w, fill)
		return
	}
	s.blocks(m, x, w)
	top := s.whisker(m, x, min(3, w*0.3))
	s.glyph(vg.Point{X: x, Y: s.at(m.Value)}, m.Colour, m.Hatch, fill, hollow(m))
	if m.Verdict == stat.Equivalent {
		s.equals(vg.Point{X: x, Y: min(max(top, s.at(m.Value))+5, s.area.Max.Y-2)}, 5, s.th.Ink)
	}
}

// namedGap is a gap of a line chart, at the foot, with what it is a gap of.
func (s *sheet) namedGap(m *Mark, x vg.Length, k int) {
	const size = 7.0
	x += vg.Length(k) * size * 1.1
	if k > 0 && x > s.area.Max.X {
		return // the caption counts them all
	}
	what := m.Gap
	if s.f.Colour.used() {
		what = s.f.Colour.label(m.Colour) + ": " + what
	}
	if s.f.Hatch.used() {
		what = s.f.Hatch.label(m.Hatch) + ", " + what
	}
	s.text(vg.Point{X: x + size*0.35, Y: s.area.Min.Y + 4}, s.fit(what, size, (s.area.Max.Y-s.area.Min.Y)*0.8), size, false, s.th.Quiet, draw.XLeft, math.Pi/2)
}

// dashes tell hatchings apart where there are lines.
func (s *sheet) dashes(hatching int) []vg.Length {
	i := hatching
	if s.f.Hatch.used() {
		i = s.f.Hatch.Index[hatching]
	}
	return [][]vg.Length{nil, {6, 3}, {1.5, 2.5}, {8, 2, 2, 2}, {3, 3}, {10, 4}}[i%mostDashed]
}

const mostDashed = 6

// formOf is the shape that a mark and its sample in the legend have: by colour, so that it also reads in
// grey; by hatching where there are no dashes.
func (s *sheet) formOf(c, h int) int {
	switch {
	case s.f.Hatch.used() && (s.f.Kind == Dot || s.f.Kind == Bar):
		return s.f.Hatch.Index[h]
	case s.f.Kind == Bar:
		return 0
	case s.f.Colour.used():
		return s.f.Colour.Index[c]
	}
	return c
}

// glyph is a mark's shape.
func (s *sheet) glyph(at vg.Point, c, h int, fill color.NRGBA, empty bool) {
	p := shape(s.formOf(c, h), at, 3)
	inner := fill
	if empty {
		inner = s.th.Paper
	}
	s.c.SetColor(inner)
	s.c.Fill(p)
	s.c.SetLineStyle(draw.LineStyle{Color: fill, Width: 1.2})
	if !empty {
		s.c.SetLineStyle(draw.LineStyle{Color: s.th.Ink, Width: 0.4})
	}
	s.c.Stroke(p)
}

const shapes = 7

// shape is an outline around a point: a circle, or a polygon.
func shape(i int, at vg.Point, r vg.Length) vg.Path {
	if i%shapes == 0 {
		return disc(at, r)
	}
	of := [shapes]struct {
		corners int
		turn    float64
		size    vg.Length
	}{1: {4, math.Pi / 4, 1.25}, {3, math.Pi / 2, 1.35}, {4, 0, 1.35}, {3, -math.Pi / 2, 1.35}, {5, math.Pi / 2, 1.25}, {6, 0, 1.2}}[i%shapes]
	var p vg.Path
	for k := range of.corners {
		a := of.turn + 2*math.Pi*float64(k)/float64(of.corners)
		q := vg.Point{X: at.X + r*of.size*vg.Length(math.Cos(a)), Y: at.Y + r*of.size*vg.Length(math.Sin(a))}
		if k == 0 {
			p.Move(q)
		} else {
			p.Line(q)
		}
	}
	p.Close()
	return p
}
