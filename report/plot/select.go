package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/analyse"
	"tare/ordered"
	"tare/param"
	"tare/record"
	"tare/study"
)

// UnknownError is a name that the study does not have.
type UnknownError struct {
	What  string // factor, response, level of a factor
	Name  string
	Names []string // those that there are
}

func (e *UnknownError) Error() string {
	near := ""
	if s := param.Suggest(e.Name, e.Names); strings.HasPrefix(s, "did you mean") {
		near = s + " "
	}
	return fmt.Sprintf("the study has no %s %q; %sthere are %s", e.What, e.Name, near, strings.Join(e.Names, ", "))
}

// UsageError is a request that makes no sense for this study.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// item is a comparison with the cell that it is placed by.
type item struct {
	*analyse.Comparison
	place record.Cell
}

// builder holds what all figures share.
type builder struct {
	src      Source
	opt      Options
	readings readings
	base     map[string]record.Cell // by stratum
	levels   map[string][]string    // of each factor, in the study's order
	factors  []string
	varied   map[string]map[string]int // by workload: factor to how many levels it has there
	notes    []string
	named    map[record.Level]string // levels that a graph calls otherwise than the study
	bare     int                     // figures of nothing but the baseline
}

// Build makes the figures, in the study's order. The notes say what was left
// out, and why. Errors are *UnknownError and *UsageError; a result of no figures
// comes with notes alone.
func Build(src Source, opt Options) ([]Figure, []string, error) {
	b := &builder{src: src, opt: opt, readings: readings{level: src.Result.Level, trials: src.Result.Counting(src.Trials)}, base: make(map[string]record.Cell),
		levels: make(map[string][]string), varied: make(map[string]map[string]int), named: make(map[record.Level]string)}
	b.learn()
	if err := b.check(); err != nil {
		return nil, nil, err
	}
	items := b.items()
	if len(items) == 0 {
		return nil, []string{b.nothing()}, nil
	}
	figs := besideTables(b.tables(), b.causes())
	switch {
	case opt.Kind == Grid && len(opt.By) > 0:
		return nil, nil, &UsageError{"the factors of a grid are those of the study's figures of merit; leave out --by"}
	case opt.Kind == Grid:
		if figs = slices.Concat(b.grids(items), b.plateaus()); len(figs) == 0 {
			b.notes = append(b.notes, "no grid: the study asks for no figure of merit over a factor, and has no load in steps")
		}
	case len(opt.By) > 0:
		var err error
		if figs, err = b.figures(items, opt.By); err != nil {
			return nil, nil, err
		}
	default:
		figs = slices.Concat(figs, b.curves(), b.grids(items), b.chosen(items), b.plateaus(), b.starts())
	}
	figs = slices.DeleteFunc(figs, func(f Figure) bool { return len(f.Marks) == 0 })
	switch {
	case len(figs) == 0 && b.bare > 0:
		b.notes = append(b.notes, "nothing to plot: all that is left is the baseline, which has no ratio to itself")
	case len(figs) == 0:
		b.notes = append(b.notes, "nothing to plot")
	case b.bare > 0:
		b.notes = append(b.notes, fmt.Sprintf("not drawn: %d graphs of nothing but the baseline, which has no ratio to itself", b.bare))
	}
	name(figs, func(factor string) bool { return len(b.levels[factor]) > 1 })
	for i := range figs {
		b.describe(&figs[i])
		if src.Result.Modelled {
			figs[i].markModelled()
		}
	}
	return figs, b.notes, nil
}

// learn lists factors and levels: the study's, in its order, and any other that
// a cell has.
func (b *builder) learn() {
	add := func(factor, level string) {
		if _, ok := b.levels[factor]; !ok {
			b.factors = append(b.factors, factor)
			b.levels[factor] = nil
		}
		if level != "" && !slices.Contains(b.levels[factor], level) {
			b.levels[factor] = append(b.levels[factor], level)
		}
	}
	add(study.FactorWorkload, "")
	if b.src.Study != nil {
		for _, f := range b.src.Study.Factors {
			add(f.Name, "")
			if f.Name == b.src.Result.Compare {
				add(f.Name, b.src.Result.Baseline) // first: the others are read against it
			}
			for _, l := range f.Levels {
				add(f.Name, l)
			}
		}
	}
	for i := range b.src.Result.Compared {
		c := &b.src.Result.Compared[i]
		if c.Baseline {
			b.base[c.Stratum] = c.Cell
		}
		for _, l := range c.Cell {
			add(l.Factor, l.Value)
		}
		add(FactorResponse, c.Response.Name)
	}
	seen := make(map[[3]string]bool)
	for i := range b.src.Result.Compared {
		c := &b.src.Result.Compared[i]
		v := b.varied[c.Workload]
		if v == nil {
			v = make(map[string]int)
			b.varied[c.Workload] = v
		}
		for _, f := range b.factors {
			if l, ok := c.Cell.Get(f); ok && !seen[[3]string{c.Workload, f, l}] {
				seen[[3]string{c.Workload, f, l}] = true
				v[f]++
			}
		}
	}
}

// check finds the names that there are not.
func (b *builder) check() error {
	for i, f := range b.opt.By {
		if !slices.Contains(b.factors, f) {
			return &UnknownError{"factor", f, b.factors}
		}
		if slices.Contains(b.opt.By[:i], f) {
			return &UsageError{fmt.Sprintf("%s is named twice in --by", f)}
		}
	}
	if len(b.opt.By) > 3 {
		return &UsageError{"--by takes three factors at most: of the x axis, the colour and the hatching; every other makes a graph for each of its levels"}
	}
	for _, l := range b.opt.Only {
		if !slices.Contains(b.factors, l.Factor) {
			return &UnknownError{"factor", l.Factor, b.factors}
		}
		if !slices.Contains(b.levels[l.Factor], l.Value) {
			return &UnknownError{"level of " + l.Factor, l.Value, b.levels[l.Factor]}
		}
	}
	for _, r := range b.opt.Responses {
		if !slices.Contains(b.levels[FactorResponse], r) {
			return &UnknownError{"response", r, b.levels[FactorResponse]}
		}
	}
	return nil
}

// items are the comparisons that the filters leave.
func (b *builder) items() []item {
	var out []item
	for i := range b.src.Result.Compared {
		c := &b.src.Result.Compared[i]
		it := item{c, append(slices.Clone(c.Cell), record.Level{Factor: FactorResponse, Value: c.Response.Name})}
		if b.wanted(it) {
			out = append(out, it)
		}
	}
	return out
}

// wanted: the levels named of one factor are alternatives, those of several must
// all hold.
func (b *builder) wanted(it item) bool {
	if len(b.opt.Responses) > 0 && !slices.Contains(b.opt.Responses, it.Response.Name) {
		return false
	}
	for _, l := range b.opt.Only {
		v, _ := it.place.Get(l.Factor)
		if v != l.Value && !slices.ContainsFunc(b.opt.Only, func(o record.Level) bool { return o.Factor == l.Factor && o.Value == v }) {
			return false
		}
	}
	return true
}

func (b *builder) nothing() string {
	if len(b.src.Result.Compared) == 0 {
		return "nothing to plot: the study compares no response"
	}
	return "nothing to plot: no cell has all the levels that --only and --responses name"
}

// figures makes a figure of each combination of what by does not name.
func (b *builder) figures(items []item, by []string) ([]Figure, error) {
	items = b.beside(b.together(items, by), by)
	var groups ordered.Groups[string, item]
	lacking := make(map[string]bool)
	for _, it := range items {
		if _, ok := it.place.Get(by[0]); !ok && b.varied[it.Workload][by[0]] == 0 {
			lacking[it.Workload] = true
			continue
		}
		groups.Add(it.place.Without(by...).Key(), it)
	}
	for _, w := range b.levels[study.FactorWorkload] {
		if lacking[w] {
			b.notes = append(b.notes, fmt.Sprintf("%s is not drawn: it has no factor %s", w, by[0]))
		}
	}
	var out []Figure
	for _, g := range groups.All() {
		f := Figure{Kind: b.opt.Kind, Value: b.opt.Value, Fixed: g[0].place.Without(append([]string{study.FactorWorkload, FactorResponse}, by...)...)}
		if mixed := units(g) > 1; mixed && f.Value == Level {
			return nil, &UsageError{"the responses have several units, which one axis cannot show; use --value cost, or name responses with --only response=NAME"}
		} else if mixed {
			f.Value = Cost
		}
		b.fill(&f, g, by)
		if err := f.limits(); err != nil {
			return nil, err
		}
		if len(f.Marks) == 0 {
			b.bare++
			continue
		}
		out = append(out, f)
	}
	return out, nil
}

func units(items []item) int {
	seen := make(map[record.Unit]bool)
	for _, it := range items {
		seen[it.Response.Unit] = true
	}
	return len(seen)
}

// alike is what the responses of all items have in common. The same response of
// two workloads has a help text of each.
func alike(items []item) record.Response {
	first := items[0].Response
	out := first
	for _, it := range items[1:] {
		if it.Response.Name != first.Name {
			out.Name = ""
		}
		if it.Response.Unit != first.Unit {
			out.Unit = ""
		}
		if it.Response.Better != first.Better {
			out.Better = record.Neither
		}
		if it.Response.Help != first.Help {
			out.Help = ""
		}
	}
	return out
}

// fill places the items of a figure on its axes.
func (b *builder) fill(f *Figure, items []item, by []string) {
	f.Value = cmp.Or(f.Value, Level)
	f.Compare, f.Baseline, f.Margin = b.src.Result.Compare, b.src.Result.Baseline, b.src.Result.Margin
	if f.Value == Cost {
		items = slices.DeleteFunc(slices.Clone(items), func(it item) bool { return it.Baseline })
	}
	if len(items) == 0 {
		return
	}
	axes := []*Axis{&f.X, &f.Colour, &f.Hatch}
	for i, factor := range by {
		var levels []string
		for _, it := range items {
			if l, _ := it.place.Get(factor); !slices.Contains(levels, l) {
				levels = append(levels, l)
			}
		}
		*axes[i] = newAxis(factor, levels, b.levels[factor])
		for _, l := range axes[i].Levels {
			axes[i].Names = append(axes[i].Names, b.levelName(record.Level{Factor: factor, Value: l}))
		}
	}
	f.Workload, f.Response = items[0].Workload, alike(items)
	at := make([]map[string]int, len(by))
	for i := range by {
		at[i] = make(map[string]int)
		for j, l := range axes[i].Levels {
			at[i][l] = j
		}
	}
	for _, it := range items {
		m := b.readings.mark(it.Comparison, b.base[it.Stratum], f.Value)
		for i, p := range []*int{&m.X, &m.Colour, &m.Hatch} {
			if i < len(by) {
				l, _ := it.place.Get(by[i])
				*p = at[i][l]
			}
		}
		if it.Workload != f.Workload {
			f.Workload = ""
		}
		f.Marks = append(f.Marks, m)
	}
	slices.SortStableFunc(f.Marks, func(x, y Mark) int { return cmp.Or(x.X-y.X, x.Colour-y.Colour, x.Hatch-y.Hatch) })
	if f.Kind == "" {
		f.Kind = Bar
		if count(f.X.Numbers) >= 3 {
			f.Kind = Line
		}
		if f.Kind == Line && f.Hatch.used() && !slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.Gap == "" && !m.single() }) {
			f.Kind = Dot // no line joins single blocks, so no dashes would tell the levels of the last factor apart
		}
	}
}

// limits numbers the hatchings anew where the study's numbering is beyond what is
// told apart, and refuses what the eye could not tell apart at all.
func (f *Figure) limits() error {
	if f.Kind == Heat || !f.Hatch.used() {
		return nil
	}
	most := map[Graph]int{Bar: mostHatched, Line: mostDashed, Dot: shapes}[f.Kind]
	if len(f.Hatch.Levels) > most {
		return &UsageError{fmt.Sprintf("%s has %d levels, and hatching tells %d apart (--kind %s); put it on the x axis, or leave it out of --by", f.Hatch.Factor, len(f.Hatch.Levels), most, f.Kind)}
	}
	if len(f.Colour.Levels) > leastColours {
		return &UsageError{fmt.Sprintf("%s has %d levels, and together with hatching %d colours are told apart; put it on the x axis, or use --kind heat", f.Colour.Factor, len(f.Colour.Levels), leastColours)}
	}
	for _, a := range []struct {
		axis *Axis
		most int
	}{{&f.Hatch, most}, {&f.Colour, leastColours}} {
		if slices.Max(a.axis.Index) < a.most {
			continue
		}
		for i := range a.axis.Index {
			a.axis.Index[i] = i
		}
	}
	return nil
}
