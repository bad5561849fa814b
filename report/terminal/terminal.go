// Package terminal is the one way from tare to a person.
//
// Much of what tare prints was written by others: names in a study, the output of
// tools, the database of somebody else's bundle. A terminal obeys control characters
// wherever they come from, so none of them may pass.
//
// The data path: 1. whoever lays text out (a table, a message, a paragraph) makes each
// piece of data one line with Line, because the width of a column depends on it; 2.
// everything goes to a Writer, which shows each character that is neither graphic nor a
// newline or tab as an escape, as in \x1b; 3. colours reach it as marks of an Ink, which
// carry a random number that no data can know, and the line of progress through Rewrite.
// So a piece that step 1 forgets is still harmless, and data that holds the very
// sequences of step 3 is shown, not obeyed.
//
// Formats for programs have escapes of their own, and use Text or JSON in files too.
package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// passes reports whether a character is shown as it is: what Unicode calls graphic. It
// is none of the control characters (C0, DEL, C1), of those that turn the direction of
// writing, of the other invisible ones and of the separators of lines and paragraphs.
func passes(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	return unicode.IsGraphic(r)
}

// Text shows each character of s that a person could not see as an escape of Go, such
// as \x1b, \r or \u202e, and each byte that is not UTF-8 as \xff. Newlines and tabs stay.
func Text(s string) string { return clean(s, false) }

// Line is Text on one line: a newline, with the carriage return before it, and a tab
// become a space.
func Line(s string) string { return clean(s, true) }

func clean(s string, oneLine bool) string {
	var b strings.Builder
	from := 0 // what is before is in b
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
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"): // the newline says it
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

// escaped appends the visible form of a character, or of the byte that is none.
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

// Message makes s fit to be told: its first lines, each cut to a bound and each but the
// first indented, so that no text of a tool looks like a message of tare.
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

// Lines tells a list of messages, each on a line of its own: the first ones, and how many
// there are beyond.
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
