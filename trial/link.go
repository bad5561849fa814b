package trial

import (
	"tare/record"
	"tare/sandbox"
	"tare/study"
)

// linkOf is the link that a cell asks for.
func linkOf(res *study.Resolved) sandbox.Link {
	return sandbox.Link{Delay: res.LinkDelay, Rate: res.LinkRate, Path: res.LinkPath}
}

// shape makes the network between the started sandboxes as the cell has it.
func (t *trial) shape() error {
	want := linkOf(&t.res)
	if want == (sandbox.Link{}) {
		return nil
	}
	networks := make([][]sandbox.Network, max(1, t.res.Copies)) // a link each
	for _, ep := range t.endpoints {
		if ep.inst != nil && ep.want.Networked && !record.IsVictim(ep.role.Name) {
			i := t.copyOf(ep.role.Name) - 1
			networks[i] = append(networks[i], ep.spec.Network)
		}
	}
	for _, of := range networks {
		if err := t.maker.Place.Shape(want, of); err != nil {
			return err //nolint:wrapcheck // the place says what it cannot
		}
	}
	return nil
}
