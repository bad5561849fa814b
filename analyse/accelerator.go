package analyse

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/ordered"
	"tare/record"
	"tare/study"
)

// Accelerator says what ran the processors of a sandbox level's virtual machines.
type Accelerator struct {
	Sandbox string         `json:"sandbox"` // level of the factor sandbox
	Name    string         `json:"name"`    // the level as reports write it: vm (TCG)
	Trials  map[string]int `json:"trials"`  // good trials by accelerator: kvm, tcg, model; more than one is a warning
}

// Emulated reports whether any of the trials was run by a processor emulated in
// software.
func (a *Accelerator) Emulated() bool { return a.Trials[record.AcceleratorTCG] > 0 }

// AcceleratorFact ends the name of a trial's fact that says what ran an endpoint's
// virtual machine: ROLE.accelerator.
const AcceleratorFact = "." + record.FactAccelerator

// FactNames are the ends of the names of all facts that Analyse looks at. Whoever
// loads trials for an analysis alone may leave the others out.
func FactNames() []string {
	out := append(record.TraitFacts(), record.FactWhere, AcceleratorFact, toolFact)
	out = append(out, "."+record.FactProgram, record.FactOutside)
	for _, x := range terms() {
		out = append(out, "."+x.fact)
	}
	return out
}

// accelerators asks the good trials of each level of the factor sandbox, in the
// study's order. Levels without such a fact are not virtual machines.
func (a *analysis) accelerators(r *Result) []Accelerator {
	trials := make(map[string]map[string]int)
	cells := make(map[string][]string)
	var order []string
	for _, t := range a.trials {
		if t.Status != record.OK || len(t.Facts) == 0 || a.isSentinel(t.Cell) {
			continue
		}
		kinds := make(map[string]bool) // the endpoints of one trial may differ
		for name, v := range t.Facts {
			if strings.HasSuffix(name, AcceleratorFact) && v != "" {
				kinds[v] = true
			}
		}
		level, ok := t.Cell.Get(study.FactorSandbox)
		if !ok || len(kinds) == 0 {
			continue
		}
		if trials[level] == nil {
			trials[level] = make(map[string]int)
			order = append(order, level)
		}
		for k := range kinds {
			trials[level][k]++
		}
		cells[level] = ordered.Add(cells[level], t.Cell.Key())
	}
	for _, f := range a.study.Factors {
		if f.Name == study.FactorSandbox {
			slices.SortStableFunc(order, func(x, y string) int { return slices.Index(f.Levels, x) - slices.Index(f.Levels, y) })
		}
	}
	var out []Accelerator
	for _, level := range order {
		kinds := slices.Sorted(maps.Keys(trials[level]))
		called := make([]string, len(kinds))
		for i, k := range kinds {
			called[i] = acceleratorName(k)
		}
		out = append(out, Accelerator{Sandbox: level, Name: fmt.Sprintf("%s (%s)", level, strings.Join(called, " and ")), Trials: trials[level]})
		if len(kinds) > 1 {
			var parts []string
			for i, k := range kinds {
				parts = append(parts, fmt.Sprintf("%d %s", trials[level][k], called[i]))
			}
			r.Warnings = append(r.Warnings, Warning{Code: "accelerators", Cells: cells[level],
				Text: fmt.Sprintf("trials of %s had different accelerators: %s; their figures are mixed, measure them again on one kind of host", level, strings.Join(parts, ", "))})
		}
	}
	return out
}

// acceleratorName writes an accelerator as its own documentation does.
func acceleratorName(kind string) string {
	switch kind {
	case record.AcceleratorTCG, record.AcceleratorKVM:
		return strings.ToUpper(kind)
	}
	return kind
}

// LevelName is a level as every report writes it: of a sandbox that is a virtual
// machine, with what ran its processors, as in vm (TCG). It is the one place for
// that; nil gives the level as it is.
func (r *Result) LevelName(l record.Level) string {
	if r == nil || l.Factor != study.FactorSandbox {
		return l.Value
	}
	for i := range r.Accelerators {
		if r.Accelerators[i].Sandbox == l.Value {
			return r.Accelerators[i].Name
		}
	}
	return l.Value
}

// Accelerated returns the accelerators of a cell's sandbox, joined by "+"; "" when
// it is not a virtual machine, or nobody knows.
func (r *Result) Accelerated(c record.Cell) string {
	level, _ := c.Get(study.FactorSandbox)
	for i := range r.Accelerators {
		if r.Accelerators[i].Sandbox == level {
			return strings.Join(slices.Sorted(maps.Keys(r.Accelerators[i].Trials)), "+")
		}
	}
	return ""
}
