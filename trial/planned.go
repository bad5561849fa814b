package trial

import (
	"slices"

	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// Planned is a sandbox that a cell asks for.
type Planned struct {
	Cell record.Cell
	Kind string
	Want sandbox.Want
	Many int // of its role at once
	Fill int // percent of its node that idle sandboxes take meanwhile
}

// Sandboxes are those of each cell and role on a node, the sentinel's cell last; roles that start several
// have one here. Cells that the place cannot have are skipped. No sandbox is tried. It needs what
// Expected needs, and the Place.
func (m *Maker) Sandboxes(node string) (out []Planned, skips []record.Skip, err error) {
	c := &checker{maker: m}
	for i, cell := range slices.Concat(m.cells()...) {
		t := m.begin(plan.Next{Cell: cell, Seq: i + 1, Node: node})
		if err := t.resolve(); err != nil {
			return nil, nil, err
		}
		why := m.spreadNot(&t.res)
		for _, p := range t.each() {
			if err := m.Place.Check(Demand{CPUs: p.res.CPUs, Link: linkOf(&p.res), Settings: t.res.Settings}); err != nil && why == "" {
				why = err.Error()
			}
		}
		var here []Planned
		for _, role := range t.all() {
			kind, want := t.wantOf(role)
			here = append(here, Planned{Cell: cell, Kind: kind, Want: want, Many: atOnceOf(&role), Fill: role.Fill})
			if why == "" {
				why = c.roleNot(&role, t.of(role.Name).res.Sandbox)
			}
			if why == "" && m.Kinds[kind] == nil {
				why = named(kind, "there is no sandbox of this name")
			}
		}
		if why == "" {
			why = c.roomNot(&t.parts)
		}
		if why != "" {
			skips = append(skips, record.Skip{Cell: cell, Reason: why})
			continue
		}
		out = append(out, here...)
	}
	return out, skips, nil
}

// atOnceOf is how many sandboxes a role has at the same time.
func atOnceOf(r *workload.Role) int {
	switch r.Mode {
	case workload.Launch:
		return max(1, r.Burst)
	case workload.Idle:
		return max(1, r.Count)
	}
	return 1
}
