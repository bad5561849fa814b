package analyse

import (
	"maps"

	"tare/record"
	"tare/study"
)

// traits tells what the sandboxes are: as trials record it; for results from before they
// did, as the study has it.
func (a *analysis) traits() map[string]record.Traits {
	out, recorded := maps.Clone(a.study.Traits), map[string]bool{}
	if out == nil {
		out = map[string]record.Traits{}
	}
	for _, t := range a.trials {
		level, ok := t.Cell.Get(study.FactorSandbox)
		if !ok || recorded[level] {
			continue
		}
		if found, ok := record.TraitsOf(t.Facts); ok {
			out[level], recorded[level] = found, true
		}
	}
	return out
}
