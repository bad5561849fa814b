package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tare/sandbox"
)

// Guest reads the figures of the sandbox's kernel through its agent. A client has one: each
// reading goes to only one caller of Take.
func (c *Client) Guest() sandbox.Guest { return c.guest }

// maxReadings bounds the readings that are kept if nobody takes them, maxCPUs the processors
// of a guest, maxSample the length of its answer.
const (
	maxReadings = 64
	maxCPUs     = 1024
	maxSample   = maxCPUs << 9 // bytes: a processor takes up to 230, and there are less than twice as many
)

// guest asks for several readings at once, because a message costs the guest more than a
// reading does: as many as Ask is called in a second. It begins with one at a time, so that
// a short trial that ends before the answer lacks little.
type guest struct {
	c *Client

	mu       sync.Mutex
	last     time.Time            // when Ask was called
	gaps     [nGaps]time.Duration // between the last calls
	calls    int                  // number of calls
	asked    bool                 // a question waits for its answer
	readings []sandbox.GuestReading
	seen     int   // readings that have arrived
	failed   error // the last error since Take
}

const (
	batchTime = time.Second // the longest time that one answer covers
	batchPart = 4           // ask for at most 1/batchPart of the readings that have arrived
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
	g.asked = g.c.ask(opSample, a, func(r returnBody, at time.Time) { g.answered(r, a.Count, now, at) })
}

// wants returns what to ask for. An extra call at the edge of the measured time splits one
// gap into two short ones, so the longest of the last gaps gives the rate.
func (g *guest) wants() sampleAsk {
	every := slices.Max(g.gaps[:])
	every = min(max(every.Round(leastEvery), leastEvery), mostEvery)
	n := min(int64(batchTime/every), int64(g.seen/batchPart), maxBatch/2)
	return sampleAsk{Count: int(max(n, 1)), Every: int64(every)}
}

// answered keeps the readings, or the error.
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

// stamp sets the times of readings by this host's clock.
func (g *guest) stamp(readings []sandbox.GuestReading, nanos []int64, asked, at time.Time) error {
	first, last := nanos[0], nanos[len(nanos)-1]
	e := g.c.clock.round(asked, at, first, last)
	if e.Uncertainty < 0 {
		return fmt.Errorf("%w: the readings span %s, but the answer took only %s", errFrame, time.Duration(last-first), at.Sub(asked))
	}
	g.c.clock.learn(e, at)
	// The readings were taken between the question and the answer.
	for i, t := range g.c.clock.between(asked, at, nanos) {
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

// parseSamples parses the answer to opSample. It returns the readings, not yet stamped, and
// their times by the sandbox's clock, which rise.
func parseSamples(r returnBody, most int) (readings []sandbox.GuestReading, nanos []int64, err error) {
	var b samplesBody
	if len(r.Body) > maxSample {
		return nil, nil, fmt.Errorf("%w: an answer of %d bytes is too long", errFrame, len(r.Body))
	}
	if err := r.into(placeSandbox, opSample, &b); err != nil {
		return nil, nil, err
	}
	if len(b.Readings) == 0 || len(b.Readings) > most {
		return nil, nil, fmt.Errorf("%w: the answer has %d readings; 1 to %d were asked for", errFrame, len(b.Readings), most)
	}
	for i := range b.Readings {
		reading, err := b.Readings[i].reading()
		if err != nil {
			return nil, nil, err
		}
		if at := b.Readings[i].At; at < 0 || i > 0 && at <= nanos[i-1] {
			return nil, nil, fmt.Errorf("%w: a reading is older than the one before it", errFrame)
		}
		readings, nanos = append(readings, reading), append(nanos, b.Readings[i].At)
	}
	return readings, nanos, nil
}

// reading converts it, without its time.
func (b *sampleBody) reading() (reading sandbox.GuestReading, err error) {
	if len(b.CPUs) > maxCPUs || b.Runnable < 0 || b.Memory < 0 || b.Free < 0 || b.Spent < 0 {
		return reading, fmt.Errorf("%w: a figure of the kernel is out of range", errFrame)
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
	CPUs     []sampleCPU `json:"cpus"` // those online, by rising number
}

type sampleCPU struct {
	Number   int              `json:"n"`
	Ticks    [nTicks]uint64   `json:"t"`
	SoftIRQs [nSoftIRQ]uint64 `json:"s"`
}

// tick is a clock tick in seconds: the kernel's ABI fixes USER_HZ at 100 on all of Go's
// Linux platforms.
const tick = 0.01

// Indexes of sampleCPU.Ticks and SoftIRQs.
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
