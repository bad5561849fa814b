package plot

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse/stat"
	"tare/report/section"
)

// key is an entry of a legend: a small picture, drawn at its left end in a room of
// thumb by size, and a label.
type key struct {
	label string
	draw  func(r vg.Rectangle)
}

// group is a factor's entries.
type group struct {
	title string
	keys  []key
}

type legend []group

const thumb = vg.Length(15)

// legend explains colour, hatching and the signs that the figure has.
func (s *sheet) legend() legend {
	var l legend
	f := s.f
	if f.Kind == Starts {
		return s.startKeys()
	}
	heat := f.Kind == Heat || f.Kind == CauseMap
	if f.Colour.used() && !heat {
		g := group{title: f.Colour.Factor}
		for i := range f.Colour.Levels {
			g.keys = append(g.keys, key{f.Colour.label(i), func(r vg.Rectangle) { s.sample(r, i, -1) }})
		}
		l = append(l, g)
	}
	if f.Hatch.used() && !heat {
		g := group{title: f.Hatch.Factor}
		for i := range f.Hatch.Levels {
			g.keys = append(g.keys, key{f.Hatch.label(i), func(r vg.Rectangle) { s.sample(r, -1, i) }})
		}
		l = append(l, g)
	}
	if f.Kind == CauseMap {
		return append(l, s.causeKeys())
	}
	var signs group
	if f.Value == Cost {
		if !heat {
			signs.keys = append(signs.keys, key{f.Baseline + " (1)", func(r vg.Rectangle) {
				y := (r.Min.Y + r.Max.Y) / 2
				s.fill(s.th.Band, r)
				s.line(s.th.Ink, 1.2, vg.Point{X: r.Min.X, Y: y}, vg.Point{X: r.Max.X, Y: y})
			}})
		}
		undecided, equal := false, false
		for i := range f.Marks {
			undecided = undecided || f.Marks[i].Gap == "" && !f.Marks[i].single() && hollow(&f.Marks[i])
			equal = equal || f.Marks[i].Gap == "" && f.Marks[i].Verdict == stat.Equivalent
		}
		if undecided {
			signs.keys = append(signs.keys, key{"undecided", func(r vg.Rectangle) { s.undecidedSample(r) }})
		}
		if equal {
			signs.keys = append(signs.keys, key{section.SignOf(stat.Equivalent).Text + " (within " + strconv.FormatFloat(100*f.Margin, 'g', 3, 64) + " %)", func(r vg.Rectangle) {
				s.equals(vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, 5, s.th.Ink)
			}})
		}
	}
	if len(signs.keys) > 0 {
		l = append(l, signs)
	}
	return l
}

// sample is a piece of a bar or a line; c or h is -1 where it is not shown.
func (s *sheet) sample(r vg.Rectangle, c, h int) {
	fill, p := s.looks(0, max(c, 0), max(h, 0))
	if c < 0 {
		fill = s.th.Paper
	}
	if h < 0 && s.f.Hatch.used() {
		p = plain
	}
	if s.f.Kind == Bar {
		if h >= 0 && slices.ContainsFunc(s.f.Marks, func(m Mark) bool { return m.single() }) {
			r.Max.X -= 7
			s.c.SetColor(s.th.Ink)
			s.c.Fill(shape(s.formOf(0, h), vg.Point{X: r.Max.X + 5, Y: (r.Min.Y + r.Max.Y) / 2}, 2.4))
		}
		s.box(r, fill, over(fill), p)
		s.frame(s.th.Ink, 0.5, r)
		return
	}
	line, dashes, g := fill, s.dashes(max(h, 0)), c
	if c < 0 {
		line, g = s.th.Ink, -1
	}
	if h < 0 {
		dashes = nil
	}
	y := (r.Min.Y + r.Max.Y) / 2
	if s.f.Kind == Line {
		s.dashed(line, 1.4, dashes, vg.Point{X: r.Min.X, Y: y}, vg.Point{X: r.Max.X, Y: y})
	}
	if g >= 0 || s.f.Kind == Dot {
		s.glyph(vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: y}, max(c, 0), max(h, 0), line, false)
	}
}

func (s *sheet) undecidedSample(r vg.Rectangle) {
	switch s.f.Kind {
	case Bar:
		s.fill(s.th.Paper, r)
		s.frame(s.th.Ink, 1, r)
	case Heat:
		s.fill(s.th.Paper, r)
		s.frame(s.th.Faint, 0.6, r)
		s.text(vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: r.Min.Y + 0.5}, "?", 7, false, s.th.Ink, draw.XCenter, 0)
	default:
		s.glyph(vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, 0, 0, s.th.Ink, true)
	}
}

// equals is the sign of equivalence, drawn rather than written so that it is sharp
// when it is small.
func (s *sheet) equals(at vg.Point, w vg.Length, c color.NRGBA) {
	for _, d := range []vg.Length{-w / 4, w / 4} {
		s.line(c, 0.9, vg.Point{X: at.X - w/2, Y: at.Y + d}, vg.Point{X: at.X + w/2, Y: at.Y + d})
	}
}

func (l legend) height(s *sheet, size float64, room vg.Length) vg.Length {
	return l.flow(s, size, 0, 0, room, false)
}

func (l legend) draw(s *sheet, size float64, x, y, room vg.Length) vg.Length {
	return l.flow(s, size, x, y, room, true)
}

// flow sets entries in lines, a group each, and returns the height. Labels that
// are too long are shortened in their middle.
func (l legend) flow(s *sheet, size float64, left, top, room vg.Length, ink bool) vg.Length {
	fs := vg.Length(size)
	y := vg.Length(0)
	x, fresh := vg.Length(0), true
	for _, g := range l {
		wants := vg.Length(0)
		for _, k := range g.keys {
			wants += thumb + 3 + s.width(s.fit(k.label, size, room*0.45), size, false) + 10
		}
		if g.title != "" {
			wants += s.width(g.title+":", size, true) + 6
		}
		if fresh || x+wants > room { // a group that fits goes on in the line
			y += fs * 1.45
			x = 0
		}
		fresh = false
		if g.title != "" {
			title := s.fit(g.title, size, room*0.25) + ":"
			if ink {
				s.text(vg.Point{X: left + x, Y: top - y + fs*0.2}, title, size, true, s.th.Ink, draw.XLeft, 0)
			}
			x += s.width(title, size, true) + 6
		}
		indent := min(x, room/3)
		for _, k := range g.keys {
			label := s.fit(k.label, size, room*0.45)
			w := thumb + 3 + s.width(label, size, false)
			if x+w > room {
				x, y = indent, y+fs*1.45
			}
			if ink {
				k.draw(vg.Rectangle{Min: vg.Point{X: left + x, Y: top - y}, Max: vg.Point{X: left + x + thumb, Y: top - y + fs}})
				s.text(vg.Point{X: left + x + thumb + 3, Y: top - y + fs*0.2}, label, size, false, s.th.Ink, draw.XLeft, 0)
			}
			x += w + 10
		}
		x += 6
	}
	return y
}

// cells is a number of cells in words: 3 cells, 1 cell.
func cells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}
