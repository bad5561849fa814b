package terminal

import (
	"encoding/json"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonWriter escapes what encoding/json does not.
type jsonWriter struct{ out io.Writer }

// JSON returns an encoder to w. It also escapes characters that encoding/json lets pass
// but a terminal obeys or hides: DEL, C1, and those that change the direction of writing.
// A reader gets the original text (RFC 8259, section 7). < and > stay readable.
func JSON(w io.Writer) *json.Encoder {
	e := json.NewEncoder(jsonWriter{w})
	e.SetEscapeHTML(false)
	return e
}

// Write takes whole values, as the encoder writes them: such characters occur only in
// strings.
func (w jsonWriter) Write(p []byte) (int, error) {
	var b []byte
	from := 0
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if passes(r) || r == '\n' || r == '\t' {
			i += n
			continue
		}
		b = append(b, p[from:i]...)
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			b = four(four(b, hi), lo)
		} else {
			b = four(b, r)
		}
		i += n
		from = i
	}
	if from > 0 {
		p, b = append(b, p[from:]...), p
		_, err := w.out.Write(p)
		return len(b), err
	}
	return w.out.Write(p)
}

// four appends \uXXXX.
func four(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
