package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse/stat"
	"tare/report/words"
)

// shade is how a heat map turns values into colours.
type shade struct {
	cost   bool
	log    bool
	lo, hi float64 // levels, or the logarithm of the largest cost in hi
}

func newShade(f *Figure) shade {
	sh := shade{cost: f.Value == Cost, lo: math.Inf(1), hi: math.Inf(-1)}
	for i := range f.Marks {
		m := &f.Marks[i]
		if m.Gap != "" || sh.cost && m.Value <= 0 {
			continue
		}
		v := m.Value
		if sh.cost {
			v = math.Abs(math.Log(v))
		}
		sh.lo, sh.hi = min(sh.lo, v), max(sh.hi, v)
	}
	switch {
	case sh.cost:
		sh.hi = max(sh.hi, math.Log(1.25)) // a study without effects stays pale
	case math.IsInf(sh.lo, 0):
		sh.lo, sh.hi = 0, 1
	default:
		sh.log = sh.lo > 0 && sh.hi/sh.lo > farApart
	}
	return sh
}

// part is -1..1 for costs: above 0 is worse, or more where nothing is better;
// 0..1 for levels.
func (sh shade) part(v float64) float64 {
	switch {
	case sh.cost:
		return math.Log(v) / sh.hi
	case sh.hi <= sh.lo:
		return 0.5
	case sh.log:
		return math.Log(v/sh.lo) / math.Log(sh.hi/sh.lo)
	}
	return (v - sh.lo) / (sh.hi - sh.lo)
}

func (s *sheet) shade(sh shade, t float64) color.NRGBA {
	t = math.Max(-1, math.Min(1, t))
	switch {
	case !sh.cost:
		return along(s.th.High, 0.06+0.94*t)
	case t < 0:
		return along(s.th.Low, -t)
	}
	return along(s.th.High, t)
}

// heat is a table of coloured cells: x to the right, the other factors down.
func (s *sheet) heat() {
	f := s.f
	causes := f.Kind == CauseMap
	var sh shade
	if !causes {
		sh = newShade(f)
	}
	nx, ny := len(f.X.Levels), len(s.rows)
	size := sizeTick
	names := make([]string, ny)
	wide := vg.Length(0)
	room := (s.area.Max.X - s.area.Min.X) * 0.38
	for i, k := range s.rows {
		names[i] = s.rowName(k)
		wide = max(wide, min(room, s.width(names[i], size, false)))
	}
	axis := s.nameRows()
	if axis != "" {
		s.area.Min.X += sizeText * 1.6
	}
	s.area.Min.X += wide + 8
	if !causes {
		s.area.Max.X -= 62 // the scale
	}
	s.area.Min.Y += sizeText * 1.5
	centres := s.centres(false)
	labels := make([]string, nx)
	for i := range labels {
		labels[i] = f.X.label(i)
	}
	set := s.setX(labels, centres)
	s.area.Min.Y += set.height + 3
	cw, ch := (s.area.Max.X-s.area.Min.X)/vg.Length(nx), min(110, (s.area.Max.Y-s.area.Min.Y)/vg.Length(ny))
	s.area.Min.Y = s.area.Max.Y - ch*vg.Length(ny)
	for i, name := range names {
		fs := min(size, float64(ch)*0.8)
		s.text(vg.Point{X: s.area.Min.X - 5, Y: s.area.Max.Y - ch*(vg.Length(i)+0.5) - vg.Length(fs)*0.35}, s.fit(name, fs, room), fs, false, s.th.Ink, draw.XRight, 0)
	}
	if axis != "" {
		s.text(vg.Point{X: s.area.Min.X - wide - 11, Y: (s.area.Min.Y + s.area.Max.Y) / 2}, s.fit(axis, sizeText, s.area.Max.Y-s.area.Min.Y+30),
			sizeText, false, s.th.Ink, draw.XCenter, math.Pi/2)
	}
	for i := range f.Marks {
		m := &f.Marks[i]
		k := vg.Length(s.row[[2]int{m.Colour, m.Hatch}])
		x := s.area.Min.X + cw*vg.Length(m.X)
		y := s.area.Max.Y - ch*(k+1)
		box := vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + cw, Y: y + ch}}
		if causes {
			s.causeCell(m, box)
		} else {
			s.heatCell(m, sh, box)
		}
	}
	s.frame(s.th.Ink, 0.6, s.area)
	set.draw(s, centres, s.area.Min.Y-3)
	s.text(vg.Point{X: (s.area.Min.X + s.area.Max.X) / 2, Y: s.area.Min.Y - set.height - 3 - sizeText*1.2}, s.fit(s.nameX(false), sizeText, s.area.Max.X-s.area.Min.X),
		sizeText, false, s.th.Ink, draw.XCenter, 0)
	if !causes {
		s.shadeScale(sh)
	}
}

func (s *sheet) rowName(k [2]int) string {
	f := s.f
	switch {
	case f.Hatch.used():
		return f.Colour.label(k[0]) + " / " + f.Hatch.label(k[1])
	case f.Colour.used():
		return f.Colour.label(k[0])
	}
	return ""
}

// nameRows are the factors of the rows, in the order of rowName.
func (s *sheet) nameRows() string {
	if s.f.Hatch.used() {
		return s.f.Colour.Factor + " / " + s.f.Hatch.Factor
	}
	return s.f.Colour.Factor
}

// heatCell is one cell with its value. One that is undecided has no colour: the
// study does not know on which side of 1 it is.
func (s *sheet) heatCell(m *Mark, sh shade, r vg.Rectangle) {
	w, h := r.Max.X-r.Min.X, r.Max.Y-r.Min.Y
	mid := vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
	fs := max(sizeLeast, min(8, float64(h)*0.7, float64(w)/4.2))
	if m.Gap != "" {
		s.box(r, s.th.Paper, s.th.Faint, diagonal)
		s.text(vg.Point{X: mid.X, Y: mid.Y - vg.Length(fs)*0.35}, s.fit(m.Gap, fs, w-2), fs, false, s.th.Quiet, draw.XCenter, 0)
		return
	}
	t := sh.part(m.Value)
	fill := s.shade(sh, t)
	known := !sh.cost || m.Baseline || !hollow(m) && !m.single()
	if !known {
		fill = s.th.Paper
	}
	s.fill(fill, r)
	s.frame(s.th.Faint, 0.6, r)
	if known && t < 0 && m.Verdict != stat.Equivalent {
		s.lowFrame(r)
	}
	ink := over(fill)
	value := m.Bound + words.Value(m.Value, m.Response.Shown())
	if sh.cost {
		value = m.Bound + words.Times(m.Value)
		switch {
		case !known:
			value, ink = value+" ?", s.th.Quiet
		case m.Verdict == stat.Equivalent:
			value += " ="
		}
	}
	if h < sizeLeast {
		return
	}
	interval := ""
	switch {
	case m.Level > 0:
		value, interval = m.summaryText(known)
	case m.HasInterval() && sh.cost:
		interval = words.Ratio(m.Lo) + "–" + words.Ratio(m.Hi)
	}
	for _, small := range []float64{0.85, 0.7} {
		if interval == "" || float64(h) < fs*2.6 || s.width(interval, fs*small, false) > w-3 {
			continue
		}
		s.text(vg.Point{X: mid.X, Y: mid.Y + vg.Length(fs)*0.15}, value, fs, false, ink, draw.XCenter, 0)
		s.text(vg.Point{X: mid.X, Y: mid.Y - vg.Length(fs)*0.95}, interval, fs*small, false, ink, draw.XCenter, 0)
		return
	}
	s.text(vg.Point{X: mid.X, Y: mid.Y - vg.Length(fs)*0.35}, s.fit(value, fs, w-1), fs, false, ink, draw.XCenter, 0)
}

// lowFrame marks what is better where a theme has no colour for it: greys alone
// would make it another worse.
func (s *sheet) lowFrame(r vg.Rectangle) {
	if !s.th.Shaded {
		return
	}
	thick := min(1.6, 0.12*min(r.Max.X-r.Min.X, r.Max.Y-r.Min.Y))
	in := thick/2 + 0.7
	r.Min, r.Max = r.Min.Add(vg.Point{X: in, Y: in}), r.Max.Sub(vg.Point{X: in, Y: in})
	if r.Max.X > r.Min.X && r.Max.Y > r.Min.Y {
		s.frame(s.th.Ink, thick, r)
	}
}

// shadeScale explains the colours, at the right.
func (s *sheet) shadeScale(sh shade) {
	const steps = 40
	x := s.area.Max.X + 10
	top := s.area.Max.Y
	tall := min(top-s.area.Min.Y, 150)
	if tall < 40 {
		tall = 40
	}
	from, unit := 0.0, s.f.unit()
	if sh.cost {
		from = -1
	}
	for i := range steps {
		t := from + (1-from)*(float64(i)+0.5)/steps
		y := top - tall + tall*vg.Length(i)/steps
		s.fill(s.shade(sh, t), vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + 8, Y: y + tall/steps + 0.2}})
	}
	s.frame(s.th.Ink, 0.5, vg.Rectangle{Min: vg.Point{X: x, Y: top - tall}, Max: vg.Point{X: x + 8, Y: top}})
	if sh.cost {
		s.lowFrame(vg.Rectangle{Min: vg.Point{X: x, Y: top - tall}, Max: vg.Point{X: x + 8, Y: top - tall/2}})
	}
	for _, t := range []float64{-1, -0.5, 0, 0.5, 1} {
		if t < from {
			continue
		}
		label := ""
		switch {
		case sh.cost && t == 0:
			label = "1"
		case sh.cost:
			label = words.Times(math.Exp(math.Abs(t) * sh.hi))
		case sh.log:
			label = words.Value(sh.lo*math.Exp(t*math.Log(sh.hi/sh.lo)), unit)
		default:
			label = words.Value(sh.lo+t*(sh.hi-sh.lo), unit)
		}
		y := top - tall + tall*vg.Length((t-from)/(1-from))
		s.text(vg.Point{X: x + 11, Y: max(top-tall, min(y-2.3, top-6))}, s.fit(label, 7, 50), 7, false, s.th.Ink, draw.XLeft, 0)
	}
	if sh.cost {
		up, down := "costs more", "costs less"
		if !s.f.judged() {
			up, down = "more", "less"
		}
		s.text(vg.Point{X: x, Y: top + 3}, up, 7, true, s.th.Ink, draw.XLeft, 0)
		s.text(vg.Point{X: x, Y: top - tall - 9}, down, 7, true, s.th.Ink, draw.XLeft, 0)
	}
}
