package plot

import (
	"slices"

	"tare/ordered"
	"tare/record"
)

// together leaves factors out of cells' places that tell nothing apart: some cells
// have them, such as the machines, and all of those with the same level.
func (b *builder) together(items []item, by []string) []item {
	var out []item
	for _, f := range b.factors {
		if slices.Contains(by, f) || f == b.src.Result.Compare {
			continue
		}
		levels, lacking := make(map[string]bool), false
		for i := range items {
			l, ok := items[i].place.Get(f)
			if lacking = lacking || !ok; ok {
				levels[l] = true
			}
		}
		if len(levels) != 1 || !lacking {
			continue
		}
		if out == nil {
			out = slices.Clone(items)
		}
		for i := range out {
			out[i].place = out[i].place.Without(f)
		}
	}
	if out == nil {
		return items
	}
	return out
}

// beside puts cells without a factor beside those that have it: where only one
// level of the compared factor has it, such as the machines' number of processors,
// the others take a place among its levels under their own names, and one graph
// shows them all.
func (b *builder) beside(items []item, by []string) []item {
	compare := b.src.Result.Compare
	if slices.Contains(by, compare) {
		return items
	}
	nested, machine := "", ""
	for _, f := range by {
		having, lacking := make(map[string]bool), false
		for _, it := range items {
			if _, ok := it.place.Get(f); !ok {
				lacking = true
			} else if l, ok := it.place.Get(compare); ok {
				having[l] = true
			}
		}
		if len(having) == 1 && lacking {
			nested = f
			for l := range having {
				machine = b.src.Result.LevelName(record.Level{Factor: compare, Value: l})
			}
			break
		}
	}
	if nested == "" {
		return items
	}
	out := slices.Clone(items)
	var names []string
	for i := range out {
		p := &out[i].place
		l, _ := p.Get(compare)
		_, has := p.Get(nested)
		if *p = p.Without(compare); !has {
			name := b.src.Result.LevelName(record.Level{Factor: compare, Value: l})
			*p = append(*p, record.Level{Factor: nested, Value: name})
			names = ordered.Add(names, name)
		}
	}
	slices.SortStableFunc(names, func(x, y string) int { return slices.Index(b.levels[compare], x) - slices.Index(b.levels[compare], y) })
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(b.levels[nested], n) })
	b.levels[nested] = append(names, b.levels[nested]...)
	for _, l := range b.levels[nested] {
		if _, own := b.named[record.Level{Factor: nested, Value: l}]; !own {
			name := machine + " " + l
			if slices.Contains(names, l) {
				name = l
			}
			b.named[record.Level{Factor: nested, Value: l}] = name
		}
	}
	return out
}

// levelName is what a level is called in a graph.
func (b *builder) levelName(l record.Level) string {
	if name, ok := b.named[l]; ok {
		return name
	}
	return b.src.Result.LevelName(l)
}
