package study

import (
	"fmt"
	"strings"
)

// maxErrors bounds what is reported at once: a file in another format would
// give thousands.
const maxErrors = 20

// Error is one mistake in a study file, or in a --set argument.
type Error struct {
	File    string // as given to Parse, or `--set "..."`
	Line    int    // from 1; 0 when the place is a --set argument or the file as a whole
	Column  int    // from 1
	What    string // is wrong
	Instead string // what to write; "" when What says all
}

// Error prints "file:line:column: what is wrong; what to write".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	b.WriteString(e.What)
	if e.Instead != "" {
		b.WriteString("; ")
		b.WriteString(e.Instead)
	}
	return b.String()
}

// Errors are all mistakes found, in the order of their places, at most twenty
// and a last one that counts the rest.
type Errors []*Error

// Error prints one mistake a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find an *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}
