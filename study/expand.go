package study

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/record"
)

// levelsFor returns the levels that a factor has for a workload; none when it
// does not apply to it.
func (d *draft) levelsFor(w *load, i int) []string {
	f := d.factors[i]
	if own, ok := w.own[i]; ok {
		return own
	}
	if !d.suits(w, i) {
		return nil
	}
	if _, fixed := w.fixed[f.name]; fixed && f.class == ofWorkload {
		return nil
	}
	return f.base
}

// suits says whether a workload can have levels of a factor at all.
func (d *draft) suits(w *load, i int) bool {
	f := d.factors[i]
	switch {
	case f.class == ofWorkload:
		return w.has(f.name)
	case f.name == FactorIsolate, f.name == FactorLinkDelay, f.name == FactorLinkRate, f.name == FactorLinkPath,
		f.name == record.SettingARPLimit:
		return w.info.Endpoints > 1
	case f.stores && !w.info.Stores:
		return false
	case f.name == FactorCopies, f.name == FactorCopiesOn:
		return !w.info.Launches // it starts sandboxes one after another itself
	case f.name == FactorCPUs && w.info.Endpoints < 2:
		// One end cannot be apart: those levels are all the same to it.
		return pins(f.base)
	}
	return true
}

// pins reports whether any level of the factor cpus names processors.
func pins(levels []string) bool {
	return slices.ContainsFunc(levels, func(l string) bool { return l != AnyCPU && l != ApartCPUs })
}

// order groups factors that move together, tells those that distinguish
// treatments from those that a stratum shares, and sorts the groups so that
// each comes after those it depends on: the shared ones first.
func (d *draft) order(apply *yaml.Node) {
	group := make([]int, len(d.factors))
	var groups [][]int
	for i := range group {
		group[i] = -1
	}
	for i := range d.factors {
		if group[i] >= 0 {
			continue
		}
		members := []int{i}
		for _, z := range d.zips {
			if slices.Contains(z.members, i) {
				members = z.members
			}
		}
		for _, m := range members {
			group[m] = len(groups)
		}
		groups = append(groups, members)
	}
	treats := make([]bool, len(groups))
	treats[group[d.compare]] = true
	for _, i := range d.tuned {
		treats[group[i]] = true
	}
	depends := func(g int, on func(int) bool) bool {
		for _, m := range groups[g] {
			if slices.ContainsFunc(d.factors[m].conds, func(c condition) bool { return on(group[c.factor]) }) {
				return true
			}
		}
		return false
	}
	for changed := true; changed; {
		changed = false
		for g := range groups {
			if !treats[g] && depends(g, func(o int) bool { return treats[o] }) {
				treats[g], changed = true, true
			}
		}
	}
	done := make([]bool, len(groups))
	for _, treat := range []bool{false, true} {
		for placed := true; placed; {
			placed = false
			for g := range groups {
				if done[g] || treats[g] != treat || depends(g, func(o int) bool { return !done[o] }) {
					continue
				}
				done[g], placed = true, true
				d.groups = append(d.groups, groups[g])
				for _, m := range groups[g] {
					d.factors[m].treats = treat
				}
				break // from the start again: the study's order where it can be kept
			}
		}
		if !treat {
			d.shared = len(d.groups)
		}
	}
	if len(d.groups) < len(groups) {
		var names []string
		for g := range groups {
			if !done[g] {
				for _, m := range groups[g] {
					names = append(names, d.factors[m].name)
				}
			}
		}
		d.bad(apply, "remove one of the conditions", "the conditions of %s depend on each other in a circle", strings.Join(names, ", "))
	}
}

// axis is a group of factors for one workload: rows of levels, one a member.
type axis struct {
	members []int
	rows    [][]string
}

// expander walks the cross product of one workload's axes.
type expander struct {
	d      *draft
	w      *load
	wi     int
	axes   []axis
	shared int // axes before this are the same within a stratum
	vals   []string
	has    []bool
	emit   func() bool // false ends the walk
	open   func()      // a new combination of the shared levels
}

func (e *expander) walk(k int) bool {
	if k == e.shared {
		e.open()
	}
	if k == len(e.axes) {
		return e.emit()
	}
	a := e.axes[k]
	applies, all := make([]bool, len(a.members)), true
	some := false
	for j, m := range a.members {
		applies[j] = e.holds(e.d.factors[m].conds)
		all = all && applies[j]
		some = some || applies[j]
	}
	if !some {
		return e.walk(k + 1)
	}
	var seen map[string]bool
	ok := true
	for _, row := range a.rows {
		if !all { // the rows that differ only in members that do not apply are one
			key := ""
			for j := range row {
				if applies[j] {
					key += row[j] + "\x00"
				}
			}
			if seen[key] {
				continue
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[key] = true
		}
		for j, m := range a.members {
			if applies[j] {
				e.vals[m], e.has[m] = row[j], true
			}
		}
		if ok = e.walk(k + 1); !ok {
			break
		}
	}
	for _, m := range a.members {
		e.has[m] = false
	}
	return ok
}

func (e *expander) holds(conds []condition) bool {
	return !slices.ContainsFunc(conds, func(c condition) bool { return !e.has[c.factor] || !slices.Contains(c.levels, e.vals[c.factor]) })
}

// axesOf makes the axes of one workload. With a pick, the factors that it names
// have its levels and no others.
func (e *expander) axesOf(p *pick) {
	d := e.d
	for g, group := range d.groups {
		if g == d.shared {
			e.shared = len(e.axes)
		}
		var a axis
		var lists [][]string
		for _, m := range group {
			if m == d.index[FactorWorkload] {
				continue
			}
			if p != nil {
				if levels, ok := p.fixes(m); ok {
					e.axes = append(e.axes, single(m, levels))
					continue
				}
			}
			if levels := d.levelsFor(e.w, m); len(levels) > 0 {
				a.members, lists = append(a.members, m), append(lists, levels)
			}
		}
		if len(a.members) > 0 {
			n := len(lists[0])
			for _, l := range lists {
				n = min(n, len(l)) // equal: sameLength
			}
			for i := range n {
				row := make([]string, len(lists))
				for j := range lists {
					row[j] = lists[j][i]
				}
				a.rows = append(a.rows, row)
			}
			e.axes = append(e.axes, a)
		}
	}
	if d.shared >= len(d.groups) {
		e.shared = len(e.axes)
	}
}

func single(member int, levels []string) axis {
	a := axis{members: []int{member}}
	for _, l := range levels {
		a.rows = append(a.rows, []string{l})
	}
	return a
}

// product names the factors whose product is too large.
func (e *expander) product() string {
	parts := []string{}
	for _, a := range e.axes {
		if len(a.rows) < 2 {
			continue
		}
		names := make([]string, len(a.members))
		for j, m := range a.members {
			names[j] = e.d.factors[m].name
		}
		parts = append(parts, fmt.Sprintf("%d of %s", len(a.rows), strings.Join(names, " with ")))
	}
	return strings.Join(parts, " x ")
}

// expand makes the strata and their cells.
func (d *draft) expand(keys map[string]pair) {
	b := &builder{d: d}
	for wi, w := range d.loads { // before any cell is made
		if !b.count(wi, w, nil) {
			return
		}
	}
	for wi, w := range d.loads {
		if !b.load(wi, w, nil) {
			return
		}
	}
	for i := range d.includes {
		if !b.include(&d.includes[i]) {
			return
		}
	}
	if len(b.strata) == 0 && d.err() == nil {
		at := keys["exclude"].key
		if at == nil {
			at = keys["workloads"].key
		}
		d.bad(at, "exclude less", "no cell is left")
		return
	}
	if len(d.excludes) > 0 && !d.relaxed && !d.cat.Stored && !compares(b.strata) {
		d.bad(keys["exclude"].key, "exclude less, or compare another level with the baseline", "exclude leaves nothing beside %s", d.study.Baseline)
		return
	}
	for _, p := range d.excludes {
		if !p.matched && !d.relaxed {
			d.bad(p.at, "correct its levels or remove it", "this entry of exclude matches no cell")
		}
	}
	for _, f := range d.factors[1:] {
		switch {
		case f.used || d.relaxed && !d.given[f.name]:
		case f.name == FactorCPUs && !pins(f.base) && len(f.base) == 1:
			// No workload has several ends, and one end runs so anyway.
		case f.name == FactorCPUs && !pins(f.base):
			d.bad(f.at, "write one of them, or processors such as 0-1", "cpus: %s are the same to a workload with one end, and the study has no other", strings.Join(f.base, " and "))
		default:
			d.bad(f.at, "remove it, or change what it applies to", "the factor %q applies to no cell", f.name)
		}
	}
	d.study.Strata = b.strata
}

// values returns a workload's parameters in a cell, filled, with the texts of files.
func (w *load) values(s *Study, cell record.Cell) (param.Values, error) {
	v := make(param.Values, len(w.info.Params))
	maps.Copy(v, w.fixed)
	for _, l := range cell {
		if w.has(l.Factor) {
			v[l.Factor] = l.Value
		}
	}
	v, err := param.Fill(w.info.Params, v)
	s.embed(v)
	return v, err
}
