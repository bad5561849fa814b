package plot

import (
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"tare/record"
)

// written is a text on the page: where its base line begins, and its corners.
type written struct {
	text    string
	size    float64
	at      vg.Point
	corners [4]vg.Point
}

// filled is a rectangle that was filled.
type filled struct {
	vg.Rectangle
	color color.NRGBA
}

type stroke struct {
	path  vg.Path
	width vg.Length
}

// drawn is what a figure's drawing consists of.
type drawn struct {
	sheet   *sheet
	w, h    vg.Length
	texts   []written
	fills   []filled
	strokes []stroke
}

// record draws a figure and reads the canvas' calls back. The only transformation
// that the package uses is turning text about the origin.
func recordFigure(t *testing.T, f *Figure, st Style) drawn {
	t.Helper()
	s := newSheet(f, st, newFonts())
	w, h := s.size()
	var c recorder.Canvas
	s.draw(draw.NewCanvas(&c, w, h))
	out := drawn{sheet: s, w: w, h: h}
	angle, stack := 0.0, []float64{}
	var now color.NRGBA
	var width vg.Length
	for _, a := range c.Actions {
		switch a := a.(type) {
		case *recorder.Push:
			stack = append(stack, angle)
		case *recorder.Pop:
			angle, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case *recorder.Rotate:
			angle += a.Angle
		case *recorder.SetColor:
			now = color.NRGBAModel.Convert(a.Color).(color.NRGBA)
		case *recorder.SetLineWidth:
			width = a.Width
		case *recorder.Stroke:
			out.strokes = append(out.strokes, stroke{slices.Clone(a.Path), width})
		case *recorder.Fill:
			if r, ok := rectangle(a.Path); ok {
				out.fills = append(out.fills, filled{r, now})
			}
		case *recorder.FillString:
			turn := func(p vg.Point) vg.Point {
				sin, cos := vg.Length(math.Sin(angle)), vg.Length(math.Cos(angle))
				return vg.Point{X: p.X*cos - p.Y*sin, Y: p.X*sin + p.Y*cos}
			}
			size := a.Size.Points()
			long := s.width(a.String, size, a.Font.Weight > 0)
			up, down := a.Size*0.75, a.Size*0.22
			out.texts = append(out.texts, written{a.String, size, turn(a.Point), [4]vg.Point{
				turn(vg.Point{X: a.Point.X, Y: a.Point.Y - down}), turn(vg.Point{X: a.Point.X + long, Y: a.Point.Y - down}),
				turn(vg.Point{X: a.Point.X + long, Y: a.Point.Y + up}), turn(vg.Point{X: a.Point.X, Y: a.Point.Y + up}),
			}})
		case *recorder.Translate, *recorder.Scale:
			t.Fatalf("%T: this test cannot follow it", a)
		}
	}
	return out
}

func rectangle(p vg.Path) (vg.Rectangle, bool) {
	if len(p) != 5 || p[4].Type != vg.CloseComp {
		return vg.Rectangle{}, false
	}
	r := vg.Rectangle{Min: p[0].Pos, Max: p[2].Pos}
	ok := p[1].Pos == vg.Point{X: r.Max.X, Y: r.Min.Y} && p[3].Pos == vg.Point{X: r.Min.X, Y: r.Max.Y}
	return r, ok
}

func light() Style {
	th, _ := NewTheme("light")
	return Style{Theme: th, Width: 8 * vg.Inch, Height: 5 * vg.Inch}
}

// axisOf reads values back from the labels of the y axis, as a reader would: the
// straight line (of logarithms, if log) through the outermost two ticks.
func axisOf(t *testing.T, d drawn, parse func(string) (float64, bool), log bool) func(vg.Length) float64 {
	t.Helper()
	type mark struct{ y, v float64 }
	var marks []mark
	for _, w := range d.texts {
		if v, ok := parse(w.text); ok && w.corners[1].X < d.sheet.area.Min.X && w.corners[1].X > d.sheet.area.Min.X-10 {
			if log {
				v = math.Log(v)
			}
			marks = append(marks, mark{(w.at.Y + vg.Length(w.size*0.35)).Points(), v})
		}
	}
	if len(marks) < 2 {
		t.Fatalf("the y axis has %d labels", len(marks))
	}
	slices.SortFunc(marks, func(a, b mark) int { return int(math.Copysign(1, a.y-b.y)) })
	a, b := marks[0], marks[len(marks)-1]
	at := func(y vg.Length) float64 { return a.v + (b.v-a.v)*(y.Points()-a.y)/(b.y-a.y) }
	for _, m := range marks { // the ticks between must lie on it
		if math.Abs(at(vg.Length(m.y))-m.v) > 1e-6*math.Abs(b.v-a.v) {
			t.Errorf("the tick %v is at %v", m.v, at(vg.Length(m.y)))
		}
	}
	return func(y vg.Length) float64 {
		if log {
			return math.Exp(at(y))
		}
		return at(y)
	}
}

func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// bars finds the rectangles of a colour within the data area.
func (d drawn) bars(c color.NRGBA) []filled {
	var out []filled
	for _, f := range d.fills {
		if f.color == c && f.Min.X >= d.sheet.area.Min.X && f.Max.Y <= d.sheet.area.Max.Y+0.01 && f.Min.Y >= d.sheet.area.Min.Y-0.01 {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b filled) int { return int(math.Copysign(1, (a.Min.X - b.Min.X).Points())) })
	return out
}

func TestBarsAreAsHighAsTheirValues(t *testing.T) {
	f := build(t, sizes().source(), Options{By: []string{"size", "sandbox", "connections"}, Kind: Bar, Responses: []string{"rate"}})[0]
	d := recordFigure(t, &f, light())
	value := axisOf(t, d, number, false)
	for ci, sandbox := range []string{"process", "runc", "runsc"} {
		bars := d.bars(d.sheet.th.Colour(ci))
		if len(bars) != 6 {
			t.Fatalf("%s has %d bars", sandbox, len(bars))
		}
		i := 0
		for _, size := range []string{"1B", "4KiB", "64KiB"} {
			for _, conns := range []string{"1", "16"} {
				cell := record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: sandbox}, {Factor: "size", Value: size}, {Factor: "connections", Value: conns}}
				var v []float64
				for b := 1; b <= 4; b++ {
					v = append(v, truth(cell, b))
				}
				want, _, _ := mean(v)
				// The axis is in k/s.
				if got := value(bars[i].Max.Y) * 1000; !near(got, want, 1e-6) {
					t.Errorf("%s is drawn as %v, not %v", cell, got, want)
				}
				if got := value(bars[i].Min.Y); math.Abs(got) > 1e-6 {
					t.Errorf("%s begins at %v", cell, got)
				}
				i++
			}
		}
	}
}

func TestBarsOfRatiosStandOnOne(t *testing.T) {
	src := sizes().source()
	f := build(t, src, Options{By: []string{"size", "sandbox"}, Kind: Bar, Value: Cost, Responses: []string{"latency"}})[0]
	d := recordFigure(t, &f, light())
	value := axisOf(t, d, number, false)
	n := 0
	for i := range f.Marks {
		m := &f.Marks[i]
		if hollow(m) {
			continue
		}
		n++
		found := false
		for _, b := range d.bars(d.sheet.th.Colour(f.Colour.Index[m.Colour])) {
			lo, hi := value(b.Min.Y), value(b.Max.Y)
			found = found || near(lo, min(1, m.Value), 1e-6) && near(hi, max(1, m.Value), 1e-6)
		}
		if !found {
			t.Errorf("%s: no bar from 1 to %v", m.Cell, m.Value)
		}
	}
	if n != 6 {
		t.Errorf("%d of 6 bars are decided", n)
	}
}

// On logarithmic axes too, and for marks of lines: each line's corners are values.
func TestLinesGoThroughTheValues(t *testing.T) {
	l := sizes()
	l.factors[1].Levels = []string{"1", "2", "4", "64"}
	src := l.source()
	for i := range src.Trials { // far apart
		c := src.Trials[i].Cell
		if v, _ := c.Get("sandbox"); v == "runsc" {
			src.Trials[i].Samples[0].Value /= 100
		}
	}
	src.Result = reanalysed(src)
	f := build(t, src, Options{By: []string{"size", "sandbox"}, Responses: []string{"rate"}})[0]
	d := recordFigure(t, &f, light())
	if f.Kind != Line || !d.sheet.y.log {
		t.Fatalf("%s, log %v", f.Kind, d.sheet.y.log)
	}
	value := axisOf(t, d, func(s string) (float64, bool) {
		n, unit, _ := strings.Cut(s, " ")
		v, err := strconv.ParseFloat(n, 64)
		if unit == "k/s" {
			v *= 1000
		}
		return v, err == nil && unit != ""
	}, true)
	for c := range f.Colour.Levels {
		var want []float64
		for _, m := range f.Marks {
			if m.Colour == c {
				want = append(want, m.Value)
			}
		}
		found := false
		for _, s := range d.strokes {
			if s.width != 1.5 || len(s.path) != len(want) {
				continue
			}
			same := true
			for i, p := range s.path {
				same = same && near(value(p.Pos.Y), want[i], 1e-6)
			}
			if same {
				found = true
				// x is to scale: 1, 2, 4, 64 on a logarithmic axis.
				for i, p := range []float64{0, 1. / 6, 2. / 6, 1} {
					from, to := s.path[0].Pos.X, s.path[3].Pos.X
					if got := (s.path[i].Pos.X - from) / (to - from); math.Abs(float64(got)-p) > 1e-6 {
						t.Errorf("level %d stands at %v of the axis, not %v", i, got, p)
					}
				}
			}
		}
		if !found {
			t.Errorf("no line of %s through %v", f.Colour.Levels[c], want)
		}
	}
}

func TestHatchingStaysInside(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	inside := func(r vg.Rectangle, p vg.Point, by vg.Length) bool {
		const e = 1e-9
		return p.X >= r.Min.X+by-e && p.X <= r.Max.X-by+e && p.Y >= r.Min.Y+by-e && p.Y <= r.Max.Y-by+e
	}
	for range 2000 {
		r := vg.Rectangle{Min: vg.Point{X: vg.Length(rng.Float64() * 500), Y: vg.Length(rng.Float64() * 500)}}
		r.Max = r.Min.Add(vg.Point{X: vg.Length(rng.Float64() * 60), Y: vg.Length(rng.Float64() * 300)})
		for p := range pattern(mostHatched) {
			lines, centres := hatch(p, r)
			for _, l := range lines {
				if !inside(r, l.from, 0) || !inside(r, l.to, 0) {
					t.Fatalf("pattern %d: %v is not in %v", p, l, r)
				}
			}
			for _, c := range centres {
				if !inside(r, c, dotRadius) {
					t.Fatalf("pattern %d: a dot at %v is not in %v", p, c, r)
				}
			}
			if big := r.Max.X-r.Min.X > 12 && r.Max.Y-r.Min.Y > 12; big && p != plain && len(lines)+len(centres) == 0 {
				t.Fatalf("pattern %d leaves %v empty", p, r)
			}
		}
	}
}

// Every hatching of a figure is there, inside a bar or a sample of the legend.
func TestHatchedBars(t *testing.T) {
	f := build(t, sizes().source(), Options{By: []string{"size", "sandbox", "connections"}, Kind: Bar})[0]
	d := recordFigure(t, &f, light())
	n := 0
	for _, s := range d.strokes {
		if s.width != 0.7 {
			continue
		}
		n++
		ok := slices.ContainsFunc(d.fills, func(r filled) bool {
			for _, p := range s.path {
				if p.Pos.X < r.Min.X-1e-6 || p.Pos.X > r.Max.X+1e-6 || p.Pos.Y < r.Min.Y-1e-6 || p.Pos.Y > r.Max.Y+1e-6 {
					return false
				}
			}
			return r.Max.X-r.Min.X < 100
		})
		if !ok {
			t.Errorf("the line %v is in no bar", s.path)
		}
	}
	if n < 50 {
		t.Errorf("%d lines of hatching", n)
	}
}

func TestLegendsAndLabels(t *testing.T) {
	src := sizes().source()
	for _, kind := range []Graph{Bar, Line, Dot, Heat} {
		for _, v := range []Value{Level, Cost} {
			f := build(t, src, Options{By: []string{"size", "sandbox", "connections"}, Kind: kind, Value: v, Responses: []string{"rate"}})[0]
			var all []string
			for _, w := range recordFigure(t, &f, light()).texts {
				all = append(all, w.text)
			}
			page := strings.Join(all, "\n")
			want := []string{"runc", "runsc", "1B", "4KiB", "64KiB", "size", "16", "rate", "Imagined 1 GHz", "tare v1", "process", "n = 4 blocks", map[Value]string{Level: "higher is better", Cost: "more is worse"}[v]}
			if kind != Heat {
				want = append(want, "sandbox:", "connections:")
			}
			for _, w := range want {
				if !strings.Contains(page, w) {
					t.Errorf("%s of %s does not say %q:\n%s", kind, v, w, page)
				}
			}
		}
	}
}
