package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tare/record"
	"tare/sandbox"
)

// note adds facts of an endpoint.
func (t *trial) note(ep *endpoint, facts map[string]string) {
	for k, v := range facts {
		t.rec.Facts[ep.role.Name+"."+k] = v
	}
}

// boot tells in which steps a sandbox came up, where it knows, and in what it is less
// than was asked for. A study may have a trial fail whose limits are not in force.
func (t *trial) boot(ep *endpoint) error {
	var void error
	if d, ok := ep.inst.(sandbox.Doubter); ok {
		doubts := d.Doubts()
		t.rec.Warnings = append(t.rec.Warnings, doubts...)
		for _, w := range doubts {
			if w.Code == record.LimitNotInForce && t.maker.Study.VoidLimits {
				void = &failure{kind: "limit", role: ep.role.Name, err: errors.New(w.Text + "; the study has `limits: void`")}
			}
		}
	}
	b, ok := ep.inst.(sandbox.Booter)
	if !ok {
		return void
	}
	for _, p := range b.Boot() {
		t.bootStep(ep, p)
	}
	return void
}

func (t *trial) bootStep(ep *endpoint, p sandbox.BootPhase) {
	t.sample(record.SandboxBoot, record.MakeLabels(
		record.LabelEndpoint, ep.role.Name, record.LabelSandbox, ep.kind.Name(), record.LabelPhase, p.Name), p.Took)
}

// whereAccelerated adds how a machine's processors were had to where an endpoint ran.
func (t *trial) whereAccelerated(ep *endpoint, accelerator string) {
	if accelerator != "" {
		t.rec.Facts[ep.role.Name+record.FactWhere] += " (" + strings.ToUpper(accelerator) + ")"
	}
}

// When a clock is looked at.
const (
	clockStart = "start"
	clockStop  = "stop"
)

// clockTime bounds one look at a sandbox's clock.
const clockTime = time.Second

// Clocks may part so far without a word: two crystals are some 50 ppm apart, and
// what either adjusts comes to it. It is less than they can (driftMost of package
// agent): a clock that is slewed as fast as adjtimex(2) allows deserves the word.
const (
	driftMargin = time.Millisecond
	driftRate   = 200e-6
)

// clock records how the clock of a sandbox with a kernel of its own relates to
// this host's. The second look says whether the sandbox's time was the host's.
func (t *trial) clock(ctx context.Context, ep *endpoint, when string) {
	g := ep.inst.Scope().Guest
	if g == nil || when == clockStop && t.rec.Status == record.Failed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clockTime)
	defer cancel()
	c, err := g.Clock(ctx)
	if err != nil {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{Code: "clock", Text: fmt.Sprintf("%s at its %s: %v", ep.role.Name, when, err)})
		return
	}
	labels := record.MakeLabels(record.LabelEndpoint, ep.role.Name, record.LabelPhase, when)
	t.sample(record.ClockOffset, labels, c.Offset)
	t.sample(record.ClockUncertainty, labels, c.Uncertainty)
	now := time.Now()
	if when == clockStop && !ep.clockAt.IsZero() {
		if w := drift(ep.role.Name, ep.clock, c, now.Sub(ep.clockAt)); w != nil {
			t.rec.Warnings = append(t.rec.Warnings, *w)
		}
	}
	ep.clock, ep.clockAt = c, now
}

// drift is the warning that two looks at a clock deserve, or nil.
func drift(role string, first, last sandbox.Clock, apart time.Duration) *record.Warning {
	by := last.Offset - first.Offset
	allowed := first.Uncertainty + last.Uncertainty + driftMargin + time.Duration(driftRate*float64(apart))
	if by.Abs() <= allowed {
		return nil
	}
	way := "fell behind" // more is to be added to it
	if by < 0 {
		way = "ran ahead of"
	}
	return &record.Warning{Code: record.ClockDrift, Text: fmt.Sprintf("the clock in the sandbox of %s %s the host's by %s in %s; what was timed in there is wrong by as much",
		role, way, by.Abs().Round(10*time.Microsecond), apart.Round(100*time.Millisecond))}
}
