package trial

import (
	"slices"

	"tare/plan"
	"tare/record"
	"tare/sandbox"
)

// Planned is a sandbox that a cell asks for.
type Planned struct {
	Cell record.Cell
	Kind string
	Want sandbox.Want
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
			if err := m.Place.Check(Demand{CPUs: p.res.CPUs, Link: linkOf(&p.res)}); err != nil && why == "" {
				why = err.Error()
			}
		}
		var here []Planned
		for _, role := range t.all() {
			kind, want := t.wantOf(role)
			here = append(here, Planned{Cell: cell, Kind: kind, Want: want})
			if why == "" {
				why = c.roleNot(&role, t.of(role.Name).res.Sandbox)
			}
			if why == "" && m.Kinds[kind] == nil {
				why = named(kind, "there is no sandbox of this name")
			}
		}
		if why != "" {
			skips = append(skips, record.Skip{Cell: cell, Reason: why})
			continue
		}
		out = append(out, here...)
	}
	return out, skips, nil
}
