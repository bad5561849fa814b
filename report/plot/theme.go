package plot

import (
	"image/color"
	"math"
)

// Theme is how a graph is coloured.
type Theme struct {
	Name    string
	Paper   color.NRGBA
	Ink     color.NRGBA   // text, axes, whiskers
	Quiet   color.NRGBA   // captions, gaps
	Faint   color.NRGBA   // grid
	Band    color.NRGBA   // the margin in which ratios are equivalent
	Colours []color.NRGBA // of the second factor's levels, in order
	Shaded  bool          // colours are greys: hatching tells them apart as well
	Low     color.NRGBA   // heat maps: below the middle
	High    color.NRGBA   // above it
}

// leastColours is how many colours every theme has.
const leastColours = 6

// Themes lists what `--theme` takes.
func Themes() []string { return []string{"light", "dark", "print"} }

// NewTheme returns a theme by name; ok is false for one that there is not.
//
// The colours are those of Okabe and Ito (Color Universal Design, 2008,
// https://jfly.uni-koeln.de/color/), which people with any of the common colour
// deficiencies tell apart, in an order in which neighbours also differ in
// lightness. Print has greys and hatching in their place.
func NewTheme(name string) (t Theme, ok bool) {
	okabeIto := []color.NRGBA{
		rgb(0x0072B2), // blue
		rgb(0xE69F00), // orange
		rgb(0x009E73), // bluish green
		rgb(0xF0E442), // yellow
		rgb(0xD55E00), // vermilion
		rgb(0x56B4E9), // sky blue
		rgb(0xCC79A7), // reddish purple
	}
	light := Theme{Name: "light", Paper: rgb(0xFFFFFF), Ink: rgb(0x1A1A1A), Quiet: rgb(0x5C5C5C), Faint: rgb(0xDDDDDD), Band: rgb(0xEDEDED),
		Colours: append(okabeIto, rgb(0x333333)), Low: rgb(0x0072B2), High: rgb(0xD55E00)}
	switch name {
	case "light", "":
		return light, true
	case "dark":
		return Theme{Name: "dark", Paper: rgb(0x16181C), Ink: rgb(0xECECEC), Quiet: rgb(0xA8ABB0), Faint: rgb(0x383C42), Band: rgb(0x272A30),
			Colours: append([]color.NRGBA{rgb(0x3A9BDC)}, append(okabeIto[1:], rgb(0xD0D0D0))...), Low: rgb(0x3A9BDC), High: rgb(0xE8772E)}, true
	case "print":
		light.Name, light.Shaded = "print", true
		light.Colours = []color.NRGBA{rgb(0x4D4D4D), rgb(0xD9D9D9), rgb(0x8C8C8C), rgb(0xF7F7F7), rgb(0xB3B3B3), rgb(0x666666)}
		light.Low, light.High = rgb(0x9E9E9E), rgb(0x555555) // what is better has a frame too
		return light, true
	}
	return Theme{}, false
}

// Colour is that of a level by its index among all levels of the factor.
func (t *Theme) Colour(i int) color.NRGBA { return t.Colours[i%len(t.Colours)] }

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16 & 0xff), G: uint8(v >> 8 & 0xff), B: uint8(v & 0xff), A: 255}
}

// mix is a on the way to b: 0 is a, 1 is b. Opaque, so that all formats show the same.
func mix(a, b color.NRGBA, by float64) color.NRGBA {
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*by)) }
	return color.NRGBA{R: part(a.R, b.R), G: part(a.G, b.G), B: part(a.B, b.B), A: 255}
}

// luminance is the relative luminance of WCAG 2.1, from 0 (black) to 1 (white).
func luminance(c color.NRGBA) float64 {
	lin := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(c.R) + 0.7152*lin(c.G) + 0.0722*lin(c.B)
}

// over is a colour that can be read on c: black or white.
func over(c color.NRGBA) color.NRGBA {
	if luminance(c) > 0.2 {
		return rgb(0x000000)
	}
	return rgb(0xFFFFFF)
}
