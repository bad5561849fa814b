// Package terminal is the only way from tare to a person.
//
// Others wrote much of what tare prints: names in a study, the output of tools, the
// database of somebody else's bundle. A terminal obeys control characters wherever they
// come from, so none of them may pass.
//
// The data path: 1. The code that lays out text (a table, a message, a paragraph) makes
// each piece of data one line with Line, because the width of a column depends on it. 2.
// Everything goes to a Writer, which shows each character that is neither graphic nor a
// newline or tab as an escape such as \x1b. 3. Colours reach it as marks of an Ink, which
// carry a random number that no data can know; the progress line reaches it through
// Rewrite. So a piece that step 1 forgets is still harmless, and the Writer shows data
// that imitates the sequences of step 3 as text.
//
// Formats for programs have their own escapes, and use Text or JSON in files too.
package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// passes reports whether a character is shown as it is: Unicode calls it graphic. It is
// not a control character (C0, DEL, C1), does not change the direction of writing, is not
// invisible in another way, and does not separate lines or paragraphs.
func passes(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	return unicode.IsGraphic(r)
}

// Text shows each invisible character of s as an escape of Go, such as \x1b, \r or
// \u202e, and each byte that is not UTF-8 as \xff. Newlines and tabs stay.
func Text(s string) string { return clean(s, false) }

// Line is Text on one line: a newline, together with a carriage return before it, becomes
// a space, and so does a tab.
func Line(s string) string { return clean(s, true) }

func clean(s string, oneLine bool) string {
	var b strings.Builder
	from := 0 // everything before it is in b
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		blank := r == '\n' || r == '\t'
		if blank && !oneLine || passes(r) && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		b.WriteString(s[from:i])
		switch {
		case blank:
			b.WriteByte(' ')
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"): // the newline stands for it
		default:
			b.Write(escaped(nil, r, s[i:i+n]))
		}
		i += n
		from = i
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// escaped appends the visible form of a character, or of a byte that is not one.
func escaped(b []byte, r rune, raw string) []byte {
	if r == utf8.RuneError && len(raw) == 1 {
		const hex = "0123456789abcdef"
		return append(b, '\\', 'x', hex[raw[0]>>4], hex[raw[0]&15])
	}
	q := strconv.QuoteRuneToGraphic(r)
	return append(b, q[1:len(q)-1]...)
}

// Cut shortens s to at most most bytes, and says that it did.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "... [cut: " + strconv.Itoa(len(s)-end) + " more bytes]"
}

// Bounds of a message, in bytes and lines.
const (
	maxLine  = 4 << 10
	maxLines = 40
)

// Message prepares s to be shown: its first lines, each cut to a bound. All lines but the
// first are indented, so that no text of a tool looks like a message of tare.
func Message(s string) string {
	const indent = "  "
	if !strings.Contains(s, "\n") {
		return Cut(Line(s), maxLine)
	}
	lines := strings.SplitN(strings.TrimRight(s, "\r\n"), "\n", maxLines+1)
	more := 0
	if len(lines) > maxLines {
		more = 1 + strings.Count(lines[maxLines], "\n")
		lines = lines[:maxLines]
	}
	for i := range lines {
		lines[i] = Cut(Line(strings.TrimSuffix(lines[i], "\r")), maxLine)
		if i > 0 {
			lines[i] = indent + lines[i]
		}
	}
	if more > 0 {
		lines = append(lines, indent+"and "+strconv.Itoa(more)+" more lines")
	}
	return strings.Join(lines, "\n")
}

// Lines shows a list of messages, one on each line: the first ones, and how many more
// there are.
func Lines(list []string) string {
	out := make([]string, 0, min(len(list), maxLines)+1)
	for _, s := range list[:min(len(list), maxLines)] {
		out = append(out, Cut(Line(s), maxLine))
	}
	if more := len(list) - len(out); more > 0 {
		out = append(out, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(out, "\n")
}
