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
	Band    color.NRGBA   // the margin in which costs are free
	Colours []color.NRGBA // of the second factor's levels, in order
	Shaded  bool          // colours are greys: hatching tells them apart as well
	Low     []color.NRGBA // heat maps: from the middle to what is best
	High    []color.NRGBA // from the middle to what is worst
}

// leastColours is how many colours every theme has.
const leastColours = 6

// Themes lists what `--theme` takes.
func Themes() []string { return []string{"light", "dark", "print"} }

// NewTheme returns a theme by name; ok is false for one that there is not.
//
// The colours are those of the HTML page (report/html/assets/colour.js): after Okabe and
// Ito (Color Universal Design, 2008, https://jfly.uni-koeln.de/color/), which people with
// any of the common colour deficiencies tell apart, darkened for contrast on white; grey is
// first, for the baseline. Print has greys and hatching in their place.
func NewTheme(name string) (t Theme, ok bool) {
	of := func(hues ...uint32) (out []color.NRGBA) {
		for _, h := range hues {
			out = append(out, rgb(h))
		}
		return out
	}
	light := Theme{Name: "light", Paper: rgb(0xFFFFFF), Ink: rgb(0x1A1A1A), Quiet: rgb(0x5C5C5C), Faint: rgb(0xDDDDDD), Band: rgb(0xEDEDED),
		Colours: of(0x5b6470, 0x0067a6, 0xc2500a, 0x00795a, 0xa8488a, 0x8a6a00, 0x3f51b5, 0x6d4c41), Low: of(0xf5f3ef, 0xa9d2ea, 0x3a84bf, 0x134a7e), High: of(0xf5f3ef, 0xfbc88f, 0xd9701a, 0x8f3a06)}
	switch name {
	case "light", "":
		return light, true
	case "dark":
		return Theme{Name: "dark", Paper: rgb(0x16181C), Ink: rgb(0xECECEC), Quiet: rgb(0xA8ABB0), Faint: rgb(0x383C42), Band: rgb(0x272A30),
			Colours: of(0xa3adb8, 0x5cb3ee, 0xf0944f, 0x3fc79d, 0xe08fc4, 0xe3c14b, 0x9fa8ff, 0xc7a598), Low: of(0x272c32, 0x1f4a6b, 0x2f7fbd, 0x86c8f7), High: of(0x272c32, 0x6d3f15, 0xc26d1f, 0xfba95a)}, true
	case "print":
		light.Name, light.Shaded = "print", true
		light.Colours = []color.NRGBA{rgb(0x4D4D4D), rgb(0xD9D9D9), rgb(0x8C8C8C), rgb(0xF7F7F7), rgb(0xB3B3B3), rgb(0x666666)}
		light.Low, light.High = of(0xFFFFFF, 0x9E9E9E), of(0xFFFFFF, 0x555555) // what is better has a frame too
		return light, true
	}
	return Theme{}, false
}

// Colour is that of a level by its index among all levels of the factor.
func (t *Theme) Colour(i int) color.NRGBA { return t.Colours[i%len(t.Colours)] }

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16 & 0xff), G: uint8(v >> 8 & 0xff), B: uint8(v & 0xff), A: 255}
}

// along is the colour at t of a scale: 0 is its first, 1 its last.
func along(scale []color.NRGBA, t float64) color.NRGBA {
	x := max(0, min(1, t)) * float64(len(scale)-1)
	i := min(int(x), len(scale)-2)
	return mix(scale[i], scale[i+1], x-float64(i))
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
