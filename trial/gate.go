package trial

import (
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// makeGate makes the gate of foreground roles that run in started sandboxes, if
// there are several, and returns what tells that it opened.
func (t *trial) makeGate() <-chan struct{} {
	n := 0
	for _, ep := range t.endpoints {
		if !ep.role.Background && ep.role.Mode == workload.Exec {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	t.gate = sandbox.NewGate(n)
	return t.gate.Opened()
}

// keepSkew says how far apart those roles began, and how well it is known of each.
func (t *trial) keepSkew() {
	var first, last time.Time
	n := 0
	for _, ep := range t.endpoints {
		at := ep.begun
		if at.IsZero() {
			continue
		}
		n++
		t.sample(record.StartUncertainty, record.MakeLabels(record.LabelEndpoint, ep.role.Name), ep.within)
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if last.IsZero() || at.After(last) {
			last = at
		}
	}
	if n > 1 { // one alone is apart from nothing
		t.sample(record.StartSkew, "", last.Sub(first))
	}
}
