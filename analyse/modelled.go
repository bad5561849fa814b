package analyse

import (
	"strings"

	"tare/record"
)

// On is the flag that selects the site of the trials in a command line; "" for a host.
func (r *Result) On() string {
	switch {
	case r.Flags != "":
		return r.Flags
	case r.Modelled:
		return "--on model"
	case r.OnCluster:
		return "--on k8s"
	}
	return ""
}

// modelled takes published figures out of a modelled result. They are of machines: modelled ones are not
// set beside them.
func (a *analysis) modelled(r *Result) {
	if r.Modelled && r.Published != nil {
		r.Published = nil
		r.Warnings = append(r.Warnings, Warning{Code: "modelled", Text: "published figures are left out: these are modelled, and only measured ones are set beside them"})
	}
}

// clusterTrial reports whether a node of a cluster ran a sandbox of a trial.
func clusterTrial(t *record.Trial) bool {
	for name := range t.Facts {
		if strings.HasSuffix(name, "."+record.FactNode) {
			return true
		}
	}
	return false
}
