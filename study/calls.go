package study

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"tare/record"
)

// A counting trial is one trial more of a cell that the host's kernel serves, in
// which the system calls are counted. Counting makes each of them slower, so its
// figures are compared with nothing. docs/design/0011-structural-cost.md has the
// reasons.
const (
	// FactorCounting is the pseudo-factor that a counting trial's cell has after
	// the levels of the cell it repeats.
	FactorCounting = "counting"
	// CountingCalls is its only level.
	CountingCalls = "calls"
)

// The price of a call is measured by the workload of this kind with this level of
// its parameter, which is the default.
const (
	PriceKind  = "syscall"
	PriceParam = "call"
	PriceLevel = "getpid" // the call that does nothing
)

// CountingCell is the cell of a counting trial of c.
func CountingCell(c record.Cell) record.Cell {
	return append(slices.Clip(c), record.Level{Factor: FactorCounting, Value: CountingCalls})
}

// CountingAll is the cell of no trial: a record.Skip of it says why this host
// counts no calls at all.
func CountingAll() record.Cell {
	return record.Cell{{Factor: FactorCounting, Value: CountingCalls}}
}

// IsCounting reports whether a cell is that of a counting trial, or CountingAll.
func IsCounting(c record.Cell) bool {
	v, ok := c.Get(FactorCounting)
	return ok && v == CountingCalls
}

// calls reads the key. Unless it is said, calls are counted where the study also
// measures what one costs.
func (d *draft) calls(p pair) {
	s := d.study
	if p.key == nil {
		s.Calls = slices.ContainsFunc(d.loads, pricesCalls)
	} else if t, ok := d.text(p.val, "calls"); ok {
		switch t {
		case "on":
			s.Calls = true
		case "off":
		default:
			d.bad(p.val, "write on or off", "calls %q is not possible", t)
		}
	}
	if s.Compare != FactorSandbox {
		if p.key != nil && s.Calls {
			d.bad(p.key, "remove it, or compare: sandbox", "calls are counted to compare sandboxes, and this study compares %s", s.Compare)
		}
		s.Calls = false
	}
}

// unpriced says why a study counts no calls that would if --set had left its workloads
// alone: one of those it left out says what a call costs. "" where that is not so.
func unpriced(s *Study, file string, src []byte, cat Catalogue, sets []string) string {
	rest := slices.DeleteFunc(slices.Clone(sets), func(set string) bool {
		key, _, _ := strings.Cut(set, "=")
		return strings.TrimSpace(key) == FactorWorkload
	})
	if s.Calls || len(rest) == len(sets) {
		return ""
	}
	whole, err := parse(file, src, cat, rest, MaxCells)
	if err != nil || !whole.Calls {
		return ""
	}
	for i := range whole.Workloads {
		if w := &whole.Workloads[i]; w.Kind == PriceKind && !slices.ContainsFunc(s.Workloads, func(x Workload) bool { return x.Label == w.Label }) {
			return "no workload that --set selects measures the cost of a call, so no structural cost can be computed; choose " + w.Label + " as well"
		}
	}
	return ""
}

// pricesCalls reports whether a workload measures the time of getpid.
func pricesCalls(w *load) bool {
	if w.kind != PriceKind {
		return false
	}
	n, says := w.params[PriceParam]
	if !says {
		return true // it is the default
	}
	if len(n.Content) == 0 {
		return n.Value == PriceLevel
	}
	return slices.ContainsFunc(n.Content, func(e *yaml.Node) bool { return e.Value == PriceLevel })
}

// countingCells gives each stratum the cell of its counting trial: the baseline, or,
// if the baseline has its own kernel, another cell whose calls the host sees.
// Workloads that create their own sandboxes have none, because they do not measure
// calls. Neither have those whose first response counts no operations.
// Stratum.Uncounted gives the reason.
func (d *draft) countingCells() {
	if !d.study.Calls {
		return
	}
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		w := d.loads[s.Workload]
		if s.Baseline < 0 || len(s.Cells) < 2 {
			continue // nothing is compared
		}
		c := d.countable(s)
		switch {
		case slices.ContainsFunc(s.Cells, Alone):
			s.Uncounted = "calls are not counted: the victim has nothing beside it"
		case w.info.Launches:
			s.Uncounted = "calls are not counted: it creates its own sandboxes, and what it measures is not a call"
		case copiesIn(s.Cells) != "" && copiesIn(s.Cells) != "1":
			s.Uncounted = "calls are not counted: an operation makes the same calls in several copies as in one"
		case c == nil:
			s.Uncounted = "calls are not counted: none of its sandboxes is known to use the host's kernel, as these do: " + strings.Join(d.hostKernel(), ", ")
		default:
			if s.Uncounted = d.noOperation(w, c); s.Uncounted == "" {
				s.Counting = CountingCell(c)
			}
		}
	}
}

func (d *draft) countable(s *Stratum) record.Cell {
	sees := func(c record.Cell) bool {
		box, _ := c.Get(FactorSandbox)
		return d.traits(box).OwnKernel == record.No
	}
	if c := s.Cells[s.Baseline]; sees(c) {
		return c
	}
	for _, c := range s.Cells {
		if sees(c) {
			return c
		}
	}
	return nil
}

// hostKernel lists the kinds of sandbox whose programs call the host's kernel.
func (d *draft) hostKernel() []string {
	return slices.DeleteFunc(d.kinds(), func(k string) bool { return d.traits(k).OwnKernel != record.No })
}

// noOperation says why the workload's first response in a cell counts no
// operations, among which calls could be divided; "" when it does.
func (d *draft) noOperation(w *load, cell record.Cell) string {
	v, err := w.values(d.study, cell)
	if err != nil || w.info.Responses == nil || len(w.responses) == 0 {
		return "calls are not counted: it has no response"
	}
	all := w.info.Responses(v)
	names := having(w.responses, all)
	if len(names) == 0 {
		return "calls are not counted: it has no response"
	}
	i := slices.IndexFunc(all, func(r record.Response) bool { return r.Name == names[0] })
	if all[i].Operation != "" {
		return ""
	}
	why := "calls are not counted: " + all[i].Name + ", its first response, is "
	switch {
	case slices.ContainsFunc(all, func(r record.Response) bool { return r.Unit == record.PerSecond && r.Better == record.Neither }):
		return why + "no cost of an operation: the rate is given by the study, not measured"
	case all[i].Unit == record.PerSecond:
		return why + "the rate of a part of what a trial does, whose calls cannot be told from the others'; let a workload do that part alone"
	}
	return why + "neither a rate of operations nor the time of one"
}

func callsSchema() *jsonschema.Schema {
	s := words([]string{"on", "off"})
	s.Description = "Whether system calls are counted, in one trial more of each stratum; on where a workload measures the time of getpid."
	return s
}
