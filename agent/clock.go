package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"tare/sandbox"
)

// timeBody is the sandbox's clock: CLOCK_MONOTONIC in nanoseconds. Nobody sets it, unlike
// the wall clock, which a guest gets in its set-up.
type timeBody struct {
	Now int64 `json:"ns"`
}

func tell(json.RawMessage) (any, error) { return timeBody{Now: monotonic()}, nil }

// Bounds of one estimate. Only the shortest round trip counts, so a few are enough.
const (
	roundTrips    = 16
	fewRoundTrips = 3
	roundTripTime = 100 * time.Millisecond
)

// driftMost is the most that two clocks drift apart in a second: oscillators of computers
// keep within 100 ppm, and adjtimex(2) adds at most 500. It bounds the error of an old
// estimate; run warns at less (driftRate).
const driftMost = 600e-6

// clock keeps the best estimate of how a sandbox's clock relates to this host's.
// Flaviu Cristian, Probabilistic clock synchronization, Distributed Computing 3,
// 1989: the agent read its clock between the question and the answer's arrival, so the
// shortest round trip is the most exact.
type clock struct {
	base     time.Time // a moment
	baseNano int64     // the host's CLOCK_MONOTONIC at base

	mu    sync.Mutex
	known bool
	best  sandbox.Clock
	taken time.Time // when best was estimated
}

// newClock relates Go's times to CLOCK_MONOTONIC. It takes the closest of three readings,
// because one may be interrupted.
func newClock() *clock {
	c := &clock{}
	closest := int64(-1)
	for range 3 {
		before := monotonic()
		now := time.Now()
		if after := monotonic(); closest < 0 || after-before < closest {
			closest = after - before
			c.base, c.baseNano = now, before+(after-before)/2
		}
	}
	return c
}

// nano returns the host's CLOCK_MONOTONIC at t.
func (c *clock) nano(t time.Time) int64 { return c.baseNano + int64(t.Sub(c.base)) }

// round estimates the clock from one round trip: the first time in the answer was after
// the question, the last one before the answer came. The clocks may have drifted meanwhile.
func (c *clock) round(asked, answered time.Time, first, last int64) sandbox.Clock {
	least, most := c.nano(asked)-first, c.nano(answered)-last
	apart := time.Duration(driftMost * float64(last-first))
	return sandbox.Clock{Offset: time.Duration(least + (most-least)/2), Uncertainty: time.Duration((most-least)/2) + apart}
}

// learn keeps an estimate if it is more exact than the last one is by now, or if the two
// contradict each other.
func (c *clock) learn(e sandbox.Clock, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.aged(at)
	if !c.known || e.Uncertainty <= old.Uncertainty || (e.Offset-old.Offset).Abs() > e.Uncertainty+old.Uncertainty {
		c.known, c.best, c.taken = true, e, at
	}
}

// aged returns the kept estimate, its uncertainty increased by the possible drift since.
func (c *clock) aged(at time.Time) sandbox.Clock {
	e := c.best
	e.Uncertainty += time.Duration(driftMost * float64(at.Sub(c.taken).Abs()))
	return e
}

// now returns the kept estimate as it stands now.
func (c *clock) now() sandbox.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aged(time.Now())
}

// sandboxNano converts a time on this host to the sandbox's clock.
func (c *clock) sandboxNano(t time.Time, e sandbox.Clock) int64 { return c.nano(t) - int64(e.Offset) }

// hostTime converts a time by the sandbox's clock to this host's.
func (c *clock) hostTime(at int64, e sandbox.Clock) time.Time {
	return c.base.Add(time.Duration(at + int64(e.Offset) - c.baseNano))
}

// between converts times by the sandbox's clock to this host's. They are known to be between
// two moments, which bounds the error of the kept estimate.
func (c *clock) between(first, last time.Time, nanos []int64) []time.Time {
	e := c.now()
	out := make([]time.Time, len(nanos))
	for i, n := range nanos {
		out[i] = c.hostTime(n, e)
		if out[i].Before(first) {
			out[i] = first
		}
		if out[i].After(last) {
			out[i] = last
		}
	}
	return out
}

// HostTimes converts times by the agent's clock (CLOCK_MONOTONIC, nanoseconds) that came with
// an answer, and were taken since a moment. now is that clock when the agent answered: one
// more round trip for the estimate.
func (c *Client) HostTimes(since time.Time, a Answer, now int64, nanos []int64) []time.Time {
	c.clock.learn(c.clock.round(a.Asked, a.At, now, now), a.At)
	return c.clock.between(since, a.At, nanos)
}

// Clock estimates the sandbox's clock anew, by several round trips, until ctx is done. One
// answer is enough.
func (c *Client) Clock(ctx context.Context) (sandbox.Clock, error) {
	return c.estimate(ctx, roundTrips)
}

func (c *Client) estimate(ctx context.Context, most int) (sandbox.Clock, error) {
	var best sandbox.Clock
	begun := time.Now()
	for i := range most {
		if i >= fewRoundTrips && time.Since(begun) > roundTripTime {
			break
		}
		var b timeBody
		asked := time.Now()
		answered, err := c.call(ctx, opTime, nil, &b)
		if err != nil {
			if i > 0 {
				break
			}
			return best, fmt.Errorf("cannot read the clock of the %s: %w", c.place, err)
		}
		e := c.clock.round(asked, answered, b.Now, b.Now)
		c.clock.learn(e, answered)
		if i == 0 || e.Uncertainty < best.Uncertainty {
			best = e
		}
	}
	return best, nil
}
