package analyse

import (
	"slices"

	"tare/ordered"
	"tare/record"
)

// Common is a nested level that does not tell treatments apart: every treatment
// that has its factor has it, and it has every treatment of these levels of the compared
// factor. Names leave it out, and reports say it once.
type Common struct {
	Level record.Level `json:"level"`
	Of    []string     `json:"of"` // levels of the compared factor
}

// common finds them, in the order of the treatments.
func common(ts []Treatment) []Common {
	var out []Common
	for _, t := range ts {
		for _, l := range t.Cell[min(1, len(t.Cell)):] {
			if slices.ContainsFunc(out, func(c Common) bool { return c.Level.Factor == l.Factor }) {
				continue
			}
			if of := having(ts, l); of != nil {
				out = append(out, Common{l, of})
			}
		}
	}
	return out
}

// having returns the levels of the compared factor whose treatments have the level;
// nil when one of them has not, or any has another.
func having(ts []Treatment, l record.Level) []string {
	var with, without []string
	for _, t := range ts {
		if len(t.Cell) == 0 {
			continue
		}
		value, ok := t.Cell.Get(l.Factor)
		list := &without
		if ok {
			list = &with
		}
		if ok && value != l.Value {
			return nil
		}
		*list = ordered.Add(*list, t.Cell[0].Value)
	}
	if slices.ContainsFunc(with, func(v string) bool { return slices.Contains(without, v) }) {
		return nil
	}
	return with
}

// Distinct returns a treatment's levels without the common ones.
func (r *Result) Distinct(c record.Cell) record.Cell {
	if r == nil || len(c) == 0 || len(r.Common) == 0 {
		return c
	}
	out := c[:1:1]
	for _, l := range c[1:] {
		if !slices.ContainsFunc(r.Common, func(k Common) bool { return k.Level == l }) {
			out = append(out, l)
		}
	}
	return out
}
