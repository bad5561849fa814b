package record

import (
	"slices"
	"strings"
)

// Level is one value of one factor.
type Level struct {
	Factor string `json:"factor"`
	Value  string `json:"value"`
}

// Cell is one combination of levels, in the study's order of factors. Only the
// factors that apply are in it.
type Cell []Level

// Get returns the level of a factor, and whether the factor applies.
func (c Cell) Get(factor string) (string, bool) {
	for _, l := range c {
		if l.Factor == factor {
			return l.Value, true
		}
	}
	return "", false
}

// Without returns the cell without the named factors, in a new slice.
func (c Cell) Without(factors ...string) Cell {
	out := make(Cell, 0, len(c))
	for _, l := range c {
		if !slices.Contains(factors, l.Factor) {
			out = append(out, l)
		}
	}
	return out
}

// Key returns the cell's canonical text "factor=value,factor=value", unique and
// stable: the store and the plan use it as an identity. A comma, an equals sign
// or a backslash inside a value is preceded by a backslash.
func (c Cell) Key() string {
	var b strings.Builder
	n := 2 * len(c)
	for i := range c {
		n += len(c[i].Factor) + len(c[i].Value)
	}
	b.Grow(n)
	for i, l := range c {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(escape(l.Factor))
		b.WriteByte('=')
		b.WriteString(escape(l.Value))
	}
	return b.String()
}

// String is Key, for messages.
func (c Cell) String() string { return c.Key() }

// Labels is a canonical, comparable text "name=value,name=value" in the order
// of names, with the escapes of Cell.Key. It is a string, not a map, so that a
// collector makes it once a thread and a series is found without allocating.
type Labels string

// MakeLabels builds Labels from name, value pairs; an odd last name is ignored.
func MakeLabels(pairs ...string) Labels {
	n := len(pairs) / 2
	idx := make([]int, n)
	for i := range idx {
		idx[i] = 2 * i
	}
	slices.SortFunc(idx, func(a, b int) int { return strings.Compare(pairs[a], pairs[b]) })
	var b strings.Builder
	for i, j := range idx {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(escape(pairs[j]))
		b.WriteByte('=')
		b.WriteString(escape(pairs[j+1]))
	}
	return Labels(b.String())
}

// Get returns the value of one label, "" if it is missing.
func (l Labels) Get(name string) string {
	for _, p := range l.Pairs() {
		if p[0] == name {
			return p[1]
		}
	}
	return ""
}

// Pairs returns the labels as name, value pairs in order.
func (l Labels) Pairs() [][2]string {
	var out [][2]string
	if l == "" {
		return nil
	}
	var cur [2]string
	var b strings.Builder
	field := 0
	flush := func() { cur[field] = b.String(); b.Reset() }
	for i := 0; i < len(l); i++ {
		switch ch := l[i]; {
		case ch == '\\' && i+1 < len(l):
			i++
			b.WriteByte(l[i])
		case ch == '=' && field == 0:
			flush()
			field = 1
		case ch == ',':
			flush()
			out = append(out, cur)
			cur, field = [2]string{}, 0
		default:
			b.WriteByte(ch)
		}
	}
	flush()
	return append(out, cur)
}

func escape(s string) string {
	if !special(s) {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`).Replace(s)
}

// special reports whether s has a character that must be escaped. Keys are made for each trial
// many times, and strings.ContainsAny takes five times as long.
func special(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case '\\', ',', '=':
			return true
		}
	}
	return false
}
