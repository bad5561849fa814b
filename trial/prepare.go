package trial

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// Needs lists the host programs that the study's workloads run, sorted; what is
// in an image is not looked for on the host. The cells must resolve, which Parse
// has checked.
func (m *Maker) Needs() ([]string, error) {
	return m.Wanted(func(r workload.Role) []string {
		if r.Image != "" {
			return nil
		}
		return r.Needs
	})
}

// NeedsImages lists the images that the study's workloads run from, sorted.
func (m *Maker) NeedsImages() ([]string, error) {
	return m.Wanted(func(r workload.Role) []string {
		if r.Image == "" {
			return nil
		}
		return []string{r.Image}
	})
}

// NeedsNetwork tells whether a workload of the study has two endpoints, or one that is
// asked from outside.
func (m *Maker) NeedsNetwork() (bool, error) {
	for _, cell := range slices.Concat(m.cells()...) {
		res, roles, err := m.rolesOf(cell)
		if err != nil {
			return false, err
		}
		for i := range roles {
			if networked(endsOf(&res, roles), roles[i]) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Wanted collects what the roles of all cells ask for, each thing once, sorted.
func (m *Maker) Wanted(of func(workload.Role) []string) ([]string, error) {
	found := map[string]bool{}
	for _, cell := range slices.Concat(m.cells()...) {
		_, roles, err := m.rolesOf(cell)
		if err != nil {
			return nil, err
		}
		for i := range roles {
			for _, n := range of(roles[i]) {
				found[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// cells are those of every stratum, and of the sentinel last.
func (m *Maker) cells() [][]record.Cell {
	var out [][]record.Cell
	for i := range m.Study.Strata {
		out = append(out, m.Study.Strata[i].Cells)
	}
	if s := m.Study.Sentinel; s != nil {
		out = append(out, []record.Cell{s.Cell})
	}
	return out
}

func (m *Maker) kind(name string) (sandbox.Kind, error) {
	if k := m.Kinds[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("this site has no sandbox %q; `tare list` shows those of this host", name)
}

// rolesOf resolves a cell, and returns the roles of all its copies.
func (m *Maker) rolesOf(cell record.Cell) (study.Resolved, []workload.Role, error) {
	res, err := m.Study.Resolve(m.Catalogue, cell)
	if err != nil {
		return res, nil, err
	}
	w := m.Workloads[res.Workload.Kind]
	if w == nil {
		return res, nil, fmt.Errorf("this tare has no workload %q; see `tare list`", res.Workload.Kind)
	}
	res.Params = paramsOf(w, cell, res.Params)
	roles, err := workload.Copies(w, res.Params, res.Copies)
	return res, roles, err
}

// Expected is how long a trial of the cell should take before any has run: the
// workload's own word, and what starting and stopping sandboxes usually takes.
func (m *Maker) Expected(cell record.Cell) time.Duration {
	const overhead = 700 * time.Millisecond
	res, roles, err := m.rolesOf(cell)
	if err != nil {
		return overhead
	}
	took := overhead + workload.Total(roles)*time.Duration(max(1, res.Workload.Turns))
	if k := m.Kinds[res.Sandbox]; k != nil {
		takes := k.Traits(res.Options).Takes
		took += takes * time.Duration(max(1, res.Copies))
		if ends := endsOf(&res, roles); res.Isolate == study.Both && ends > 1 {
			took += takes * time.Duration(max(1, res.Copies))
		}
	}
	return took
}
