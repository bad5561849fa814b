package plot

import (
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const sizeTick = 8.0

// axes draws grid, axes and labels, and leaves in s.area what is for the data.
func (s *sheet) axes(numeric bool) {
	f := s.f
	wide := vg.Length(0)
	for _, t := range s.y.ticks {
		wide = max(wide, s.width(t.label, sizeTick, false))
	}
	s.area.Min.X += wide + 24
	s.area.Min.Y += sizeText * 1.5 // the x axis' name
	centres := s.centres(numeric)
	labels := make([]string, len(f.X.Levels))
	for i := range labels {
		labels[i] = f.X.label(i)
	}
	set := s.setX(labels, centres)
	s.area.Min.Y += set.height + 5
	s.area.Max.Y -= 4

	s.text(vg.Point{X: s.area.Min.X - wide - 14, Y: (s.area.Min.Y + s.area.Max.Y) / 2}, s.fit(s.nameY(), sizeText, s.area.Max.Y-s.area.Min.Y+30),
		sizeText, false, s.th.Ink, draw.XCenter, math.Pi/2)
	if f.Value == Cost {
		s.fill(s.th.Band, vg.Rectangle{Min: vg.Point{X: s.area.Min.X, Y: s.at(1 / (1 + f.Margin))}, Max: vg.Point{X: s.area.Max.X, Y: s.at(1 + f.Margin)}})
	}
	for _, t := range s.y.ticks {
		y, reach := s.at(t.at), vg.Length(2)
		if t.label != "" {
			reach = 4
			s.line(s.th.Faint, 0.6, vg.Point{X: s.area.Min.X, Y: y}, vg.Point{X: s.area.Max.X, Y: y})
			s.text(vg.Point{X: s.area.Min.X - 6, Y: y - sizeTick*0.35}, t.label, sizeTick, false, s.th.Ink, draw.XRight, 0)
		}
		s.line(s.th.Ink, 0.6, vg.Point{X: s.area.Min.X - reach, Y: y}, vg.Point{X: s.area.Min.X, Y: y})
	}
	set.draw(s, centres, s.area.Min.Y-5)
	for _, x := range centres {
		if f.Kind == Line {
			s.line(s.th.Ink, 0.6, vg.Point{X: x, Y: s.area.Min.Y}, vg.Point{X: x, Y: s.area.Min.Y - 3})
		}
	}
	s.text(vg.Point{X: (s.area.Min.X + s.area.Max.X) / 2, Y: s.area.Min.Y - set.height - 5 - sizeText*1.2}, s.fit(s.nameX(numeric), sizeText, s.area.Max.X-s.area.Min.X),
		sizeText, false, s.th.Ink, draw.XCenter, 0)
	s.line(s.th.Ink, 0.8, vg.Point{X: s.area.Min.X, Y: s.area.Max.Y}, s.area.Min, vg.Point{X: s.area.Max.X, Y: s.area.Min.Y})
}

// parity is the line at the baseline, over bars so that they stand on it.
func (s *sheet) parity() {
	if s.f.Value == Cost {
		y := s.at(1)
		s.line(s.th.Ink, 1.2, vg.Point{X: s.area.Min.X, Y: y}, vg.Point{X: s.area.Max.X, Y: y})
	}
}

func (s *sheet) nameY() string {
	name := s.f.what()
	if s.f.Value == Cost {
		name = s.f.times()
	} else if s.y.unit != "" {
		name = strings.TrimSpace(name + " (" + s.y.unit + ")")
	}
	if s.y.log {
		name += ", log scale"
	}
	return name
}

func (s *sheet) nameX(numeric bool) string {
	if numeric && s.f.X.numeric() && s.placing() == byLog {
		return s.f.X.Factor + " (log scale)"
	}
	return s.f.X.Factor
}

// placing is how levels are spread on the x axis of lines.
type placing int

const (
	evenly placing = iota
	byValue
	byLog
)

func (s *sheet) placing() placing {
	v := s.f.X.Numbers
	if !s.f.X.numeric() || len(v) < 2 {
		return evenly
	}
	lo, hi := v[0], v[len(v)-1]
	how := byValue
	switch {
	case lo > 0 && hi/lo > farApart:
		how = byLog
	case lo <= 0 && hi > farApart*v[1]:
		return evenly // zero has no place on a logarithmic axis
	}
	for i := 1; i < len(v); i++ { // levels that would fall together
		if how == byValue && v[i]-v[i-1] < (hi-lo)*0.02 || how == byLog && math.Log(v[i]/v[i-1]) < math.Log(hi/lo)*0.02 {
			return evenly
		}
	}
	return how
}

// centres are where the levels of x stand.
func (s *sheet) centres(numeric bool) []vg.Length {
	n := len(s.f.X.Levels)
	w := s.area.Max.X - s.area.Min.X
	out := make([]vg.Length, n)
	how := evenly
	if numeric {
		how = s.placing()
	}
	v := s.f.X.Numbers
	for i := range out {
		part := (float64(i) + 0.5) / float64(n)
		switch how {
		case byValue:
			part = 0.07 + 0.86*(v[i]-v[0])/(v[n-1]-v[0])
		case byLog:
			part = 0.07 + 0.86*math.Log(v[i]/v[0])/math.Log(v[n-1]/v[0])
		case evenly:
		}
		out[i] = s.area.Min.X + vg.Length(part)*w
	}
	return out
}

// xLabels are the labels below an axis, level if there is room, in two or three
// lines or slanting if not.
type xLabels struct {
	lines  [][]string // "" of a label that is left out since the next is too near
	size   float64
	slant  bool
	height vg.Length
}

func (s *sheet) setX(labels []string, centres []vg.Length) xLabels {
	room := make([]vg.Length, len(labels)) // of each
	for i := range room {
		room[i] = s.area.Max.X - s.area.Min.X
		if i > 0 {
			room[i] = min(room[i], centres[i]-centres[i-1])
		}
		if i < len(centres)-1 {
			room[i] = min(room[i], centres[i+1]-centres[i])
		}
	}
	for _, size := range []float64{sizeTick, 7} {
		set, ok := xLabels{size: size}, true
		for i, l := range labels {
			lines := s.broken(l, size, room[i]*0.96)
			ok = ok && lines != nil && len(lines) <= 3
			set.lines = append(set.lines, lines)
			set.height = max(set.height, vg.Length(float64(len(lines))*size*1.15))
		}
		if ok {
			return set
		}
	}
	set := xLabels{size: sizeTick, slant: true}
	least := room[0]
	for _, r := range room {
		least = min(least, r)
	}
	if least < 11 {
		set.size = max(sizeLeast, float64(least)*0.75)
	}
	last := vg.Length(math.Inf(-1))
	for i, l := range labels {
		if centres[i]-last < vg.Length(set.size)*1.1 {
			set.lines = append(set.lines, []string{""})
			continue
		}
		last = centres[i]
		l = s.fit(l, set.size, min(120, (centres[i]-margin)*math.Sqrt2-6))
		set.lines = append(set.lines, []string{l})
		set.height = max(set.height, s.width(l, set.size, false)/math.Sqrt2+vg.Length(set.size))
	}
	return set
}

// broken breaks a label at line breaks, spaces, hyphens and underscores until its
// lines fit; nil if they do not.
func (s *sheet) broken(label string, size float64, room vg.Length) []string {
	var out []string
	for part := range strings.SplitSeq(label, "\n") {
		cur := ""
		for _, piece := range pieces(printable(part)) {
			if s.width(strings.TrimSpace(piece), size, false) > room {
				return nil
			}
			if cur != "" && s.width(strings.TrimSpace(cur+piece), size, false) > room {
				out = append(out, strings.TrimSpace(cur))
				cur = ""
			}
			cur += piece
		}
		out = append(out, strings.TrimSpace(cur))
	}
	return out
}

// pieces are the parts of a label that stay whole, with what ends them.
func pieces(label string) []string {
	var out []string
	from := 0
	for i, r := range label {
		if r == ' ' || r == '-' || r == '_' || r == '/' {
			out = append(out, label[from:i+1])
			from = i + 1
		}
	}
	return append(out, label[from:])
}

func (l xLabels) draw(s *sheet, centres []vg.Length, top vg.Length) {
	fs := vg.Length(l.size)
	for i, lines := range l.lines {
		for k, line := range lines {
			if l.slant {
				s.text(vg.Point{X: centres[i] + fs*0.3, Y: top - fs*0.7}, line, l.size, false, s.th.Ink, draw.XRight, math.Pi/4)
				continue
			}
			s.text(vg.Point{X: centres[i], Y: top - fs*0.85 - vg.Length(k)*fs*1.15}, line, l.size, false, s.th.Ink, draw.XCenter, 0)
		}
	}
}
