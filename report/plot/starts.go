package plot

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// mostStarts bounds the bars of starts: more are not read.
const mostStarts = 60

// wholeStart is what a start's bar is in all, among its steps.
const wholeStart = "whole start"

// starts draws how sandboxes start: a bar for each treatment, of the medians of its steps. It is of the whole study.
func (b *builder) starts() []Figure {
	r := b.src.Result
	if len(b.opt.By) > 0 || len(b.opt.Only) > 0 || len(b.opt.Responses) > 0 || b.opt.Value != "" || b.opt.Kind != "" || len(r.Boots) == 0 {
		return nil
	}
	if n := len(r.Boots); n > mostStarts {
		b.notes = append(b.notes, fmt.Sprintf("the steps of %d kinds of starts are not drawn: `tare report --html` has a picture of them", n))
		return nil
	}
	f := Figure{Kind: Starts, Value: Level, Compare: r.Compare, Baseline: r.Baseline, Margin: r.Margin, Response: record.Response{Name: "steps", Unit: record.Second}, Boots: r.Boots, X: Axis{Factor: study.FactorSandbox}, Colour: Axis{Factor: "step"}}
	takes := map[string]bool{}
	for i := range r.Boots {
		for _, p := range r.Boots[i].Phases {
			takes[p.Name] = takes[p.Name] || p.Median > 0
		}
	}
	for i := range r.Boots { // in the order of the start; the picture leaves out steps that take no time anywhere
		for _, p := range r.Boots[i].Phases {
			if takes[p.Name] && !slices.Contains(f.Colour.Levels, p.Name) {
				f.Colour.Levels = append(f.Colour.Levels, p.Name)
			}
		}
	}
	f.Colour.Levels = append(f.Colour.Levels, wholeStart)
	for i := range f.Colour.Levels {
		f.Colour.Index = append(f.Colour.Index, i+1) // the first colour is the baseline's
	}
	for i := range r.Boots {
		x := &r.Boots[i]
		f.X.Levels, f.X.Index = append(f.X.Levels, words.Boot(r, x)), append(f.X.Index, i)
		most := 0
		for _, p := range x.Phases {
			most = max(most, p.Trials)
			if c := slices.Index(f.Colour.Levels, p.Name); c >= 0 {
				f.Marks = append(f.Marks, startMark(i, c, x.Cell, p))
			}
		}
		f.Marks = append(f.Marks, startMark(i, len(f.Colour.Levels)-1, x.Cell, analyse.PhaseTime{Name: wholeStart, Trials: most, Median: x.Start, Lo: x.Lo, Hi: x.Hi}))
	}
	return []Figure{f}
}

func startMark(row, step int, cell record.Cell, p analyse.PhaseTime) Mark {
	return Mark{X: row, Colour: step, Cell: cell, N: p.Trials, Value: p.Median.Seconds(), Lo: p.Lo.Seconds(), Hi: p.Hi.Seconds(), Response: record.Response{Name: p.Name, Unit: record.Second}}
}

// describeStarts writes the words of a picture of starts.
func (b *builder) describeStarts(f *Figure) {
	var starts []int
	polls := make(map[time.Duration][]string)
	for i := range f.Boots {
		starts = append(starts, f.Boots[i].Starts)
		for _, p := range f.Boots[i].Phases {
			if p.Poll > 0 && !slices.Contains(polls[p.Poll], p.Name) {
				polls[p.Poll] = append(polls[p.Poll], p.Name)
			}
		}
	}
	least, most := slices.Min(starts), slices.Max(starts)
	of := words.Count(most, "start")
	if least != most {
		of = fmt.Sprintf("%d to %s", least, of)
	}
	parts := []string{mediansOf(most, of)}
	if f.interval() {
		parts = append(parts, "whiskers: 95 % intervals of the medians, below a bar of the whole start, above it of its steps")
	}
	var every []string
	for _, p := range slices.Sorted(maps.Keys(polls)) {
		for _, name := range polls[p] {
			every = append(every, fmt.Sprintf("%s every %s", name, short(words.Value(p.Seconds(), record.Second))))
		}
	}
	if len(every) > 0 {
		parts = append(parts, "hatched: within one poll of the kubelet, which looks for the end of "+words.List(every))
	}
	f.Title, f.Subtitle = "Steps of a sandbox's start", "from the call that makes the sandbox; less is better"
	f.Caption = b.withTail(f, parts)
	f.Alt = alt(f)
}

// interval reports whether a whole start has one.
func (f *Figure) interval() bool {
	return slices.ContainsFunc(f.Boots, func(x analyse.Boot) bool { return x.Hi > 0 })
}

// polled reports whether a kubelet polls for the end of a step.
func (f *Figure) polled() bool {
	return slices.ContainsFunc(f.Boots, func(x analyse.Boot) bool {
		return slices.ContainsFunc(x.Phases, func(p analyse.PhaseTime) bool { return p.Poll > 0 && p.Median > 0 })
	})
}

// unexplained is what a start has beyond its steps: medians need not add up.
func unexplained(x *analyse.Boot) time.Duration {
	rest := x.Start
	for _, p := range x.Phases {
		rest -= p.Median
	}
	return max(0, rest)
}

// reach is where a start's bar and its whiskers end.
func reach(x *analyse.Boot) time.Duration {
	sum, far := time.Duration(0), x.Hi
	for _, p := range x.Phases {
		far = max(far, sum+p.Hi)
		sum += p.Median
	}
	return max(far, sum+unexplained(x))
}

// Sizes of the bars of starts.
const (
	startBar    = vg.Length(15)
	startBelow  = vg.Length(8)   // of a bar: its whole whisker
	startLane   = vg.Length(4.5) // of whiskers above a bar
	startGap    = vg.Length(8)   // between rows
	startInside = vg.Length(16)  // as wide must a step be to have a whisker
)

// whisker is a step's interval above its bar, in a lane from the bar up.
type whisker struct {
	step   int
	lo, hi vg.Length
	lane   int
}

// whiskers are those of the steps that are wide enough, each in the lowest lane in which it lies on no other.
func (s *sheet) whiskers(x *analyse.Boot, at func(time.Duration) vg.Length) (out []whisker, lanes int) {
	var ends []vg.Length // of the lanes
	from := time.Duration(0)
	for _, p := range x.Phases {
		lo, hi := at(from+p.Lo), at(from+p.Hi)
		c := slices.Index(s.f.Colour.Levels, p.Name)
		if c >= 0 && p.Hi > 0 && max(at(from+p.Median)-at(from), hi-lo) > startInside {
			lane := slices.IndexFunc(ends, func(end vg.Length) bool { return end < lo-2 })
			if lane < 0 {
				lane, ends = len(ends), append(ends, 0)
			}
			ends[lane] = hi
			out = append(out, whisker{c, lo, hi, lane})
		}
		from += p.Median
	}
	return out, len(ends)
}

// starts draws the bars from the top down.
func (s *sheet) starts() {
	f := s.f
	wide, longest := vg.Length(0), time.Duration(0)
	for i := range f.Boots {
		x := &f.Boots[i]
		wide = max(wide, s.width(f.X.label(i), sizeText, false))
		longest = max(longest, reach(x))
	}
	wide = min(wide, (s.area.Max.X-s.area.Min.X)*0.4)
	s.y = scale{hi: max(longest.Seconds()*1.03, 1e-9)}
	s.y.linearTicks(record.Second, Level)
	s.area.Min.X += wide + 8
	s.area.Min.Y += sizeText*1.5 + sizeTick + 8
	at := func(d time.Duration) vg.Length {
		return s.area.Min.X + vg.Length(s.y.norm(d.Seconds()))*(s.area.Max.X-s.area.Min.X)
	}
	for _, t := range s.y.ticks {
		x := s.area.Min.X + vg.Length(s.y.norm(t.at))*(s.area.Max.X-s.area.Min.X)
		s.line(s.th.Faint, 0.6, vg.Point{X: x, Y: s.area.Min.Y}, vg.Point{X: x, Y: s.area.Max.Y})
		s.line(s.th.Ink, 0.6, vg.Point{X: x, Y: s.area.Min.Y}, vg.Point{X: x, Y: s.area.Min.Y - 4})
		s.text(vg.Point{X: x, Y: s.area.Min.Y - 6 - sizeTick*0.8}, t.label, sizeTick, false, s.th.Ink, draw.XCenter, 0)
	}
	s.text(vg.Point{X: (s.area.Min.X + s.area.Max.X) / 2, Y: s.area.Min.Y - sizeTick - sizeText*1.5 - 4}, "time ("+s.y.unit+")", sizeText, false, s.th.Ink, draw.XCenter, 0)
	lanes := 0
	for i := range f.Boots {
		_, n := s.whiskers(&f.Boots[i], at)
		lanes = max(lanes, n)
	}
	above := startLane * vg.Length(lanes)
	row := startBar + startBelow + startGap + above
	s.least = row * vg.Length(len(f.Boots))
	room := (s.area.Max.Y - s.area.Min.Y) / vg.Length(len(f.Boots))
	tall := min(startBar*2, startBar+max(0, room-row)*0.4) // few bars are thicker
	for i := range f.Boots {
		mid := s.area.Max.Y - room*(vg.Length(i)+0.5) + (startBelow-above)/2
		s.text(vg.Point{X: s.area.Min.X - 6, Y: mid - sizeText*0.35}, s.fit(f.X.label(i), sizeText, wide), sizeText, false, s.th.Ink, draw.XRight, 0)
		s.start(&f.Boots[i], mid, tall, at)
	}
	s.line(s.th.Ink, 0.8, vg.Point{X: s.area.Min.X, Y: s.area.Max.Y}, s.area.Min, vg.Point{X: s.area.Max.X, Y: s.area.Min.Y})
}

// start draws one bar, tall high around mid.
func (s *sheet) start(x *analyse.Boot, mid, tall vg.Length, at func(time.Duration) vg.Length) {
	from := time.Duration(0)
	for _, p := range x.Phases {
		c := slices.Index(s.f.Colour.Levels, p.Name)
		if c < 0 || p.Median == 0 {
			continue
		}
		fill, pattern := s.stepLook(c)
		r := vg.Rectangle{Min: vg.Point{X: at(from), Y: mid - tall/2}, Max: vg.Point{X: at(from + p.Median), Y: mid + tall/2}}
		s.box(r, fill, over(fill), pattern)
		polled := vg.Rectangle{Min: r.Min, Max: vg.Point{X: at(from + min(p.Poll, p.Median)), Y: r.Max.Y}}
		if p.Poll > 0 && !s.th.Shaded {
			s.poll(polled, fill)
		}
		s.edge(r)
		if p.Poll > 0 && s.th.Shaded {
			s.poll(polled, fill)
		}
		s.stepText(words.Value(p.Median.Seconds(), record.Second), r, fill)
		from += p.Median
	}
	above, _ := s.whiskers(x, at)
	for _, w := range above {
		ink, _ := s.stepLook(w.step)
		if s.th.Shaded { // greys are too pale for a line
			ink = s.th.Ink
		}
		s.along(w.lo, w.hi, mid+tall/2+4+startLane*vg.Length(w.lane), ink)
	}
	if rest := unexplained(x); rest > 0 {
		r := vg.Rectangle{Min: vg.Point{X: at(from), Y: mid - tall/2}, Max: vg.Point{X: at(from + rest), Y: mid + tall/2}}
		s.fill(s.th.Faint, r)
		s.edge(r)
	}
	if x.Hi > 0 {
		s.along(at(x.Lo), at(x.Hi), mid-tall/2-4, s.th.Ink)
	}
}

// stepLook is how a step is drawn. A colour that comes again is paler: hatching is the sign of a poll.
func (s *sheet) stepLook(step int) (color.NRGBA, pattern) {
	fill, p := s.looks(0, step, 0)
	if p != plain && !s.th.Shaded {
		return mix(fill, s.th.Paper, 0.45), plain
	}
	return fill, p
}

// edge parts steps: with paper or, where a step may be as white as paper, with ink.
func (s *sheet) edge(r vg.Rectangle) {
	if s.th.Shaded {
		s.frame(s.th.Ink, 0.4, r)
		return
	}
	s.frame(s.th.Paper, 0.8, r)
}

// poll marks what one poll of the kubelet can explain: hatched or, where hatching tells steps apart, with a line below.
func (s *sheet) poll(r vg.Rectangle, fill color.NRGBA) {
	if s.th.Shaded {
		s.line(s.th.Ink, 2, r.Min, vg.Point{X: r.Max.X, Y: r.Min.Y})
		return
	}
	s.box(r, fill, mix(fill, over(fill), 0.55), diagonal)
}

// stepText writes a step's time into its bar, if there is room, on ground of its own.
func (s *sheet) stepText(txt string, r vg.Rectangle, fill color.NRGBA) {
	w := s.width(txt, sizeTick, false)
	if w+6 > r.Max.X-r.Min.X || r.Max.Y-r.Min.Y < sizeTick {
		return
	}
	mid := vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
	s.fill(fill, vg.Rectangle{Min: vg.Point{X: mid.X - w/2 - 2, Y: mid.Y - sizeTick*0.6}, Max: vg.Point{X: mid.X + w/2 + 2, Y: mid.Y + sizeTick*0.6}})
	s.text(vg.Point{X: mid.X, Y: mid.Y - sizeTick*0.35}, txt, sizeTick, false, over(fill), draw.XCenter, 0)
}

// along is a whisker that lies.
func (s *sheet) along(from, to, y vg.Length, ink color.NRGBA) {
	s.line(ink, 1, vg.Point{X: from, Y: y}, vg.Point{X: to, Y: y})
	for _, x := range []vg.Length{from, to} {
		s.line(ink, 1, vg.Point{X: x, Y: y - 2}, vg.Point{X: x, Y: y + 2})
	}
}

// startKeys explain the steps and the signs of a picture of starts.
func (s *sheet) startKeys() legend {
	f := s.f
	steps, signs := group{title: f.Colour.Factor}, group{}
	for i, name := range f.Colour.Levels {
		if name == wholeStart {
			break
		}
		steps.keys = append(steps.keys, key{name, func(r vg.Rectangle) {
			fill, p := s.stepLook(i)
			s.box(r, fill, over(fill), p)
			s.edge(r)
		}})
	}
	if slices.ContainsFunc(f.Boots, func(x analyse.Boot) bool { return unexplained(&x) > 0 }) {
		steps.keys = append(steps.keys, key{"in no step", func(r vg.Rectangle) {
			s.fill(s.th.Faint, r)
			s.edge(r)
		}})
	}
	if f.polled() {
		signs.keys = append(signs.keys, key{"one poll of the kubelet", func(r vg.Rectangle) {
			if s.th.Shaded {
				s.frame(s.th.Quiet, 0.6, r)
			}
			s.poll(r, s.th.Quiet) // no step's colour
		}})
	}
	if f.interval() {
		signs.keys = append(signs.keys, key{"95 % interval", func(r vg.Rectangle) { s.along(r.Min.X, r.Max.X, (r.Min.Y+r.Max.Y)/2, s.th.Ink) }})
	}
	if len(signs.keys) == 0 {
		return legend{steps}
	}
	return legend{steps, signs}
}
