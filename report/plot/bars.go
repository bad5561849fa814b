package plot

import (
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse/stat"
)

// bars draws a group of bars at each level of x: colour by colour, within a colour
// one for each hatching. Those of costs stand on 1.
func (s *sheet) bars() {
	s.parity()
	for i := range s.f.Marks {
		m := &s.f.Marks[i]
		x, w := s.slot(m)
		switch {
		case m.Gap != "":
			s.gap(m, x, w)
		case m.single():
			fill, _ := s.look(m)
			s.singles(m, x, w, fill)
		default:
			s.bar(m, x, w)
		}
	}
}

// slot is the place of a mark: the centre, and the width that it may take.
func (s *sheet) slot(m *Mark) (centre, width vg.Length) {
	n := vg.Length(len(s.rows))
	group := (s.area.Max.X - s.area.Min.X) / vg.Length(len(s.f.X.Levels))
	w := min(group*0.84/n, 60)
	k := vg.Length(s.row[[2]int{m.Colour, m.Hatch}])
	mid := s.area.Min.X + group*(vg.Length(m.X)+0.5)
	return mid + (k-(n-1)/2)*w, w
}

func (s *sheet) bar(m *Mark, x, w vg.Length) {
	from, to := s.at(s.y.base), s.at(m.Value)
	if from > to {
		from, to = to, from
	}
	gap := min(w*0.08, 1.5)
	r := vg.Rectangle{Min: vg.Point{X: x - w/2 + gap, Y: from}, Max: vg.Point{X: x + w/2 - gap, Y: to}}
	fill, p := s.look(m)
	line := over(fill)
	outlineColour, width := s.th.Ink, vg.Length(0.5)
	if hollow(m) {
		if p != plain {
			line = fill
		}
		outlineColour, fill, width = fill, s.th.Paper, 1.2
		if s.th.Shaded {
			line, outlineColour = s.th.Quiet, s.th.Ink
		}
	}
	s.box(r, fill, line, p)
	s.frame(outlineColour, min(width, w/5), r)
	s.blocks(m, x, w)
	top := s.whisker(m, x, min(w*0.3, 4))
	above := min(max(top, to)+5, s.area.Max.Y-2)
	if m.Verdict == stat.Equivalent {
		s.equals(vg.Point{X: x, Y: above}, min(w*0.7, 6), s.th.Ink)
	} else if m.Bound != "" {
		s.text(vg.Point{X: x, Y: above - 2}, strings.TrimSpace(m.Bound), min(sizeText, max(sizeLeast, float64(w)*0.9)), true, s.th.Ink, draw.XCenter, 0)
	}
}

// whisker draws the interval, with a halo so that it is seen on any colour, and
// returns its upper end. An end that is beyond the axis is an arrow.
func (s *sheet) whisker(m *Mark, x, half vg.Length) vg.Length {
	if !m.HasInterval() {
		return s.at(m.Value)
	}
	lo, hi := s.at(m.Lo), s.at(m.Hi)
	for _, pen := range []struct {
		grow  vg.Length
		width vg.Length
	}{{0.6, 2.2}, {0, 0.9}} {
		c := s.th.Paper
		if pen.grow == 0 {
			c = s.th.Ink
		}
		s.line(c, pen.width, vg.Point{X: x, Y: lo}, vg.Point{X: x, Y: hi})
		for _, end := range []struct {
			y    vg.Length
			past bool
			back vg.Length
		}{{lo, s.y.norm(m.Lo) < 0, half}, {hi, s.y.norm(m.Hi) > 1, -half}} {
			if end.past {
				s.line(c, pen.width, vg.Point{X: x - half, Y: end.y + end.back}, vg.Point{X: x, Y: end.y}, vg.Point{X: x + half, Y: end.y + end.back})
				continue
			}
			s.line(c, pen.width, vg.Point{X: x - half - pen.grow, Y: end.y}, vg.Point{X: x + half + pen.grow, Y: end.y})
		}
	}
	return hi
}

// blocks are the values of single blocks, side by side in the order of blocks.
func (s *sheet) blocks(m *Mark, x, w vg.Length) {
	if !s.style.Points {
		return
	}
	r := min(1.5, max(0.7, w*0.1))
	s.scatter(m, x, w*0.5, r, 0, s.th.Paper, s.th.Ink)
}

// singles are blocks that are too few for an interval: all that there is to show.
// Where there are bars, what would be hatching is their shape.
func (s *sheet) singles(m *Mark, x, w vg.Length, fill color.NRGBA) {
	s.scatter(m, x, w*0.4, min(2.4, max(1, w*0.2)), s.formOf(m.Colour, m.Hatch), fill, s.th.Ink)
}

func (s *sheet) scatter(m *Mark, x, w, r vg.Length, form int, fill, line color.NRGBA) {
	n := len(m.Points)
	for i, v := range m.Points {
		at := vg.Point{X: x, Y: s.at(v)}
		if n > 1 {
			at.X += w * (vg.Length(i)/vg.Length(n-1) - 0.5)
		}
		s.c.SetColor(line)
		s.c.Fill(shape(form, at, r+0.5))
		s.c.SetColor(fill)
		s.c.Fill(shape(form, at, r))
	}
}

// gap says why there is nothing, in its place.
func (s *sheet) gap(m *Mark, x, w vg.Length) {
	foot := s.area.Min.Y
	size := min(7.5, float64(w)*0.9)
	s.dashed(s.th.Quiet, 0.7, []vg.Length{2, 2}, vg.Point{X: x - w*0.4, Y: foot + 1}, vg.Point{X: x + w*0.4, Y: foot + 1})
	if size < sizeLeast { // too narrow for letters: a cross, explained in the caption
		d := max(1.2, w*0.35)
		s.line(s.th.Quiet, 0.8, vg.Point{X: x - d, Y: foot + 3}, vg.Point{X: x + d, Y: foot + 3 + 2*d})
		s.line(s.th.Quiet, 0.8, vg.Point{X: x - d, Y: foot + 3 + 2*d}, vg.Point{X: x + d, Y: foot + 3})
		return
	}
	s.text(vg.Point{X: x + vg.Length(size)*0.35, Y: foot + 4}, m.Gap, size, false, s.th.Quiet, draw.XLeft, math.Pi/2)
}
