package terminal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer passes text to a person: see the package. Several goroutines may use it at once.
// It keeps at most the beginning of a character or of a mark.
type Writer struct {
	out  io.Writer
	mark []byte // how marks of its Ink begin

	mu    sync.Mutex
	rest  []byte // the end of the last Write, which the next one may complete
	drawn int    // lines of the last Redraw, the cursor in the last one; 0: none are shown
}

// New makes the Writer of an output. It panics if the system has no random numbers.
func New(out io.Writer) *Writer {
	var n [16]byte
	if _, err := rand.Read(n[:]); err != nil {
		panic(err) // crypto/rand documents that it never does
	}
	// Digits only, so that code that counts columns sees the mark as a sequence of
	// ECMA-48 (section 5.4, SGR).
	mark := fmt.Sprintf("%s%020d%020d;", csi, binary.LittleEndian.Uint64(n[:8]), binary.LittleEndian.Uint64(n[8:]))
	return &Writer{out: out, mark: []byte(mark)}
}

// The sequences of ECMA-48 that tare itself writes.
const (
	csi   = "\x1b["
	sgr   = 'm'
	reset = "0"
	erase = "\r" + csi + "K" // the terminal's line
)

// maxStyle bounds the style in a mark, in bytes: 1;38;5;255 has ten.
const maxStyle = 16

// Ink colours text. The zero Ink leaves it as it is.
type Ink struct{ mark string }

// Ink colours text for this Writer only: others show the marks as escapes.
func (w *Writer) Ink() Ink { return Ink{string(w.mark)} }

// On reports whether the ink colours.
func (k Ink) On() bool { return k.mark != "" }

// Paint colours s, which has no newline, with codes of ECMA-48, section 8.3.117.
func (k Ink) Paint(s string, codes ...int) string {
	if !k.On() || s == "" || len(codes) == 0 {
		return s
	}
	style := make([]string, len(codes))
	for i, c := range codes {
		style[i] = strconv.Itoa(c)
	}
	return k.mark + strings.Join(style, ";") + string(sgr) + s + k.mark + reset + string(sgr)
}

// Write implements io.Writer. If the end of p may be the beginning of a character, Write
// holds it back until more comes, or until Flush.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drawn > 0 {
		w.erase()
	}
	in := p
	if len(w.rest) > 0 {
		in = append(w.rest, p...)
		w.rest = nil
	}
	if err := w.pass(in, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was held back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *Writer) flush() error {
	in := w.rest
	w.rest = nil
	return w.pass(in, true)
}

// pass writes in. If it is the last, it holds nothing back.
func (w *Writer) pass(in []byte, last bool) error {
	var b []byte // nil while nothing had to change
	from := 0    // the start of the part that is in neither b nor the output
	for i := 0; i < len(in); {
		r, n := rune(in[i]), 1
		if r >= utf8.RuneSelf {
			if !last && !utf8.FullRune(in[i:]) {
				w.rest = append(w.rest, in[i:]...)
				in = in[:i]
				break
			}
			r, n = utf8.DecodeRune(in[i:])
		}
		if r == '\n' || r == '\t' || passes(r) && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		if r == 0x1b {
			style, size, more := w.style(in[i:])
			if more && !last {
				w.rest = append(w.rest, in[i:]...)
				in = in[:i]
				break
			}
			if size > 0 {
				b = append(append(b, in[from:i]...), csi...)
				b = append(append(b, style...), sgr)
				i += size
				from = i
				continue
			}
		}
		b = escaped(append(b, in[from:i]...), r, string(in[i:i+n]))
		i += n
		from = i
	}
	if len(b) > 0 {
		in = append(b, in[from:]...)
	}
	if len(in) == 0 {
		return nil
	}
	_, err := w.out.Write(in)
	return err
}

// style reads a mark: its style, and its size, or 0 if it is not a mark. more: it may be
// a mark once more bytes come.
func (w *Writer) style(in []byte) (style []byte, size int, more bool) {
	n := min(len(in), len(w.mark))
	if !bytes.Equal(in[:n], w.mark[:n]) {
		return nil, 0, false
	}
	if n < len(w.mark) {
		return nil, 0, true
	}
	for i, c := range in[n:min(len(in), n+maxStyle)] {
		switch {
		case c == sgr:
			return in[n : n+i], n + i + 1, false
		case c != ';' && (c < '0' || c > '9'):
			return nil, 0, false
		}
	}
	return nil, 0, len(in) < n+maxStyle
}

// Rewrite replaces the line that the cursor is in, and cuts the new one to the width of
// the terminal; "" leaves the line empty.
func (w *Writer) Rewrite(line string) {
	if width, ok := w.Terminal(); ok {
		line = fit(Line(line), width-1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flush() == nil { // otherwise nobody reads any more
		_, _ = io.WriteString(w.out, erase+Line(line))
	}
}

// Redraw replaces the lines of the last Redraw, and cuts each new one to the width of the terminal.
// Without lines it takes the last ones away, as Write does. The lines may have Ink.
func (w *Writer) Redraw(lines ...string) {
	width, ok := w.Terminal()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flush() != nil { // nobody reads any more
		return
	}
	w.erase()
	for i, line := range lines {
		if ok {
			line = fit(line, width-1)
		}
		if i > 0 {
			line = "\n" + line
		}
		if w.pass([]byte(line), true) != nil {
			return
		}
	}
	w.drawn = len(lines)
}

// erase takes the lines of the last Redraw away.
func (w *Writer) erase() {
	up := "\r"
	if w.drawn > 1 {
		up += csi + strconv.Itoa(w.drawn-1) + "A"
	}
	w.drawn = 0
	_, _ = io.WriteString(w.out, up+csi+"J") // who reads no more needs no clean line
}

// fit cuts a line to this many columns. Wide characters take two, and some others are
// counted as two.
func fit(line string, width int) string {
	const wide = 0x1100 // the first block of those, Hangul Jamo
	for i, r := range line {
		if width--; r >= wide {
			width--
		}
		if width < 0 {
			return line[:i]
		}
	}
	return line
}

// Terminal returns the width of the terminal that the Writer writes to. The width is 80 if
// the terminal does not say. It returns false if the output is not a terminal.
func (w *Writer) Terminal() (width int, ok bool) {
	f, ok := w.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 20 {
		return n, true
	}
	return 80, true
}

// Raw is the output itself, for formats that are not text. The caller has checked that it
// is not a terminal.
func (w *Writer) Raw() io.Writer { return w.out }
