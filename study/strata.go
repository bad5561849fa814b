package study

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/ordered"
	"tare/param"
	"tare/record"
)

// builder collects cells into strata.
type builder struct {
	d       *draft
	strata  []Stratum
	counted int             // combinations, excluded ones among them
	byKey   map[string]int  // strata, made when include needs it
	cells   map[string]bool // likewise
	arena   []record.Level  // cells are cut from large pieces: one allocation in thousands
}

func (b *builder) expander(wi int, w *load, p *pick) *expander {
	d := b.d
	e := &expander{d: d, w: w, wi: wi, vals: make([]string, len(d.factors)), has: make([]bool, len(d.factors)), open: func() {}}
	e.vals[0], e.has[0] = w.label, true
	e.axesOf(p)
	return e
}

// count is false when the study is too large with the combinations of one workload. It
// walks through them and makes no cell, so it takes little time and no memory.
func (b *builder) count(wi int, w *load, p *pick) bool {
	e, at := b.expander(wi, w, p), w.at
	if p != nil {
		at = p.at
	}
	e.emit = func() bool {
		if b.counted++; b.counted > b.d.limit {
			b.d.bad(at, "use fewer levels, zip, or split the study", "the study has more than %d cells (including those that exclude removes): workload %q has %s", b.d.limit, w.label, e.product())
			return false
		}
		return true
	}
	return e.walk(0)
}

// load adds the cells of one workload: its cross product, or what a pick adds
// to it. It is false when the workload is wrong.
func (b *builder) load(wi int, w *load, p *pick) bool {
	d, e := b.d, b.expander(wi, w, p)

	var perCell bool // the workload's own parameters differ within a stratum
	for _, f := range d.factors {
		perCell = perCell || f.treats && (f.class == ofWorkload || f.name == FactorCopies)
	}
	current, check := -1, true
	e.open = func() { current, check = -1, true }
	e.emit = func() bool {
		if !e.has[d.compare] {
			do := "remove the workload, or compare another factor"
			if d.factors[d.compare].class != ofWorkload {
				do = "leave out the sandboxes that have no such level, with --set sandbox=..., or compare another factor"
			}
			d.bad(w.at, do, "workload %q has cells without a level of the compared factor %s", w.label, d.study.Compare)
			return false
		}
		for _, i := range d.tuned {
			if !e.has[i] {
				d.bad(w.at, "remove the workload, or the factor from stop.factors", "workload %q has cells without a level of the tuned factor %s", w.label, d.factors[i].name)
				return false
			}
		}
		if p == nil && b.excluded(e) {
			return true
		}
		cell := b.cell(e)
		if check || perCell {
			check = false
			if !d.checkCell(w, cell) {
				return true // go on: other cells may be wrong in other ways
			}
		}
		if !d.checkOptions(cell) {
			return true
		}
		if current < 0 {
			current = b.stratum(e, wi, cell)
		}
		if p != nil {
			key := cell.Key()
			if b.cells[key] {
				return true
			}
			b.cells[key] = true
			p.matched = true
		}
		s := &b.strata[current]
		if e.vals[d.compare] == d.study.Baseline && s.Baseline < 0 {
			s.Baseline = len(s.Cells)
		}
		s.Cells = append(s.Cells, cell)
		return true
	}
	return e.walk(0)
}

// include adds the cells of one entry.
func (b *builder) include(p *pick) bool {
	d := b.d
	if b.cells == nil {
		b.cells, b.byKey = map[string]bool{}, map[string]int{}
		for i, s := range b.strata {
			b.byKey[s.Key] = i
			for _, c := range s.Cells {
				b.cells[c.Key()] = true
			}
		}
	}
	for _, z := range d.zips {
		var named, missing []string
		for _, m := range z.members {
			if _, ok := p.fixes(m); ok {
				named = append(named, d.factors[m].name)
			} else {
				missing = append(missing, d.factors[m].name)
			}
		}
		if len(named) > 0 && len(missing) > 0 {
			d.bad(p.at, "name "+strings.Join(missing, ", ")+" as well", "this entry of include names %s, which moves together with %s", strings.Join(named, ", "), strings.Join(missing, ", "))
			return false
		}
	}
	before := len(d.errs)
	for wi, w := range d.loads {
		if only, ok := p.fixes(0); ok && !slices.Contains(only, w.label) {
			continue
		}
		if slices.ContainsFunc(p.sel, func(c condition) bool { return !d.suits(w, c.factor) }) {
			continue
		}
		if !b.count(wi, w, p) || !b.load(wi, w, p) {
			return false
		}
	}
	if !p.matched && !d.relaxed && len(d.errs) == before {
		d.bad(p.at, "correct its levels or remove it", "this entry of include adds no cell")
	}
	return true
}

func (b *builder) excluded(e *expander) bool {
	out := false
	for i := range b.d.excludes {
		if p := &b.d.excludes[i]; e.holds(p.sel) {
			p.matched, out = true, true
		}
	}
	return out
}

// cell cuts a cell from the arena. Its capacity is its length, so that an
// append to it cannot touch the next.
func (b *builder) cell(e *expander) record.Cell {
	n := len(e.d.factors)
	if cap(b.arena)-len(b.arena) < n {
		b.arena = make([]record.Level, 0, max(4096, n))
	}
	from := len(b.arena)
	for i, f := range e.d.factors {
		if e.has[i] {
			f.used = true
			b.arena = append(b.arena, record.Level{Factor: f.name, Value: e.vals[i]})
		}
	}
	return record.Cell(b.arena[from:len(b.arena):len(b.arena)])
}

// stratum returns the index of the stratum that a cell belongs to.
func (b *builder) stratum(e *expander, wi int, cell record.Cell) int {
	shared := make(record.Cell, 0, len(cell))
	for i, f := range b.d.factors {
		if e.has[i] && !f.treats {
			shared = append(shared, record.Level{Factor: f.name, Value: e.vals[i]})
		}
	}
	key := shared.Key()
	if i, ok := b.byKey[key]; ok {
		return i
	}
	b.strata = append(b.strata, Stratum{Key: key, Shared: shared, Workload: wi, Baseline: -1})
	if b.byKey != nil {
		b.byKey[key] = len(b.strata) - 1
	}
	return len(b.strata) - 1
}

// checkCell asks the workload about the parameters of a cell, once for each
// combination, and finds the responses. It is false when they are refused.
func (d *draft) checkCell(w *load, cell record.Cell) bool {
	id := w.id(cell)
	if good, done := w.checked[id]; done {
		return good
	}
	good := d.checkParams(w, cell)
	w.checked[id] = good
	return good
}

// id tells cells apart by the workload's own parameters.
func (w *load) id(cell record.Cell) string {
	var id strings.Builder
	for _, l := range cell {
		if w.has(l.Factor) || l.Factor == FactorCopies {
			id.WriteString(l.Value)
			id.WriteByte(0)
		}
	}
	return id.String()
}

// stratumResponses gives each stratum those of its workload's responses that it
// has: a parameter that is a factor can decide what there is to read.
func (d *draft) stratumResponses() {
	known := make(map[*load]map[string][]string)
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		w := d.loads[s.Workload]
		if known[w] == nil {
			known[w] = make(map[string][]string)
		}
		id := w.id(s.Shared)
		if slices.ContainsFunc(s.Cells, Alone) {
			id += BesideNothing
		}
		names, done := known[w][id]
		if !done {
			names = w.responses
			if v, err := w.values(d.study, s.Shared); err == nil && (w.info.Responses != nil || d.study.Victim != nil) {
				names = having(w.responses, d.study.responsesIn(w.info, v, s.Cells...))
			}
			known[w][id] = names
		}
		s.Responses = names
		s.Better = d.better(w, s)
	}
}

// better is the direction of a stratum's first response.
func (d *draft) better(w *load, s *Stratum) record.Better {
	v, err := w.values(d.study, s.Shared)
	if err != nil || len(s.Responses) == 0 {
		return ""
	}
	for _, r := range d.study.responsesIn(w.info, v, s.Cells...) {
		if r.Name == s.Responses[0] {
			return r.Better
		}
	}
	return ""
}

// having returns those of the names that are a response's, in their order.
func having(names []string, all []record.Response) []string {
	var out []string
	for _, name := range names {
		if slices.ContainsFunc(all, func(r record.Response) bool { return r.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// valueAt is where the study has the value that an error is about; the workload's name
// when it is about none, or the value is a default.
func (d *draft) valueAt(w *load, cell record.Cell, err error) *yaml.Node {
	var ve *param.ValueError
	if !errors.As(err, &ve) {
		return w.at
	}
	level, varies := cell.Get(ve.Param)
	n := w.params[ve.Param]
	switch {
	case n != nil && n.Kind == yaml.SequenceNode:
		for _, e := range n.Content {
			if strings.TrimSpace(e.Value) == level {
				return e
			}
		}
		return n // the level is spelt in another way there
	case n != nil:
		return n
	case varies && d.factors[d.index[ve.Param]].places[level] != nil:
		return d.factors[d.index[ve.Param]].places[level]
	}
	return w.at
}

// replaced refuses a parameter together with the one that it replaces: one of the two would have no effect.
func (w *load) replaced(cell record.Cell, v param.Values) error {
	for _, p := range w.info.Params {
		if p.Replaces == "" || v[p.Name] == p.Default {
			continue
		}
		if _, varies := cell.Get(p.Replaces); varies || w.fixed[p.Replaces] != "" {
			return &param.ValueError{Param: p.Name, Err: fmt.Errorf("%s = %s replaces %s, but the study also sets %s = %s; remove %s, or write %s: %s",
				p.Name, v[p.Name], p.Replaces, p.Replaces, v[p.Replaces], p.Replaces, p.Name, p.Default)}
		}
	}
	return nil
}

func (d *draft) checkParams(w *load, cell record.Cell) bool {
	v, err := w.values(d.study, cell)
	if err == nil && !d.cat.Stored {
		err = w.replaced(cell, v)
	}
	if err == nil && w.info.Check != nil {
		err = w.info.Check(v)
	}
	if copies, ok := cell.Get(FactorCopies); ok && err == nil && w.info.Copies != nil {
		err = w.info.Copies(v, param.Values{"": copies}.Int(""))
	}
	if err != nil && !d.inFile(w, cell, err) {
		d.refuse(d.valueAt(w, cell, err), fmt.Sprintf("workload %q%s is not possible: ", w.label, w.with(cell)), err, "change it, or exclude the combination")
	}
	if err != nil {
		return false
	}
	if w.info.Notes != nil {
		for _, n := range w.info.Notes(v) {
			d.study.Notes = ordered.Add(d.study.Notes, d.placed(w, cell, &n).Error())
		}
	}
	if w.info.Responses == nil {
		if len(w.asked) > 0 {
			d.bad(w.asked[0], "remove responses", "workload kind %s has no responses", w.kind)
			return false
		}
		return true
	}
	if w.asked == nil {
		for _, name := range compared(w.info.Responses(v)) {
			w.responses = ordered.Add(w.responses, name)
		}
		return true
	}
	var names []string
	for _, r := range slices.Concat(w.info.responsesIn(v, cell, d.copiesOf(w)), d.study.victimResponses()) {
		names = append(names, r.Name)
	}
	good := true
	for i, name := range w.responses {
		if !slices.Contains(names, name) {
			good = false
			d.bad(w.asked[i], param.Suggest(name, names), "workload %q%s has no response %q", w.label, w.with(cell), name)
		}
	}
	return good
}

// compared returns the responses that have a better direction, all when none
// has.
func compared(all []record.Response) []string {
	var some, every []string
	for _, r := range all {
		every = append(every, r.Name)
		if r.Better != record.Neither {
			some = append(some, r.Name)
		}
	}
	if len(some) == 0 {
		return every
	}
	return some
}

// with names the levels that a cell gives the workload: " with mode=rr".
func (w *load) with(cell record.Cell) string {
	var parts []string
	for _, l := range cell {
		if w.has(l.Factor) {
			parts = append(parts, l.Factor+"="+l.Value)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " with " + strings.Join(parts, ", ")
}
