package study

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// zip is a group of factors whose levels move together.
type zip struct {
	at      *yaml.Node
	members []int
}

// pick is an entry of include or exclude: levels of some factors.
type pick struct {
	at      *yaml.Node
	sel     []condition
	matched bool
}

func (p *pick) fixes(factor int) ([]string, bool) {
	for _, s := range p.sel {
		if s.factor == factor {
			return s.levels, true
		}
	}
	return nil, false
}

// factorsOf reads the section factors. The sandbox comes first, whatever its
// place, since it says which kinds' parameters there are.
func (d *draft) factorsOf(root *yaml.Node, p pair) {
	first := d.add(FactorWorkload, root, isWorkload)
	for _, w := range d.loads {
		d.factors[first].spell(nil, w.label)
	}
	pairs := d.entries(d.mapping(p.val, "factors"), "factors")
	known := pairs[:0:0]
	for _, q := range pairs {
		name := q.key.Value
		if name == FactorWorkload {
			d.bad(q.key, "list the workloads in the section workloads", "the levels of %q are not written here", name)
			continue
		}
		c, ok := d.classOf(name)
		if !ok {
			d.bad(q.key, param.Suggest(name, d.cat.factorNames()), "there is no factor %q", name)
			continue
		}
		d.ofVictim(q)
		d.add(name, q.key, c)
		known = append(known, q)
	}
	if i, ok := d.index[FactorSandbox]; ok {
		d.sandbox = i
	} else {
		// Not compared, and so not asked for: everything runs natively.
		d.sandbox = d.add(FactorSandbox, root, isSandbox)
		if compare := find(root, "compare"); compare == nil || compare.Value == FactorSandbox {
			at := p.key
			if at == nil {
				at = root
			}
			d.bad(at, "write factors: {sandbox: [process, runc]}", "there are no sandboxes to compare")
		}
		f := d.factors[d.sandbox]
		f.base = []string{f.spell(nil, d.cat.Native)}
	}
	for _, isFirst := range []bool{true, false} {
		for _, q := range known {
			if (q.key.Value == FactorSandbox) == isFirst {
				d.factorLevels(d.factors[d.index[q.key.Value]], q)
			}
		}
	}
}

func (d *draft) factorLevels(f *factor, q pair) {
	loads := d.loads
	switch f.class {
	case ofWorkload:
		loads = nil
		having := 0
		for _, w := range d.loads {
			if w.has(f.name) {
				having++
				if _, says := w.params[f.name]; !says {
					loads = append(loads, w)
				}
			}
		}
		switch {
		case len(loads) > 0 || len(d.loads) == 0:
		case d.relaxed && !d.given[f.name]:
			return
		case having == 0:
			d.bad(q.key, "remove it, or add a workload of kind "+strings.Join(d.kindsWith(f.name), ", "), "no workload of this study has the parameter %q", f.name)
			return
		default:
			d.bad(q.key, "remove it here or there", "every workload with the parameter %q sets it itself", f.name)
			return
		}
	case ofSandbox:
		if owners := d.owners(f.name, d.sandboxLevels()); len(owners) == 0 {
			d.study.Dropped = append(d.study.Dropped, f.name)
			if len(d.refused) > 0 { // one of the sandboxes that failed to parse may have it
				return
			}
			if !d.relaxed || d.given[f.name] {
				instead := "remove it"
				if others := d.owners(f.name, d.kinds()); len(others) > 0 {
					instead += ", or add one of " + strings.Join(others, ", ")
				}
				d.bad(q.key, instead, "no sandbox of this study has the parameter %q", f.name)
			}
			return
		}
	}
	f.base = d.levelsOf(f, q.val, d.paramsOf(f, loads))
}

func (d *draft) kindsWith(name string) []string {
	var out []string
	for _, k := range sortedKeys(d.cat.Workloads) {
		if _, ok := param.Find(d.cat.Workloads[k].Params, name); ok {
			out = append(out, k)
		}
	}
	return out
}

// ownFactors makes factors of the parameters to which a workload gives a list,
// in the order that the kind declares them: the order of a cell's levels must
// not follow the order of keys in a mapping.
func (d *draft) ownFactors() {
	for _, w := range d.loads {
		for _, p := range w.info.Params {
			n, ok := w.params[p.Name]
			if !ok || n.Kind != yaml.SequenceNode {
				continue
			}
			i := d.add(p.Name, n, ofWorkload)
			w.own[i] = d.levelsOf(d.factors[i], n, []param.Param{p})
		}
	}
}

// picks reads include or exclude. Include may bring levels, and factors, that
// are nowhere else.
func (d *draft) picks(n *yaml.Node, section string, isNew bool) []pick {
	if empty(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.bad(n, "write a list of mappings: [{sandbox: runc}]", "%s is not a list", section)
		return nil
	}
	var out []pick
	for i, e := range n.Content {
		if i == maxEntries {
			d.bad(e, "split the study", "%s has more than %d entries", section, maxEntries)
			break
		}
		pk := pick{at: e}
		pairs := d.mapping(e, "an entry of "+section)
		if len(pairs) == 0 && (e.Kind == yaml.MappingNode || empty(e)) {
			d.bad(e, "name factors and levels: {sandbox: runc}", "an entry of %s is empty", section)
		}
		loads := d.named(pairs)
		for _, q := range pairs {
			if c, ok := d.pickOne(q, loads, isNew); ok {
				pk.sel = append(pk.sel, c)
			}
		}
		if len(pairs) > 0 && len(pk.sel) == len(pairs) {
			out = append(out, pk)
		}
	}
	return out
}

// named returns the workloads that an entry is about: those of its key
// workload, or all.
func (d *draft) named(pairs []pair) []*load {
	for _, q := range pairs {
		if q.key.Value != FactorWorkload {
			continue
		}
		var out []*load
		for _, w := range d.loads {
			if q.val.Value == w.label || slices.ContainsFunc(q.val.Content, func(e *yaml.Node) bool { return e.Value == w.label }) {
				out = append(out, w)
			}
		}
		return out
	}
	return d.loads
}

func (d *draft) pickOne(q pair, loads []*load, isNew bool) (condition, bool) {
	name := q.key.Value
	i, ok := d.index[name]
	if !ok {
		c, known := d.classOf(name)
		if !known || !isNew {
			if !known || !d.relaxed {
				d.noFactor(q.key, name, d.inStudy())
			}
			return condition{}, false
		}
		d.ofVictim(q)
		i = d.add(name, q.key, c)
	}
	f := d.factors[i]
	ps := d.paramsOf(f, loads)
	if len(ps) == 0 {
		if !d.relaxed {
			d.bad(q.key, "remove it, or name a workload or sandbox that has it", "nothing that this entry selects has the parameter %q", name)
		}
		return condition{}, false
	}
	if isNew && f.class != isWorkload && !d.given[name] {
		levels := d.levelsOf(f, q.val, ps)
		return condition{i, levels}, len(levels) > 0
	}
	return d.known(i, q, ps)
}

// known reads levels that the factor must have already.
func (d *draft) known(i int, q pair, ps []param.Param) (condition, bool) {
	f, c := d.factors[i], condition{factor: i}
	texts, nodes := d.words(q.val, f.name)
	for k, t := range texts {
		first, ok := f.spelt[canonical(ps, strings.TrimSpace(t))]
		if !ok {
			if !d.relaxed {
				d.bad(nodes[k], param.Suggest(t, f.levels), "%q is not a level of %s in this study", t, f.name)
			}
			continue
		}
		c.levels = append(c.levels, first)
	}
	if len(texts) == 0 {
		d.bad(q.key, "write a level, or a list of levels", "%s has no levels", f.name)
	}
	return c, len(c.levels) > 0
}

func (d *draft) inStudy() []string {
	out := make([]string, len(d.factors))
	for i, f := range d.factors {
		out[i] = f.name
	}
	return out
}

// noFactor reports a name that is not a factor of the study. A name that tare has as a factor is not a misspelling of another one.
func (d *draft) noFactor(n *yaml.Node, name string, has []string) {
	instead := param.Suggest(name, has)
	if slices.Contains(d.cat.factorNames(), name) {
		instead = "give it levels in factors or in a workload, or write one of " + strings.Join(has, ", ")
	}
	d.bad(n, instead, "%q is not a factor of this study", name)
}

func (d *draft) zipsOf(n *yaml.Node) {
	if empty(n) {
		return
	}
	if n.Kind != yaml.SequenceNode || slices.ContainsFunc(n.Content, func(e *yaml.Node) bool { return e.Kind != yaml.SequenceNode }) {
		d.bad(n, "write a list of lists: [[cpu-limit, memory-limit]]", "zip is not a list of lists")
		return
	}
	in := map[int]bool{}
	for i, e := range n.Content {
		if i == maxEntries {
			d.bad(e, "split the study", "zip has more than %d entries", maxEntries)
			return
		}
		z := zip{at: e}
		names, nodes := d.words(e, "zip")
		for k, name := range names {
			j, ok := d.index[name]
			switch {
			case !ok && d.relaxed && slices.Contains(d.cat.factorNames(), name):
			case !ok:
				d.noFactor(nodes[k], name, d.inStudy()[1:])
			case d.factors[j].class == isWorkload:
				d.bad(nodes[k], "give each workload its levels in its own section", "the factor workload cannot move with others")
			case in[j]:
				d.bad(nodes[k], "name it once", "%q is in zip already", name)
			default:
				in[j] = true
				z.members = append(z.members, j)
			}
		}
		if len(names) < 2 {
			d.bad(e, "name at least two factors: [cpu-limit, memory-limit]", "this entry of zip has fewer than two factors")
		}
		if len(z.members) == len(names) {
			d.sameLength(z)
		}
		d.zips = append(d.zips, z)
	}
}

// sameLength compares the lists of levels, for each workload that has several.
func (d *draft) sameLength(z zip) {
	for _, w := range d.loads {
		var said []string
		lengths := map[int]bool{}
		for _, i := range z.members {
			if n := len(d.levelsFor(w, i)); n > 0 {
				lengths[n] = true
				said = append(said, fmt.Sprintf("%s has %d", d.factors[i].name, n))
			}
		}
		if len(lengths) > 1 {
			d.bad(z.at, "give them equally many", "factors that move together need the same number of levels, but %s", strings.Join(said, ", "))
			return
		}
	}
}

// apply reads the conditions under which factors apply, and adds those that
// follow from whose parameter a factor is.
func (d *draft) apply(n *yaml.Node) {
	for _, f := range d.factors {
		if f.class == ofSandbox {
			owners := d.owners(f.name, d.sandboxLevels())
			f.conds = append(f.conds, condition{d.sandbox, owners})
			for _, o := range owners {
				p, _ := param.Find(d.study.sandbox(d.cat, o).Params, f.name)
				f.stores = p.Storage
			}
		}
	}
	for _, p := range d.entries(d.mapping(n, "apply"), "apply") {
		i, ok := d.index[p.key.Value]
		if !ok || d.factors[i].class == isWorkload {
			if !d.relaxed || !slices.Contains(d.cat.factorNames(), p.key.Value) {
				d.noFactor(p.key, p.key.Value, d.inStudy()[1:])
			}
			continue
		}
		pairs := d.mapping(p.val, "apply "+p.key.Value)
		if len(pairs) == 0 {
			d.bad(p.key, "write another factor and its levels: {sandbox: [runc]}", "%q has no condition", p.key.Value)
		}
		for _, q := range pairs {
			j, ok := d.index[q.key.Value]
			if !ok && d.relaxed && slices.Contains(d.cat.factorNames(), q.key.Value) {
				// --set left no level of it, and so nothing to apply under.
				d.factors[i].conds = append(d.factors[i].conds, condition{factor: d.index[FactorWorkload]})
				continue
			}
			if !ok || j == i {
				others := slices.DeleteFunc(d.inStudy(), func(name string) bool { return name == p.key.Value })
				d.bad(q.key, param.Suggest(q.key.Value, others), "%q is not another factor of this study", q.key.Value)
				continue
			}
			// Under --set none of the levels may be left: then the factor applies
			// nowhere, which an empty condition says.
			c, _ := d.known(j, q, d.paramsOf(d.factors[j], d.loads))
			c.factor = j
			d.factors[i].conds = append(d.factors[i].conds, c)
		}
	}
	d.common()
}

// common makes a parameter that all sandboxes of the study have a factor of its own, as those of a workload are. A stratum then
// has one level of it, and each sandbox is compared with the baseline of this level: a pod with a claim of a StorageClass with the
// baseline's pod with such a claim. A study with one sandbox compares the sandbox's parameters instead.
func (d *draft) common() {
	levels := d.sandboxLevels()
	if len(levels) < 2 || len(d.factors[d.sandbox].conds) > 0 { // the sandbox itself exists only under some levels
		return
	}
	for _, f := range d.factors {
		f.conds = slices.DeleteFunc(f.conds, func(c condition) bool {
			return f.class == ofSandbox && c.factor == d.sandbox && !slices.ContainsFunc(levels, func(l string) bool { return !slices.Contains(c.levels, l) })
		})
	}
}

// compared reads compare and baseline.
func (d *draft) compared(keys map[string]pair) {
	s := d.study
	s.Compare, s.Baseline = FactorSandbox, ""
	named := keys["compare"].val
	if t, ok := d.text(named, "compare"); ok {
		s.Compare = t
	} else if all := d.list(find(keys["stop"].val, "factors"), "factors"); len(all) > 0 && all[0].Value != "" {
		s.Compare, named = all[0].Value, all[0]
	}
	i, ok := d.index[s.Compare]
	switch {
	case !ok:
		d.noFactor(named, s.Compare, d.inStudy()[1:])
		return
	case d.factors[i].class == isWorkload:
		d.bad(named, "compare one of the workloads' parameters", "workloads are not compared with each other")
		return
	}
	d.compare = i
	f := d.factors[i]
	at, said := keys["baseline"].val, false
	if s.Baseline, said = d.text(at, "baseline"); !said {
		if len(f.levels) > 0 {
			s.Baseline = f.levels[0]
		}
		if f.class == isSandbox {
			s.Baseline = d.cat.Native
		}
		at = f.at
	}
	first, ok := f.spelt[canonical(d.paramsOf(f, d.loads), s.Baseline)]
	if _, set := d.origin[at]; !ok && f.class == isSandbox && d.given[s.Compare] && !set {
		// --set has left out the file's baseline, as on a cluster without such a RuntimeClass.
		if first, ok = f.spelt[d.cat.Native]; ok {
			d.study.Notes = append(d.study.Notes, fmt.Sprintf("--set leaves out the baseline %s, so the baseline is %s; --set baseline=LEVEL chooses another", s.Baseline, d.cat.Native))
			s.Baseline = d.cat.Native
		}
	}
	if !ok && len(f.levels) > 0 {
		if _, set := d.origin[at]; d.given[s.Compare] && !set {
			at = f.at // the argument that took the baseline away, not the file
		}
		d.bad(at, "write baseline: and one of "+strings.Join(f.levels, ", ")+", or add it to the levels", "the baseline %q is not a level of %s", s.Baseline, s.Compare)
		return
	}
	s.Baseline = first
}
