package run

import (
	"errors"
	"fmt"
	"time"

	"tare/host/network"
	"tare/sandbox"
	"tare/study"
)

// Linker is a Network whose links can be made slower and longer.
type Linker interface {
	Network
	// Rate holds what goes towards a started sandbox to so many bytes a second.
	Rate(n sandbox.Network, bytes int64) error
	// Delay has what goes to and from a started sandbox take that much longer, each way.
	Delay(n sandbox.Network, d time.Duration) error
}

// linkOf is the link that a cell asks for.
func linkOf(res *study.Resolved) sandbox.Link {
	return sandbox.Link{Delay: res.LinkDelay, Rate: res.LinkRate}
}

// link makes the network between the ends as the cell has it: the rate on every end's
// port, which is both ways; the delay on one, which is both ways as well.
func (t *trial) link() error {
	want := linkOf(&t.res)
	if want == (sandbox.Link{}) {
		return nil
	}
	l, ok := t.engine.Network.(Linker)
	if !ok {
		return errors.New("this network has no links that can be slowed; leave link-delay and link-rate out")
	}
	delayed := false
	for _, en := range t.ends {
		if en.inst == nil || en.spec.Network.Path == "" {
			continue
		}
		if want.Rate > 0 {
			if err := l.Rate(en.spec.Network, want.Rate); err != nil {
				return fmt.Errorf("the link of %s: %w", en.role.Name, err)
			}
		}
		if want.Delay > 0 && !delayed {
			delayed = true
			if err := l.Delay(en.spec.Network, want.Delay); err != nil {
				return fmt.Errorf("the link of %s: %w", en.role.Name, err)
			}
		}
	}
	return nil
}

// checkLink says why this host cannot make a cell's link, each asked for once.
func (c *checker) checkLink(l sandbox.Link) error {
	err, ok := c.links[l]
	if !ok {
		err = network.CheckLink(l)
		if c.links == nil {
			c.links = map[sandbox.Link]error{}
		}
		c.links[l] = err
	}
	return err
}
