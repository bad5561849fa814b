package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Refusal says why results cannot be compared.
type Refusal struct {
	Text string
	Copy bool // they share trials; else they are not of the same things
}

func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{Text: fmt.Sprintf(format, args...)} }

// sameKind refuses a model's figures beside a machine's: their difference is the
// model's error and the machine's cost at once, and nothing tells the two apart.
func sameKind(a, b *folder) error {
	modelled, measured := a.Name, b.Name
	switch {
	case a.r.Modelled == b.r.Modelled:
		return nil
	case b.r.Modelled:
		modelled, measured = b.Name, a.Name
	}
	return refuse("%s is modelled (tare run --on model) and %s is measured: the two are not compared; read their reports side by side, or compare two of one kind", modelled, measured)
}

// match fills the rows, without what changed in them.
func (c *comparing) match(res *Result) error {
	// Of a row that is a treatment on one side alone, the baselines are not the same.
	both := make(map[string]bool)
	treated, asked := false, false
	for _, a := range c.sides[0] {
		for k, x := range a.rows {
			for _, b := range c.sides[1] {
				if y := b.rows[k]; y != nil {
					both[k] = true
					t := !x.Baseline || !y.Baseline
					treated, asked = treated || t, asked || t && c.asked(x)
				}
			}
		}
	}
	if res.Question == Auto && !asked { // only levels are
		res.Question = Level
	}
	first := c.sides[0][0]
	for _, x := range c.all() {
		if err := sameQuestion(res, first, x); err != nil {
			return err
		}
	}
	if err := c.known(); err != nil {
		return err
	}
	if len(both) == 0 {
		return c.nothing()
	}
	for _, x := range c.all() {
		if err := c.sameWorkloads(res, first, x, both); err != nil {
			return err
		}
	}
	if res.Question == Cost && !treated {
		return refuse("no treatment is in both studies, so there is no cost to compare; --question level compares the values themselves")
	}
	seen := make(map[string]bool)
	for _, x := range c.all() {
		for i := range x.r.Compared {
			if k := key(&x.r.Compared[i]); !seen[k] {
				seen[k] = true
				if err := c.row(res, k); err != nil {
					return err
				}
			}
		}
	}
	if len(res.Rows) == 0 {
		return refuse("nothing is left to compare: no cell and response is chosen by --only, --responses and --question together")
	}
	return nil
}

// key is the identity of a cell's response in both results. The order of the
// factors in a study file makes no other cell.
func key(x *analyse.Comparison) string { return cellKey(x.Cell) + "\n" + x.Response.Name }

func cellKey(c record.Cell) string {
	c = slices.Clone(c)
	slices.SortFunc(c, func(a, b record.Level) int { return strings.Compare(a.Factor, b.Factor) })
	return c.Key()
}

// row adds one, if it is asked for.
func (c *comparing) row(res *Result, k string) error {
	var f found
	var x *analyse.Comparison // the first that has it
	var of *folder
	unit := record.Unit("")
	for i, side := range c.sides {
		for _, o := range side {
			y := o.rows[k]
			f[i] = append(f[i], y)
			switch {
			case y == nil:
				continue
			case x == nil:
				if x = y; !c.shown(res, x) {
					return nil
				}
			case unit != "" && y.Response.Unit != "" && unit != y.Response.Unit:
				return refuse("%s of %s is in %s in %s and in %s in %s: they cannot be compared; --responses chooses others",
					x.Response.Name, x.Cell, unit, of.Name, y.Response.Unit, o.Name)
			}
			if unit == "" && y.Response.Unit != "" {
				unit, of = y.Response.Unit, o
			}
		}
	}
	r := Row{Workload: x.Workload, Shared: x.Shared, Cell: x.Cell, Baseline: x.Baseline, Response: x.Response,
		Treatment: x.Cell.Without(factors(x.Shared)...), Question: Cost, A: measured(f[0]), B: measured(f[1])}
	if res.Question == Level || x.Baseline {
		r.Question = Level
	}
	r.Response.Unit = unit
	switch {
	case r.A == nil:
		r.OnlyIn = "B"
	case r.B == nil:
		r.OnlyIn = "A"
	}
	res.Rows, c.found = append(res.Rows, r), append(c.found, f)
	return nil
}

// shown reports whether a cell and response becomes a row: it is chosen, and a
// baseline has no cost.
func (c *comparing) shown(res *Result, x *analyse.Comparison) bool {
	return c.asked(x) && (res.Question != Cost || !x.Baseline)
}

// asked reports whether a cell and response is chosen.
func (c *comparing) asked(x *analyse.Comparison) bool {
	if len(c.opt.Responses) > 0 && !slices.Contains(c.opt.Responses, x.Response.Name) {
		return false
	}
	for f, levels := range c.opt.Only {
		if l, ok := x.Cell.Get(f); !ok || !slices.Contains(levels, l) {
			return false
		}
	}
	return true
}

// measured summarises what a side's results say about a row; nil when none has it.
func measured(side []*analyse.Comparison) *Measured {
	var out *Measured
	var levels, ratios []float64
	for _, x := range side {
		if x == nil {
			continue
		}
		m := &Measured{N: x.Level.N, Level: x.Level.Typical, Cost: x.Estimate, Failed: x.Failed, Skipped: x.Skipped, GaveUp: x.GaveUp}
		if len(side) == 1 {
			return m
		}
		if m.N > 0 {
			levels = append(levels, m.Level)
		}
		if m.Cost.Ratio > 0 {
			ratios = append(ratios, m.Cost.Ratio)
		}
		if out == nil {
			out = m
			out.Cost = stat.Estimate{N: m.Cost.N, Undefined: m.Cost.Undefined}
			continue
		}
		out.N += m.N
		out.Failed += m.Failed
		out.Cost.N += m.Cost.N
		if m.Skipped == "" {
			out.Skipped = ""
		}
	}
	if out == nil {
		return nil
	}
	out.Results = len(levels)
	if g := stat.GeoMean(levels); g > 0 {
		out.Level = g
	}
	if len(ratios) > 0 {
		out.Results, out.Cost.Ratio, out.Cost.Undefined = len(ratios), stat.GeoMean(ratios), ""
	}
	return out
}

func factors(c record.Cell) []string {
	out := make([]string, len(c))
	for i, l := range c {
		out[i] = l.Factor
	}
	return out
}

// sameQuestion makes sure that a cost is the ratio to the same thing.
func sameQuestion(res *Result, a, b *folder) error {
	if res.Question == Level || sameCosts(a, b) {
		return nil
	}
	return refuse("%s compares %s with %s, %s compares %s with %s: the costs are not of the same; --question level compares the values themselves",
		a.Name, a.Study.Compare, a.Study.Baseline, b.Name, b.Study.Compare, b.Study.Baseline)
}

// sameCosts reports whether the costs of two results are ratios to the same thing.
func sameCosts(a, b *folder) bool {
	return a.Study.Compare == b.Study.Compare && a.Study.Baseline == b.Study.Baseline
}

// known refuses names that neither side has: a filter with a slip of the pen would
// let everything pass a gate.
func (c *comparing) known() error {
	levels := make(map[string][]string)
	var responses []string
	for _, x := range c.all() {
		for i := range x.r.Compared {
			responses = append(responses, x.r.Compared[i].Response.Name)
			for _, l := range x.r.Compared[i].Cell {
				levels[l.Factor] = append(levels[l.Factor], l.Value)
			}
		}
	}
	for _, name := range c.opt.Responses {
		if !slices.Contains(responses, name) {
			return refuse("neither study has a response %q; %s", name, instead(name, unique(responses)))
		}
	}
	for _, f := range slices.Sorted(maps.Keys(c.opt.Only)) {
		if levels[f] == nil {
			return refuse("neither study has a factor %q; %s", f, instead(f, slices.Sorted(maps.Keys(levels))))
		}
		for _, l := range c.opt.Only[f] {
			if !slices.Contains(levels[f], l) {
				return refuse("neither study has %s=%s; %s", f, l, instead(l, unique(levels[f])))
			}
		}
	}
	return nil
}

func unique(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

// nothing says why nothing matches, by the first cell of each.
func (c *comparing) nothing() error {
	first := func(x *folder) string {
		if len(x.r.Compared) == 0 {
			return x.Name + " has no cells"
		}
		return fmt.Sprintf("%s has cells like %s (%s)", x.Name, x.r.Compared[0].Cell, x.r.Compared[0].Response.Name)
	}
	return refuse("no cell and response is in both results, so there is nothing to compare: %s, %s", first(c.sides[0][0]), first(c.sides[1][0]))
}

// sameWorkloads makes sure that what has the same label in both is the same
// workload with the same parameters.
func (c *comparing) sameWorkloads(res *Result, a, b *folder, both map[string]bool) error {
	var wrong []string
	for _, wa := range a.Study.Workloads {
		used := slices.ContainsFunc(a.r.Compared, func(x analyse.Comparison) bool {
			return x.Workload == wa.Label && both[key(&x)] && c.shown(res, &x)
		})
		i := slices.IndexFunc(b.Study.Workloads, func(w study.Workload) bool { return w.Label == wa.Label })
		if !used || i < 0 {
			continue
		}
		wb := b.Study.Workloads[i]
		if wa.Kind != wb.Kind {
			wrong = append(wrong, fmt.Sprintf("%s is the workload %s in %s and %s in %s", wa.Label, wa.Kind, a.Name, wb.Kind, b.Name))
			continue
		}
		pa, pb := c.params(wa), c.params(wb)
		names := slices.Concat(slices.Collect(maps.Keys(pa)), slices.Collect(maps.Keys(pb)))
		for _, n := range unique(names) {
			if pa[n] != pb[n] {
				wrong = append(wrong, fmt.Sprintf("%s: %s is %s in %s and %s in %s", wa.Label, n, value(pa, n), a.Name, value(pb, n), b.Name))
			}
		}
	}
	if len(wrong) > 0 {
		return refuse("the same label stands for different workloads, so their cells are not the same; leave them out with --only or run one side again:\n  %s",
			strings.Join(wrong, "\n  "))
	}
	return nil
}

func (c *comparing) params(w study.Workload) param.Values {
	if c.opt.Params == nil {
		return w.Params
	}
	return c.opt.Params(w)
}

func value(p param.Values, name string) string {
	if v, ok := p[name]; ok {
		return v
	}
	return "not set"
}
