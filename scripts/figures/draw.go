package main

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	wide   = 6.2 * vg.Inch // of a figure with one panel; more have less each
	high   = 3.2 * vg.Inch
	pad    = 8 * vg.Length(1)
	letter = 10 // points
)

// palette is that of Okabe and Ito, which the colour-blind tell apart: blue,
// vermillion, green, black, orange. Marks and dashes say the same without colour.
func palette(i int) color.Color {
	return [...]color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 130, 96, 255}, {0, 0, 0, 255}, {190, 130, 0, 255}}[i]
}

func grey(v uint8) color.Color { return color.RGBA{v, v, v, 255} }

func mark(s style) draw.GlyphStyle {
	g := draw.GlyphStyle{Color: palette(s.Color), Radius: 3.2}
	g.Shape = [...]draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, diamond{}}[s.Mark]
	if s.Mark == 3 {
		g.Radius = 5
	}
	return g
}

func stroke(s style) draw.LineStyle {
	l := draw.LineStyle{Color: palette(s.Color), Width: 1.6}
	if s.Kind == ground {
		l.Color, l.Width = grey(170), 2.5
	}
	if s.Dash {
		l.Dashes = []vg.Length{5, 3}
	}
	return l
}

// diamond is a hollow one: what it stands for is not on the line of its colour.
type diamond struct{}

func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius
	var p vg.Path
	p.Move(vg.Point{X: at.X - r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y + r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y - r})
	p.Close()
	c.SetColor(color.White)
	c.Fill(p)
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: 1.8})
	c.Stroke(p)
}

func sans(size vg.Length, bold bool) font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = 2 // golang.org/x/image/font.WeightBold
	}
	return f
}

func handler() text.Handler { return text.Plain{Fonts: font.DefaultCache} }

func (f *spec) draw(points []point) ([]byte, error) {
	n := len(f.Panels)
	w := wide
	if n > 1 {
		w = 4.1 * vg.Inch * vg.Length(n)
	}
	if n > 2 {
		w = 3.3 * vg.Inch * vg.Length(n)
	}
	row := make([]*plot.Plot, n)
	for i := range f.Panels {
		p, err := f.panel(&f.Panels[i], points)
		if err != nil {
			return nil, err
		}
		row[i] = p
	}
	svg := vgsvg.New(w, high)
	all := draw.New(svg)
	all.SetColor(color.White) // GitHub shows it on black too
	all.Fill(all.Path())
	rows := 1
	if len(f.Series) > 4 {
		rows = 2
	}
	strip := vg.Length(rows)*16 + pad
	for i, c := range plot.Align([][]*plot.Plot{row}, draw.Tiles{Rows: 1, Cols: n, PadX: 14, PadLeft: pad, PadRight: pad, PadTop: pad, PadBottom: 2}, draw.Crop(all, 0, 0, strip, 0))[0] {
		row[i].Draw(c)
	}
	f.legend(draw.Crop(all, 0, 0, 0, -(high-strip)), rows)
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (f *spec) panel(pn *panel, points []point) (*plot.Plot, error) {
	p := plot.New()
	p.TextHandler = handler()
	p.Title.Text, p.Title.Padding = title(pn, points), 6
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		s.Font, s.Handler, s.Color = sans(letter, false), handler(), grey(40)
	}
	p.Title.TextStyle.Font = sans(letter+1, true)
	p.X.Label.Text, p.Y.Label.Text = f.XLabel, pn.YLabel
	p.X.Tick.Marker, p.X.Color, p.Y.Color = ticks(f.XTicks), grey(120), grey(120)
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, grey(230)
	p.Add(grid)
	if pn.Want > 0 {
		p.Add(level{pn.Want, pn.Said})
	}
	for _, s := range f.Series {
		var xy plotter.XYs
		for _, pt := range points {
			if pt.panel == pn.Key && pt.series == s.Key {
				xy = append(xy, plotter.XY{X: pt.x, Y: pt.y})
			}
		}
		if len(xy) == 0 {
			return nil, fmt.Errorf("the data has nothing for %q, %q", pn.Key, s.Key)
		}
		if s.Kind != marks {
			l, err := plotter.NewLine(xy)
			if err != nil {
				return nil, err
			}
			l.LineStyle = stroke(s)
			p.Add(l)
		}
		if s.Kind != ground {
			m, err := plotter.NewScatter(xy)
			if err != nil {
				return nil, err
			}
			m.GlyphStyle = mark(s)
			p.Add(m)
		}
	}
	if pn.YMax > pn.YMin {
		p.Y.Min, p.Y.Max = pn.YMin, pn.YMax
		p.Y.Tick.Marker = ticks(pn.YTicks)
	}
	return p, nil
}

// title is the panel's, or its key and the ratio that the data gives.
func title(pn *panel, points []point) string {
	if pn.Title != "" || pn.Key == "" {
		return pn.Title
	}
	v := map[string]float64{}
	for _, p := range points {
		if p.panel == pn.Key {
			v[p.series] = p.y
		}
	}
	return fmt.Sprintf("%s: B/A = %.3f (%.3f–%.3f)", pn.Key, v["ratio"], v["lo"], v["hi"])
}

type ticks []float64

func (t ticks) Ticks(_, _ float64) []plot.Tick {
	var out []plot.Tick
	for _, v := range t {
		out = append(out, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	return out
}

// level is a dotted line across, what was promised or wished for.
type level struct {
	y    float64
	said string
}

func (l level) Plot(c draw.Canvas, p *plot.Plot) {
	_, trY := p.Transforms(&c)
	y := trY(l.y)
	c.StrokeLine2(draw.LineStyle{Color: grey(60), Width: 1, Dashes: []vg.Length{1.5, 2.5}}, c.Min.X, y, c.Max.X, y)
	sty := text.Style{Color: grey(60), Font: sans(letter-1, false), Handler: handler(), XAlign: draw.XRight, YAlign: draw.YBottom}
	c.FillText(sty, vg.Point{X: c.Max.X, Y: y + 1.5}, l.said)
}

// legend writes the series from the left, those that are marks alone in a row of
// their own, and what finds no room in the next.
func (f *spec) legend(c draw.Canvas, rows int) {
	sty := text.Style{Color: grey(40), Font: sans(letter, false), Handler: handler(), YAlign: draw.YCenter}
	left := c.Min.X + 5*pad
	x, y := left, c.Min.Y+vg.Length(rows)*16-6
	for i, s := range f.Series {
		if i > 0 && rows > 1 && (s.Kind == marks && f.Series[i-1].Kind != marks || x+30+sty.Width(s.Key) > c.Max.X) {
			x, y = left, y-16
		}
		if s.Kind != marks {
			c.StrokeLine2(stroke(s), x, y, x+24, y)
		}
		if s.Kind != ground {
			c.DrawGlyph(mark(s), vg.Point{X: x + 12, Y: y})
		}
		c.FillText(sty, vg.Point{X: x + 30, Y: y}, s.Key)
		x += 30 + sty.Width(s.Key) + 28
	}
}
