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
		all, err := m.partsOf(cell)
		if err != nil {
			return false, err
		}
		for _, p := range all.each() {
			for i := range p.roles {
				if networked(p.ends(), p.roles[i]) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// Wanted collects what the roles of all cells ask for, each thing once, sorted.
func (m *Maker) Wanted(of func(workload.Role) []string) ([]string, error) {
	found := map[string]bool{}
	for _, cell := range slices.Concat(m.cells()...) {
		all, err := m.partsOf(cell)
		if err != nil {
			return nil, err
		}
		for _, role := range all.all() {
			for _, n := range of(role) {
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

// partsOf resolves a cell: the load with the roles of all its copies, and the victim.
func (m *Maker) partsOf(cell record.Cell) (parts, error) {
	res, err := m.Study.Resolve(m.Catalogue, cell)
	out := parts{part: part{res: res, load: m.Workloads[res.Workload.Kind]}}
	if err != nil {
		return out, err
	}
	if out.load == nil {
		return out, fmt.Errorf("this tare has no workload %q; see `tare list`", res.Workload.Kind)
	}
	out.res.Params = paramsOf(out.load, cell, res.Params)
	if out.roles, err = workload.Copies(out.load, out.res.Params, res.Copies); err != nil {
		return out, err
	}
	return out, m.withVictim(&out)
}

// Expected is how long a trial of the cell should take before any has run: the
// workload's own word, and what starting and stopping sandboxes usually takes.
func (m *Maker) Expected(cell record.Cell) time.Duration {
	const overhead = 700 * time.Millisecond
	all, err := m.partsOf(cell)
	if err != nil {
		return overhead
	}
	took := overhead + workload.Total(m.launching(&all))*time.Duration(max(1, all.res.Workload.Turns))
	for _, p := range all.each() {
		if k := m.Kinds[p.res.Sandbox]; k != nil {
			traits, copies := k.Traits(p.res.Options), time.Duration(max(1, p.res.Copies))
			if !launches(p.roles) {
				took += traits.Takes * copies
			}
			others := time.Duration(max(1, p.ends())-1) * copies
			switch other := m.Kinds[traits.Native]; {
			case p.res.Isolate == study.Both:
				took += traits.Takes * others
			case other != nil: // which takes time where it is a pod; pods go at about the same time
				took += other.Traits(nil).Takes * others / 2
			}
		}
	}
	return took
}

// launches reports whether all roles start sandboxes themselves.
func launches(roles []workload.Role) bool {
	return !slices.ContainsFunc(roles, func(r workload.Role) bool { return r.Mode != workload.Launch })
}

// launching are the roles of a cell. Those that start sandboxes themselves are expected to take as long as that many starts, if that is more
// than the workload says.
func (m *Maker) launching(all *parts) []workload.Role {
	roles := slices.Clone(all.all())
	k := m.Kinds[all.res.Sandbox]
	for i := range roles {
		r, rounds := &roles[i], 0
		switch r.Mode {
		case workload.Launch:
			rounds = (r.Launches() + max(1, r.Burst) - 1) / max(1, r.Burst)
		case workload.Idle:
			rounds = r.Count
		}
		if k != nil {
			r.Expect = max(r.Expect, time.Duration(rounds)*k.Traits(all.res.Options).Takes)
		}
	}
	return roles
}
