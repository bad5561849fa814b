package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"tare/sandbox"
)

// Guest reads the sandbox's kernel through its agent. It is one for a client: what
// one caller takes, another does not get.
func (c *Client) Guest() sandbox.Guest { return c.guest }

// maxReadings bounds what is kept of a guest that nobody takes from, maxCPUs what a
// guest may say that it has, maxSample how long it may go on about them.
const (
	maxReadings = 64
	maxCPUs     = 1024
	maxSample   = maxCPUs << 9 // bytes: a processor takes up to 230, and there are less than twice as many
)

// guest asks for several readings at once, as many as come in a second at the rate at which
// it is asked: each message costs the guest more than the reading does. It begins with one
// at a time, so that little is missing of a short trial whose end comes before the answer.
type guest struct {
	c *Client

	mu       sync.Mutex
	last     time.Time            // when Ask was called
	gaps     [nGaps]time.Duration // between calls, the last ones
	calls    int                  // how many there were
	asked    bool                 // and not answered
	readings []sandbox.GuestReading
	seen     int   // readings that have come
	failed   error // the last answer that was none, since Take
}

const (
	batchTime = time.Second // of the readings in an answer, at most
	batchPart = 4           // of the readings that have come, so many as one part are asked for at once
	nGaps     = 4
)

// Ask implements sandbox.Guest.
func (g *guest) Ask() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !g.last.IsZero() {
		g.gaps[g.calls%nGaps] = now.Sub(g.last)
		g.calls++
	}
	g.last = now
	if g.asked {
		return
	}
	a := g.wants()
	body, err := json.Marshal(a)
	if err != nil {
		return // cannot be: two numbers
	}
	id := g.c.expect(func(r returnBody, at time.Time) { g.answered(r, a.Count, now, at) })
	g.asked = g.c.trySend(frameCall, id, callBody{Op: opSample, Body: body})
	if !g.asked {
		g.c.forgetCall(id)
	}
}

// wants is what to ask for. A call out of turn, at the edge of what is measured, makes two
// short gaps of one: the longest of the last is the rate.
func (g *guest) wants() sampleAsk {
	every := slices.Max(g.gaps[:])
	every = min(max(every.Round(leastEvery), leastEvery), mostEvery)
	n := min(int64(batchTime/every), int64(g.seen/batchPart), maxBatch/2)
	return sampleAsk{Count: int(max(n, 1)), Every: int64(every)}
}

// answered keeps the readings, or why there are none.
func (g *guest) answered(r returnBody, most int, asked, at time.Time) {
	readings, nanos, err := parseSamples(r, most)
	if err == nil {
		err = g.stamp(readings, nanos, asked, at)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = false
	if err != nil {
		g.failed = err
		return
	}
	g.seen += len(readings)
	g.readings = append(g.readings, readings...)
	if over := len(g.readings) - maxReadings; over > 0 {
		g.readings = slices.Delete(g.readings, 0, over)
	}
}

// stamp gives readings their times on this host.
func (g *guest) stamp(readings []sandbox.GuestReading, nanos []int64, asked, at time.Time) error {
	first, last := nanos[0], nanos[len(nanos)-1]
	e := g.c.clock.round(asked, at, first, last)
	if e.Uncertainty < 0 {
		return fmt.Errorf("%w: readings of %s in an answer that took %s", errFrame, time.Duration(last-first), at.Sub(asked))
	}
	g.c.clock.learn(e, at)
	now := g.c.clock.now()
	for i := range readings {
		// The figures were true between the question and the answer, whatever the
		// clocks say.
		t := g.c.clock.hostTime(nanos[i], now)
		if t.Before(asked) {
			t = asked
		}
		if t.After(at) {
			t = at
		}
		readings[i].At = t
	}
	return nil
}

// Take implements sandbox.Guest.
func (g *guest) Take() ([]sandbox.GuestReading, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out, err := g.readings, g.failed
	g.readings, g.failed = nil, nil
	return out, err
}

// Clock implements sandbox.Guest.
func (g *guest) Clock(ctx context.Context) (sandbox.Clock, error) { return g.c.Clock(ctx) }

// parseSamples turns the answer to opSample into readings without their times, and the
// times that the sandbox's clock showed, which rise.
func parseSamples(r returnBody, most int) (readings []sandbox.GuestReading, nanos []int64, err error) {
	var b samplesBody
	if len(r.Body) > maxSample {
		return nil, nil, fmt.Errorf("%w: %d bytes of figures", errFrame, len(r.Body))
	}
	if err := r.into(opSample, &b); err != nil {
		return nil, nil, err
	}
	if len(b.Readings) == 0 || len(b.Readings) > most {
		return nil, nil, fmt.Errorf("%w: %d readings for %d", errFrame, len(b.Readings), most)
	}
	for i := range b.Readings {
		reading, err := b.Readings[i].reading()
		if err != nil {
			return nil, nil, err
		}
		if at := b.Readings[i].At; at < 0 || i > 0 && at <= nanos[i-1] {
			return nil, nil, fmt.Errorf("%w: readings that go back in time", errFrame)
		}
		readings, nanos = append(readings, reading), append(nanos, b.Readings[i].At)
	}
	return readings, nanos, nil
}

// reading is what it says, without its time.
func (b *sampleBody) reading() (reading sandbox.GuestReading, err error) {
	if len(b.CPUs) > maxCPUs || b.Runnable < 0 || b.Memory < 0 || b.Free < 0 || b.Spent < 0 {
		return reading, fmt.Errorf("%w: figures of a kernel that cannot be", errFrame)
	}
	reading = sandbox.GuestReading{
		Runnable: b.Runnable, Memory: b.Memory, Free: b.Free, Spent: time.Duration(b.Spent),
		CPUs: make([]sandbox.GuestCPU, len(b.CPUs)),
	}
	for i := range b.CPUs {
		c := &b.CPUs[i]
		if c.Number < 0 || i > 0 && c.Number <= b.CPUs[i-1].Number {
			return reading, fmt.Errorf("%w: processor %d out of order", errFrame, c.Number)
		}
		seconds := func(m int) float64 { return float64(c.Ticks[m]) * tick }
		reading.CPUs[i] = sandbox.GuestCPU{
			Number: c.Number, User: seconds(tickUser), System: seconds(tickSystem), Idle: seconds(tickIdle), IOWait: seconds(tickIOWait),
			IRQ: seconds(tickIRQ), SoftIRQ: seconds(tickSoftIRQ), Steal: seconds(tickSteal),
			NetRx: float64(c.SoftIRQs[softNetRx]), NetTx: float64(c.SoftIRQs[softNetTx]), Block: float64(c.SoftIRQs[softBlock]),
		}
	}
	return reading, nil
}

// sampleBody is a reading on the wire. Times are nanoseconds, sizes bytes.
type sampleBody struct {
	At       int64       `json:"at_ns"`    // CLOCK_MONOTONIC
	Spent    int64       `json:"spent_ns"` // CPU of the agent
	Runnable int         `json:"runnable"`
	Memory   int64       `json:"memory"`
	Free     int64       `json:"free"`
	CPUs     []sampleCPU `json:"cpus"` // by rising number, those that are online
}

type sampleCPU struct {
	Number   int              `json:"n"`
	Ticks    [nTicks]uint64   `json:"t"`
	SoftIRQs [nSoftIRQ]uint64 `json:"s"`
}

// tick is USER_HZ, which the kernel's ABI fixes at 100 on all of Go's Linux
// platforms.
const tick = 0.01

// Places in sampleCPU.Ticks and SoftIRQs.
const (
	tickUser = iota
	tickSystem
	tickIdle
	tickIOWait
	tickIRQ
	tickSoftIRQ
	tickSteal
	nTicks
)

const (
	softNetTx = iota
	softNetRx
	softBlock
	nSoftIRQ
)
