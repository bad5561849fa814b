package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// family is what stands for Liberation Sans where it is not installed: typefaces
// of the same widths.
const family = `font-family:'Liberation Sans',Arimo,Arial,Helvetica,sans-serif;`

// renderSVG adds to the canvas' output what it does not know of: a title and a
// description for screen readers, and typefaces to fall back on. Embedding the
// typeface would add 400 KB to each graph.
func renderSVG(w io.Writer, s *sheet, width, height vg.Length) error {
	c := vgsvg.New(width, height)
	s.draw(draw.New(c))
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return fmt.Errorf("cannot draw SVG: %w", err)
	}
	out := bytes.ReplaceAll(buf.Bytes(), []byte("font-family:Liberation Sans;"), []byte(family))
	out = bytes.ReplaceAll(out, []byte("font-variant:none;"), nil) // which is not a value of it
	out = s.measured(out)
	head, rest, ok := bytes.Cut(out, []byte("<svg "))
	tag, body, ok2 := bytes.Cut(rest, []byte(">"))
	if !ok || !ok2 {
		return fmt.Errorf("cannot draw SVG: the canvas wrote no <svg> element")
	}
	_, err := fmt.Fprintf(w, "%s<svg role=\"img\" aria-labelledby=\"title desc\" %s>\n<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>%s",
		head, tag, html.EscapeString(printable(s.f.Title)), html.EscapeString(s.f.Alt), body)
	return err
}

var (
	textElement = regexp.MustCompile(`<text ([^>]*)>([^<]*)</text>`)
	textSize    = regexp.MustCompile(`font-size:([0-9.]+)px`)
)

// measured writes to each text how long it is, so that one in another typeface is
// squeezed into the room that was reckoned with, and neither cut nor over its
// neighbour.
func (s *sheet) measured(svg []byte) []byte {
	return textElement.ReplaceAllFunc(svg, func(el []byte) []byte {
		m := textElement.FindSubmatch(el)
		size := textSize.FindSubmatch(m[1])
		if size == nil {
			return el
		}
		px, err := strconv.ParseFloat(string(size[1]), 64)
		txt := html.UnescapeString(string(m[2]))
		if err != nil || txt == "" {
			return el
		}
		long := s.width(txt, px, bytes.Contains(m[1], []byte("font-weight:bold")))
		return fmt.Appendf(nil, `<text %s textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`, m[1], long.Points(), m[2])
	})
}

func renderPNG(w io.Writer, s *sheet, width, height vg.Length, dpi int) error {
	if pixels(width, height, dpi) > mostPixels {
		return fmt.Errorf("a picture of %.0f x %.0f in at %d dpi has more than %d million pixels; lower --dpi, or use --format svg", width/vg.Inch, height/vg.Inch, dpi, mostPixels/1_000_000)
	}
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	s.draw(draw.New(c))
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(w); err != nil {
		return fmt.Errorf("cannot draw PNG: %w", err)
	}
	return nil
}

var pdfDate = regexp.MustCompile(`\((D:)\d{14}`)

// renderPDF takes the time of drawing out, so that the same results are the same
// bytes.
func renderPDF(w io.Writer, s *sheet, width, height vg.Length) error {
	c := vgpdf.New(width, height)
	s.draw(draw.NewCanvas(western{c}, width, height))
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return fmt.Errorf("cannot draw PDF: %w", err)
	}
	_, err := w.Write(pdfDate.ReplaceAll(buf.Bytes(), []byte("(${1}20000101000000")))
	return err
}

// western writes text in the one encoding that the PDF canvas knows, Windows-1252;
// other characters are question marks.
type western struct{ vg.Canvas }

func (c western) FillString(f font.Face, pt vg.Point, str string) {
	out := make([]byte, 0, len(str))
	for _, r := range str {
		switch {
		case r < 0x80 || r >= 0xA0 && r <= 0xFF:
			out = append(out, byte(r)) //nolint:gosec // less than 256
		case r == '…':
			out = append(out, 0x85)
		case r == '–':
			out = append(out, 0x96)
		default:
			out = append(out, '?')
		}
	}
	c.Canvas.FillString(f, pt, string(out))
}
