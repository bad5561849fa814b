package analyse

import (
	"maps"
	"slices"
	"strings"

	"tare/record"
	"tare/study"
)

// Placement says where the endpoints of a stratum's workload ran in the treatments that
// isolate: those whose sandbox is not native. In the baseline all endpoints are
// native, with the same files, limits, network and processors.
type Placement struct {
	Stratum string       `json:"stratum"` // Stratum.Key
	Roles   []PlacedRole `json:"ends"`
	Text    string       `json:"text"` // server in the sandbox, client native
}

// PlacedRole is one role of a workload.
type PlacedRole struct {
	Role      string `json:"role"`
	Sandboxed bool   `json:"sandboxed"` // else it ran natively
}

// placements reads from each stratum's trials where its endpoints ran: a trial has on record
// which sandbox each of its roles was in. Strata without such a trial are left out.
func (a *analysis) placements() []Placement {
	var out []Placement
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		for _, c := range s.Cells {
			level, ok := c.Get(study.FactorSandbox)
			if !ok || a.kinds[level].Family == record.FamilyNative {
				continue
			}
			if e := a.placed(c); len(e) > 0 {
				out = append(out, Placement{Stratum: s.Key, Roles: e, Text: placedText(e)})
				break
			}
		}
	}
	return out
}

// placed are those of the cell's first good trial that tells.
func (a *analysis) placed(cell record.Cell) []PlacedRole {
	box, _ := cell.Get(study.FactorSandbox)
	for _, t := range a.byCell[cell.Key()] {
		if t.Status != record.OK {
			continue
		}
		if out := placedIn(t, box); len(out) > 0 {
			return out
		}
	}
	return nil
}

// placedIn reads them from a trial: those whose sandboxes were started, in that order,
// and those whose sandboxes were made while it ran, which only facts ROLE.where
// name. Older results have no such facts. Copies ran where the first did.
func placedIn(t *record.Trial, box string) []PlacedRole {
	var out []PlacedRole
	add := func(role string, sandboxed bool) {
		if _, k := record.CopyOf(role); k == 1 && role != "" && !record.IsVictim(role) && !slices.ContainsFunc(out, func(e PlacedRole) bool { return e.Role == role }) {
			out = append(out, PlacedRole{Role: role, Sandboxed: sandboxed})
		}
	}
	for _, s := range t.Samples {
		if s.Name == "sandbox_start" {
			add(s.Labels.Get(record.LabelEndpoint), s.Labels.Get(record.LabelSandbox) == box)
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(t.Facts)) {
		if role, ok := strings.CutSuffix(fact, record.FactWhere); ok {
			add(role, t.Facts[fact] == box)
		}
	}
	return out
}

func placedText(roles []PlacedRole) string {
	var parts []string
	for _, e := range roles {
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
