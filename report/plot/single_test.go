package plot

import (
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// TestSingleShape: a single block has the shape that the legend of its figure shows for it, and not that of what a line's dashes tell.
func TestSingleShape(t *testing.T) {
	f := &Figure{Kind: Line, Colour: Axis{Factor: "sandbox", Levels: []string{"pod", "vm"}, Index: []int{0, 1}}, Hatch: Axis{Factor: "bs", Levels: []string{"2KiB", "4KiB"}, Index: []int{0, 1}}}
	s := &sheet{f: f, th: &Theme{}}
	last := func(draws func()) int { // how many parts the outline has that was filled last
		var c recorder.Canvas
		s.c = draw.NewCanvas(&c, 100, 100)
		draws()
		n := 0
		for _, a := range c.Actions {
			if p, ok := a.(*recorder.Fill); ok {
				n = len(p.Path)
			}
		}
		return n
	}
	for colour := range 2 {
		for hatch := range 2 {
			mark := last(func() { s.singles(&Mark{Colour: colour, Hatch: hatch, Points: []float64{1}, N: 1}, 50, 10, s.th.Ink) })
			key := last(func() { s.glyph(vg.Point{X: 5, Y: 5}, colour, 0, s.th.Ink, false) })
			if mark != key || mark == 0 {
				t.Errorf("colour %d, dashes %d: an outline of %d parts, and the legend's has %d", colour, hatch, mark, key)
			}
		}
	}
}
