package words

import (
	"slices"

	"tare/analyse"
)

// maxApart is the most treatments that are told apart: a table has room for a column for each.
const maxApart = 8

// Side is what a column of the short table, or a sentence beside it, is about: one treatment or more.
type Side struct {
	Name string
	Of   []*analyse.Treatment
}

// Has reports whether a comparison is one of the side with the baseline.
func (k *Side) Has(c *analyse.Comparison) bool {
	return !c.Baseline && slices.ContainsFunc(k.Of, func(t *analyse.Treatment) bool { return t.Key == c.Treatment })
}

// Sides are the levels of the compared factor, in the study's order, without those that have only the baseline. If a further
// treatment has the baseline's level, such as process with another storage class, levels do not tell the treatments apart: then
// each is a column, with the name of all that distinguishes it. baseline is the name of the baseline's own.
func Sides(r *analyse.Result) (baseline string, out []*Side) {
	var bases []*analyse.Treatment
	for i := range r.Treatments {
		if t := &r.Treatments[i]; t.Baseline && len(t.Cell) > 0 {
			bases = append(bases, t)
		}
	}
	like := func(t *analyse.Treatment) bool { // the baseline's level, and no baseline
		return !t.Baseline && slices.ContainsFunc(bases, func(b *analyse.Treatment) bool { return b.Cell[0] == t.Cell[0] })
	}
	apart := slices.ContainsFunc(r.Treatments, func(t analyse.Treatment) bool { return len(t.Cell) > 0 && like(&t) })
	if baseline = r.Baseline; apart && len(bases) == 1 {
		baseline = Treatment(r, bases[0].Cell)
	}
	each := apart && len(r.Treatments) <= maxApart
	at := make(map[string]*Side)
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if len(t.Cell) == 0 {
			continue
		}
		key, name := t.Cell[:1].Key(), r.LevelName(t.Cell[0])
		switch {
		case each:
			key, name = t.Key, Treatment(r, t.Cell)
		case apart && slices.ContainsFunc(bases, func(b *analyse.Treatment) bool { return b.Cell[0] == t.Cell[0] }):
			name = "other " + name
		}
		if at[key] == nil {
			at[key] = &Side{Name: name}
			out = append(out, at[key])
		}
		at[key].Of = append(at[key].Of, t)
	}
	return baseline, slices.DeleteFunc(out, func(k *Side) bool {
		return !slices.ContainsFunc(r.Compared, func(c analyse.Comparison) bool { return k.Has(&c) })
	})
}
