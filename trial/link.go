package trial

import (
	"tare/sandbox"
	"tare/study"
)

// linkOf is the link that a cell asks for.
func linkOf(res *study.Resolved) sandbox.Link {
	return sandbox.Link{Delay: res.LinkDelay, Rate: res.LinkRate}
}

// shape makes the network between the started sandboxes as the cell has it.
func (t *trial) shape() error {
	want := linkOf(&t.res)
	if want == (sandbox.Link{}) {
		return nil
	}
	var networks []sandbox.Network
	for _, ep := range t.endpoints {
		if ep.inst != nil && ep.want.Networked {
			networks = append(networks, ep.spec.Network)
		}
	}
	return t.maker.Place.Shape(want, networks)
}
