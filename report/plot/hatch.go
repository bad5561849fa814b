package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// pattern is a hatching. The canvas has no clipping that all formats share, so
// lines and dots are made to end at the outline.
type pattern int

const (
	plain pattern = iota
	diagonal
	dots
	backDiagonal
	horizontal
	cross
	vertical
	grid
	patterns // how many there are; from here on again, closer
)

// mostHatched is how many levels hatching tells apart.
const mostHatched = int(2*patterns) - 1

type segment struct{ from, to vg.Point }

// hatch returns the lines of a pattern inside r, and the centres of its dots.
func hatch(p pattern, r vg.Rectangle) (lines []segment, centres []vg.Point) {
	step := vg.Length(5)
	if p >= patterns {
		p, step = p-patterns+1, 2.6
	}
	switch p {
	case diagonal:
		lines = slanted(r, step, false)
	case backDiagonal:
		lines = slanted(r, step, true)
	case cross:
		lines = append(slanted(r, step, false), slanted(r, step, true)...)
	case horizontal, vertical, grid:
		if p != vertical {
			for y := r.Min.Y + step/2; y < r.Max.Y; y += step {
				lines = append(lines, segment{vg.Point{X: r.Min.X, Y: y}, vg.Point{X: r.Max.X, Y: y}})
			}
		}
		if p != horizontal {
			for x := r.Min.X + step/2; x < r.Max.X; x += step {
				lines = append(lines, segment{vg.Point{X: x, Y: r.Min.Y}, vg.Point{X: x, Y: r.Max.Y}})
			}
		}
	case dots:
		odd := false
		for y := r.Min.Y + step/2; y+dotRadius <= r.Max.Y; y += step * 0.7 {
			x := r.Min.X + step/2
			if odd = !odd; !odd {
				x += step / 2
			}
			for ; x+dotRadius <= r.Max.X; x += step {
				centres = append(centres, vg.Point{X: x, Y: y})
			}
		}
	}
	return lines, centres
}

const dotRadius = vg.Length(0.8)

// slanted are lines at 45 degrees inside r: rising, or falling when back.
func slanted(r vg.Rectangle, step vg.Length, back bool) []segment {
	var out []segment
	w, h := r.Max.X-r.Min.X, r.Max.Y-r.Min.Y
	step *= math.Sqrt2
	for c := -w + step/2; c < h; c += step { // y = x + c within the rectangle
		from, to := max(0, -c), min(w, h-c)
		if to <= from {
			continue
		}
		y0, y1 := from+c, to+c
		if back {
			y0, y1 = h-y0, h-y1
		}
		out = append(out, segment{vg.Point{X: r.Min.X + from, Y: r.Min.Y + y0}, vg.Point{X: r.Min.X + to, Y: r.Min.Y + y1}})
	}
	return out
}

// box fills r, hatches it and outlines it.
func (s *sheet) box(r vg.Rectangle, fill, line color.NRGBA, p pattern) {
	s.c.SetColor(fill)
	s.c.Fill(r.Path())
	lines, centres := hatch(p, r)
	for _, l := range lines {
		s.line(line, 0.7, l.from, l.to)
	}
	s.c.SetColor(line)
	for _, c := range centres {
		s.c.Fill(disc(c, dotRadius))
	}
}

func disc(c vg.Point, r vg.Length) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: c.X + r, Y: c.Y})
	p.Arc(c, r, 0, 2*math.Pi)
	p.Close()
	return p
}
