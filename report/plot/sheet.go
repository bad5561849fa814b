package plot

import (
	"image/color"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// Style is how figures are drawn.
type Style struct {
	Theme         Theme
	Width, Height vg.Length // of a sheet at least: one that holds more than is readable so grows
	Points        bool      // single blocks as small dots
}

// Sizes of type, in points.
const (
	sizeTitle   = 12
	sizeText    = 8.5
	sizeCaption = 7.5
	sizeLeast   = 4.5
	margin      = vg.Length(10)
)

// sheet is a figure on its canvas. Lengths are points from the lower left.
type sheet struct {
	c      draw.Canvas
	fonts  text.Handler
	style  Style
	th     *Theme
	f      *Figure
	y      scale
	area   vg.Rectangle // of the data
	least  vg.Length    // height of the area that a drawing found that it needs
	rows   [][2]int     // colour and hatching that occur together, in order: bars of a group, lines
	row    map[[2]int]int
	noBold bool // the PDF canvas of gonum/plot v0.17 does not find the typeface
}

// newFonts reads the typefaces, which are built in. It is safe for concurrent use.
func newFonts() text.Handler { return text.Plain{Fonts: font.NewCache(liberation.Collection())} }

// newSheet prepares a figure; size says how large a canvas it wants.
func newSheet(f *Figure, st Style, fonts text.Handler) *sheet {
	s := &sheet{fonts: fonts, style: st, th: &st.Theme, f: f, row: make(map[[2]int]int)}
	seen := make(map[[2]int]bool)
	for i := range f.Marks {
		seen[[2]int{f.Marks[i].Colour, f.Marks[i].Hatch}] = true
	}
	for c := range max(1, len(f.Colour.Levels)) {
		for h := range max(1, len(f.Hatch.Levels)) {
			if k := [2]int{c, h}; seen[k] {
				s.row[k] = len(s.rows)
				s.rows = append(s.rows, k)
			}
		}
	}
	if f.Kind != Heat && f.Kind != CauseMap && f.Kind != Grid && f.Kind != Starts {
		s.y = newScale(f, st.Points)
	}
	return s
}

// size is at least what the style says, more where marks would be too narrow to
// see, or legend and labels take too much.
func (s *sheet) size() (w, h vg.Length) {
	w, h = s.style.Width, s.style.Height
	nx, n := vg.Length(len(s.f.X.Levels)), vg.Length(len(s.rows))
	switch s.f.Kind {
	case Bar, Dot:
		w = max(w, 80+nx*(n*4.5+4))
	case Heat:
		w = max(w, 200+nx*30)
		h = max(h, 170+n*11)
	case CauseMap:
		w = max(w, 200+nx*46)
		h = max(h, 170+n*18)
	case Grid:
		rows, columns := s.f.shape()
		w, h = max(w, 2*margin+vg.Length(columns)*panelWidth), max(h, 90+vg.Length(rows)*panelHeight)
	case Line, Starts:
	}
	w, h = min(w, longestSide), min(h, longestSide)
	// A dry run tells what legend and labels leave for the data.
	for range 3 {
		s.draw(draw.NewCanvas(new(recorder.Canvas), w, h))
		lacks := max(90, s.style.Height*0.4, s.least) - (s.area.Max.Y - s.area.Min.Y)
		if lacks <= 0 || h >= longestSide {
			break
		}
		h = min(h+lacks+5, longestSide)
	}
	return w, h
}

// longestSide is five metres of paper.
const longestSide = vg.Length(14400)

// draw puts everything on the canvas.
func (s *sheet) draw(c draw.Canvas) {
	s.c = c
	size := c.Max
	s.fill(s.th.Paper, vg.Rectangle{Max: size})
	inner := size.X - 2*margin
	y := size.Y - margin
	for _, part := range []struct {
		txt   string
		size  float64
		bold  bool
		most  int
		color color.NRGBA
	}{{s.f.Title, sizeTitle, true, 2, s.th.Ink}, {s.f.Subtitle, sizeText, false, 2, s.th.Quiet}} {
		for _, l := range s.wrap(part.txt, part.size, part.bold, inner, part.most) {
			y -= vg.Length(part.size) * 1.2
			s.text(vg.Point{X: margin, Y: y}, l, part.size, part.bold, part.color, draw.XLeft, 0)
		}
		y -= 2
	}
	bottom := margin
	caption := s.wrap(s.f.Caption, sizeCaption, false, inner, 5)
	for i := range caption {
		s.text(vg.Point{X: margin, Y: bottom}, caption[len(caption)-1-i], sizeCaption, false, s.th.Quiet, draw.XLeft, 0)
		bottom += sizeCaption * 1.25
	}
	bottom += 3
	l := s.legend()
	fs := sizeText
	for ; fs > sizeLeast+1; fs -= 1 { // a long legend in smaller type rather than a small graph
		if l.height(s, fs, inner) < (y-bottom)*0.35 {
			break
		}
	}
	y -= l.draw(s, fs, margin, y, inner) + 6
	s.area = vg.Rectangle{Min: vg.Point{X: margin, Y: bottom}, Max: vg.Point{X: size.X - margin, Y: max(y, bottom+40)}}
	switch s.f.Kind {
	case Heat, CauseMap:
		s.heat()
	case Grid:
		s.grid()
	case Starts:
		s.starts()
	case Line:
		s.axes(true)
		s.lines()
	case Dot:
		s.axes(false)
		s.dots()
	default:
		s.axes(false)
		s.bars()
	}
}

// look is how a mark's colour and hatching are drawn.
func (s *sheet) look(m *Mark) (color.NRGBA, pattern) { return s.looks(m.X, m.Colour, m.Hatch) }

func (s *sheet) looks(x, c, h int) (color.NRGBA, pattern) {
	i := 0
	switch {
	case s.f.Colour.used():
		i = s.f.Colour.Index[c]
	case s.f.X.Factor == s.f.Compare && x < len(s.f.X.Index):
		i = s.f.X.Index[x] // a treatment has its colour everywhere
	}
	fill := s.th.Colour(i)
	switch {
	case s.f.Hatch.used():
		return fill, pattern(s.f.Hatch.Index[h])
	case s.th.Shaded:
		return fill, pattern(i % mostHatched)
	}
	return fill, pattern(i / len(s.th.Colours) % mostHatched) // a colour that comes again is hatched
}

// hollow are the marks of which the study says that it does not know.
func hollow(m *Mark) bool { return m.Verdict == "undecided" }

func (s *sheet) fill(c color.NRGBA, r vg.Rectangle) {
	s.c.SetColor(c)
	s.c.Fill(r.Path())
}

func (s *sheet) line(c color.NRGBA, width vg.Length, pts ...vg.Point) {
	s.dashed(c, width, nil, pts...)
}

func (s *sheet) dashed(c color.NRGBA, width vg.Length, dashes []vg.Length, pts ...vg.Point) {
	if len(pts) < 2 {
		return
	}
	s.c.StrokeLines(draw.LineStyle{Color: c, Width: width, Dashes: dashes}, pts)
}

func (s *sheet) frame(c color.NRGBA, width vg.Length, r vg.Rectangle) {
	s.c.SetLineStyle(draw.LineStyle{Color: c, Width: width})
	s.c.Stroke(r.Path())
}

func (s *sheet) font(size float64, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if bold && !s.noBold {
		f.Weight = xfont.WeightBold
	}
	return text.Style{Font: f, Handler: s.fonts}
}

// text writes one line, pt on its base line, turned about pt.
func (s *sheet) text(pt vg.Point, txt string, size float64, bold bool, c color.NRGBA, xa draw.XAlignment, turn float64) {
	if txt = printable(txt); txt == "" {
		return
	}
	st := s.font(size, bold)
	st.Color, st.XAlign, st.Rotation = c, xa, turn
	// The library sets the base line as if a line were as high as its letters.
	d := vg.Length(size) - st.FontExtents().Ascent
	s.c.FillText(st, vg.Point{X: pt.X + d*vg.Length(math.Sin(turn)), Y: pt.Y - d*vg.Length(math.Cos(turn))}, txt)
}

func (s *sheet) width(txt string, size float64, bold bool) vg.Length {
	return s.font(size, bold).Width(printable(txt))
}

// fit shortens a text in its middle until it is no wider than room.
func (s *sheet) fit(txt string, size float64, room vg.Length) string {
	txt = printable(txt)
	if s.width(txt, size, false) <= room {
		return txt
	}
	r := []rune(txt)
	lo, hi := 0, min(len(r)-1, 400) // runes that stay
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.width(middleCut(r, mid), size, false) <= room {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo == 0 {
		return ""
	}
	return middleCut(r, lo)
}

func middleCut(r []rune, keep int) string {
	tail := keep / 2
	return strings.TrimSpace(string(r[:keep-tail])) + "…" + strings.TrimSpace(string(r[len(r)-tail:]))
}

// wrap breaks a text at spaces into lines, the last shortened if there would be
// more than most.
func (s *sheet) wrap(txt string, size float64, bold bool, room vg.Length, most int) []string {
	if bold {
		room *= 0.92 // fit measures the regular weight
	}
	var lines []string
	cur := ""
	words := strings.Fields(printable(txt))
	for i, w := range words {
		next := strings.TrimSpace(cur + " " + w)
		if cur == "" || s.width(next, size, bold) <= room {
			cur = next
			continue
		}
		if len(lines) == most-1 {
			cur = strings.Join(append([]string{cur}, words[i:]...), " ")
			break
		}
		lines = append(lines, cur)
		cur = w
	}
	if cur != "" {
		lines = append(lines, cur)
	}
	for i := range lines {
		lines[i] = s.fit(lines[i], size, room)
	}
	return lines
}

// printable makes any text fit for one line of XML, at most 1000 runes of it.
func printable(txt string) string {
	n := 0
	for i := range txt {
		if n++; n > 1000 {
			return clean(txt[:i])
		}
	}
	return clean(txt)
}

// clean takes control and formatting characters out.
func clean(txt string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return '?'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, txt)
}

// at is the height of a value in the area, kept within it.
func (s *sheet) at(v float64) vg.Length {
	n := math.Max(0, math.Min(1, s.y.norm(v)))
	return s.area.Min.Y + vg.Length(n)*(s.area.Max.Y-s.area.Min.Y)
}
