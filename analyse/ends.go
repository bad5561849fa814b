package analyse

import (
	"maps"
	"slices"
	"strings"

	"tare/record"
	"tare/study"
)

// Ends says where the ends of a stratum's workload ran in the treatments that
// isolate: those whose sandbox is not native. In the baseline all ends are
// native, with the same files, limits, network and processors.
type Ends struct {
	Stratum string `json:"stratum"` // Stratum.Key
	Ends    []End  `json:"ends"`
	Text    string `json:"text"` // server in the sandbox, client native
}

// End is one role of a workload.
type End struct {
	Role      string `json:"role"`
	Sandboxed bool   `json:"sandboxed"` // else it ran natively
}

// ends reads from each stratum's trials where its ends ran: a trial has on record
// which sandbox each of its roles was in. Strata without such a trial are left out.
func (a *analysis) ends() []Ends {
	var out []Ends
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		for _, c := range s.Cells {
			level, ok := c.Get(study.FactorSandbox)
			if !ok || a.kinds[level].Family == record.FamilyNative {
				continue
			}
			if e := a.endsOf(c); len(e) > 0 {
				out = append(out, Ends{Stratum: s.Key, Ends: e, Text: endsText(e)})
				break
			}
		}
	}
	return out
}

// endsOf are those of the cell's first good trial that tells.
func (a *analysis) endsOf(cell record.Cell) []End {
	box, _ := cell.Get(study.FactorSandbox)
	for _, t := range a.byCell[cell.Key()] {
		if t.Status != record.OK {
			continue
		}
		if out := endsIn(t, box); len(out) > 0 {
			return out
		}
	}
	return nil
}

// endsIn reads them from a trial: those whose sandboxes were started, in that order,
// and those whose sandboxes were made while it ran, which only facts ROLE.where
// name. Older results have no such facts.
func endsIn(t *record.Trial, box string) []End {
	var out []End
	add := func(role string, sandboxed bool) {
		if role != "" && !slices.ContainsFunc(out, func(e End) bool { return e.Role == role }) {
			out = append(out, End{Role: role, Sandboxed: sandboxed})
		}
	}
	for _, s := range t.Samples {
		if s.Name == "sandbox_start" {
			add(s.Labels.Get(record.LabelEnd), s.Labels.Get(record.LabelSandbox) == box)
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(t.Facts)) {
		if role, ok := strings.CutSuffix(fact, record.FactWhere); ok {
			add(role, t.Facts[fact] == box)
		}
	}
	return out
}

func endsText(ends []End) string {
	var parts []string
	for _, e := range ends {
		where := record.WhereNative
		if e.Sandboxed {
			where = "in the sandbox"
		}
		parts = append(parts, e.Role+" "+where)
	}
	if len(parts) == 1 { // its role is called main: there is nothing to tell apart
		_, where, _ := strings.Cut(parts[0], " ")
		return where
	}
	return strings.Join(parts, ", ")
}
