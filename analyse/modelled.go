package analyse

import (
	"slices"
	"strings"

	"tare/record"
)

// modelled sets Result.Modelled where a trial says that a model made it, as all of its
// folder then are. Published figures are of machines: modelled ones are not set
// beside them.
func (a *analysis) modelled(r *Result) {
	r.Modelled = slices.ContainsFunc(a.trials, modelledTrial)
	if r.Modelled && r.Published != nil {
		r.Published = nil
		r.Warnings = append(r.Warnings, Warning{Code: "modelled", Text: "published figures are left out: these are modelled, and only measured ones are set beside them"})
	}
}

func modelledTrial(t *record.Trial) bool {
	for name, v := range t.Facts {
		if v == record.AcceleratorModel && strings.HasSuffix(name, AcceleratorFact) {
			return true
		}
	}
	return false
}
