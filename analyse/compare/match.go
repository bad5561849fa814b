package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/analyse"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Refusal says why two results are not compared.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// sameKind refuses a model's figures beside a machine's: their difference is the
// model's error and the machine's cost at once, and nothing tells the two apart.
func sameKind(a, b Side, modelledA, modelledB bool) error {
	modelled, measured := a.Name, b.Name
	switch {
	case modelledA == modelledB:
		return nil
	case modelledB:
		modelled, measured = b.Name, a.Name
	}
	return refuse("%s is modelled (tare run --on model) and %s is measured: the two are not compared; read their reports side by side, or compare two of one kind", modelled, measured)
}

// match fills the rows, without what changed in them.
func (c *comparing) match(res *Result) error {
	inB := make(map[string]*analyse.Comparison)
	for i := range c.rb.Compared {
		inB[key(&c.rb.Compared[i])] = &c.rb.Compared[i]
	}
	both := make(map[string]bool)
	for i := range c.ra.Compared {
		if k := key(&c.ra.Compared[i]); inB[k] != nil {
			both[k] = true
		}
	}
	// Of a row that is a treatment on one side alone, the baselines are not the same.
	treated, asked := false, false
	for i := range c.ra.Compared {
		if a := &c.ra.Compared[i]; both[key(a)] && (!a.Baseline || !inB[key(a)].Baseline) {
			treated = true
			asked = asked || c.asked(a)
		}
	}
	if res.Question == Auto && !asked { // only levels are
		res.Question = Level
	}
	if err := c.sameQuestion(res); err != nil {
		return err
	}
	if err := c.known(); err != nil {
		return err
	}
	if len(both) == 0 {
		return c.nothing()
	}
	if err := c.sameWorkloads(res, both); err != nil {
		return err
	}
	if res.Question == Cost && !treated {
		return refuse("no treatment is in both studies, so there is no cost to compare; --question level compares the values themselves")
	}
	for i := range c.ra.Compared {
		a := &c.ra.Compared[i]
		b := inB[key(a)]
		if b != nil && c.shown(res, a) && a.Response.Unit != "" && b.Response.Unit != "" && a.Response.Unit != b.Response.Unit {
			return refuse("%s of %s is in %s in %s and in %s in %s: they cannot be compared; --responses chooses others",
				a.Response.Name, a.Cell, a.Response.Unit, c.a.Name, b.Response.Unit, c.b.Name)
		}
		c.row(res, a, b)
	}
	for i := range c.rb.Compared {
		if b := &c.rb.Compared[i]; !both[key(b)] {
			c.row(res, nil, b)
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

// row adds one, if it is asked for. One of a and b may be nil.
func (c *comparing) row(res *Result, a, b *analyse.Comparison) {
	x := a
	if x == nil {
		x = b
	}
	if !c.shown(res, x) {
		return
	}
	r := Row{Workload: x.Workload, Shared: x.Shared, Cell: x.Cell, Baseline: x.Baseline, Response: x.Response,
		Treatment: x.Cell.Without(factors(x.Shared)...), Question: Cost}
	if res.Question == Level || x.Baseline {
		r.Question = Level
	}
	if r.Response.Unit == "" && b != nil {
		r.Response.Unit = b.Response.Unit
	}
	r.A, r.B = measured(a), measured(b)
	switch {
	case a == nil:
		r.OnlyIn = "B"
	case b == nil:
		r.OnlyIn = "A"
	}
	res.Rows = append(res.Rows, r)
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

func measured(x *analyse.Comparison) *Measured {
	if x == nil {
		return nil
	}
	return &Measured{N: x.Level.N, Level: x.Level.Typical, Cost: x.Estimate, Failed: x.Failed, Skipped: x.Skipped, GaveUp: x.GaveUp}
}

func factors(c record.Cell) []string {
	out := make([]string, len(c))
	for i, l := range c {
		out[i] = l.Factor
	}
	return out
}

// sameQuestion makes sure that a cost is the ratio to the same thing.
func (c *comparing) sameQuestion(res *Result) error {
	a, b := c.a.Study, c.b.Study
	if res.Question == Level || a.Compare == b.Compare && a.Baseline == b.Baseline {
		return nil
	}
	return refuse("%s compares %s with %s, %s compares %s with %s: the costs are not of the same; --question level compares the values themselves",
		c.a.Name, a.Compare, a.Baseline, c.b.Name, b.Compare, b.Baseline)
}

// known refuses names that neither side has: a filter with a slip of the pen would
// let everything pass a gate.
func (c *comparing) known() error {
	levels := make(map[string][]string)
	var responses []string
	for _, r := range []*analyse.Result{c.ra, c.rb} {
		for i := range r.Compared {
			responses = append(responses, r.Compared[i].Response.Name)
			for _, l := range r.Compared[i].Cell {
				levels[l.Factor] = append(levels[l.Factor], l.Value)
			}
		}
	}
	for _, name := range c.opt.Responses {
		if !slices.Contains(responses, name) {
			return refuse("neither study has a response %q; %s", name, param.Suggest(name, unique(responses)))
		}
	}
	for _, f := range slices.Sorted(maps.Keys(c.opt.Only)) {
		if levels[f] == nil {
			return refuse("neither study has a factor %q; %s", f, param.Suggest(f, slices.Sorted(maps.Keys(levels))))
		}
		for _, l := range c.opt.Only[f] {
			if !slices.Contains(levels[f], l) {
				return refuse("neither study has %s=%s; %s", f, l, param.Suggest(l, unique(levels[f])))
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
	first := func(r *analyse.Result) string {
		if len(r.Compared) == 0 {
			return "has no cells"
		}
		return fmt.Sprintf("has cells like %s (%s)", r.Compared[0].Cell, r.Compared[0].Response.Name)
	}
	return refuse("no cell and response is in both results, so there is nothing to compare: %s %s, %s %s",
		c.a.Name, first(c.ra), c.b.Name, first(c.rb))
}

// sameWorkloads makes sure that what has the same label in both is the same
// workload with the same parameters.
func (c *comparing) sameWorkloads(res *Result, both map[string]bool) error {
	var wrong []string
	for _, wa := range c.a.Study.Workloads {
		used := slices.ContainsFunc(c.ra.Compared, func(x analyse.Comparison) bool {
			return x.Workload == wa.Label && both[key(&x)] && c.shown(res, &x)
		})
		i := slices.IndexFunc(c.b.Study.Workloads, func(w study.Workload) bool { return w.Label == wa.Label })
		if !used || i < 0 {
			continue
		}
		wb := c.b.Study.Workloads[i]
		if wa.Kind != wb.Kind {
			wrong = append(wrong, fmt.Sprintf("%s is the workload %s in %s and %s in %s", wa.Label, wa.Kind, c.a.Name, wb.Kind, c.b.Name))
			continue
		}
		pa, pb := c.params(wa), c.params(wb)
		names := slices.Concat(slices.Collect(maps.Keys(pa)), slices.Collect(maps.Keys(pb)))
		for _, n := range unique(names) {
			if pa[n] != pb[n] {
				wrong = append(wrong, fmt.Sprintf("%s: %s is %s in %s and %s in %s", wa.Label, n, value(pa, n), c.a.Name, value(pb, n), c.b.Name))
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
