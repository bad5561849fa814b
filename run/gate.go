package run

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
	for _, en := range t.ends {
		if !en.role.Background && en.role.Mode == workload.Exec {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	t.gate = sandbox.NewGate(n)
	return t.gate.Opened()
}

// keepSkew says how far apart those roles began.
func (t *trial) keepSkew() {
	var first, last time.Time
	for _, en := range t.ends {
		at := en.begun
		if at.IsZero() {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if last.IsZero() || at.After(last) {
			last = at
		}
	}
	if !first.IsZero() {
		t.sample(record.StartSkew, "", last.Sub(first))
	}
}
