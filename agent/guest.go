package agent

import (
	"context"
	"fmt"
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
	maxSample   = maxCPUs << 8 // bytes: a processor takes up to 230
)

type guest struct {
	c *Client

	mu       sync.Mutex
	asked    bool // and not answered
	readings []sandbox.GuestReading
	failed   error // the last answer that was none, since Take
}

// Ask implements sandbox.Guest.
func (g *guest) Ask() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked {
		return
	}
	asked := time.Now()
	id := g.c.expect(func(r returnBody, at time.Time) { g.answered(r, asked, at) })
	g.asked = g.c.trySend(frameCall, id, callBody{Op: opSample})
	if !g.asked {
		g.c.forgetCall(id)
	}
}

// answered keeps a reading, or why there is none.
func (g *guest) answered(r returnBody, asked, at time.Time) {
	reading, nano, err := parseSample(r)
	if err == nil {
		// The figures were true between the question and the answer, whatever the
		// clocks say.
		g.c.clock.learn(g.c.clock.round(asked, at, nano), at)
		reading.At = g.c.clock.hostTime(nano, g.c.clock.now())
		if reading.At.Before(asked) {
			reading.At = asked
		}
		if reading.At.After(at) {
			reading.At = at
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = false
	if err != nil {
		g.failed = err
		return
	}
	if len(g.readings) == maxReadings {
		g.readings = append(g.readings[:0], g.readings[1:]...)
	}
	g.readings = append(g.readings, reading)
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

// parseSample turns the answer to opSample into a reading without its time, and the
// time that the sandbox's clock showed.
func parseSample(r returnBody) (reading sandbox.GuestReading, nano int64, err error) {
	var b sampleBody
	if len(r.Body) > maxSample {
		return reading, 0, fmt.Errorf("%w: %d bytes of figures", errFrame, len(r.Body))
	}
	if err := r.into(opSample, &b); err != nil {
		return reading, 0, err
	}
	if len(b.CPUs) > maxCPUs || b.Runnable < 0 || b.Memory < 0 || b.Free < 0 || b.Spent < 0 {
		return reading, 0, fmt.Errorf("%w: figures of a kernel that cannot be", errFrame)
	}
	reading = sandbox.GuestReading{
		Runnable: b.Runnable, Memory: b.Memory, Free: b.Free, Spent: time.Duration(b.Spent),
		CPUs: make([]sandbox.GuestCPU, len(b.CPUs)),
	}
	for i := range b.CPUs {
		c := &b.CPUs[i]
		if c.Number < 0 || i > 0 && c.Number <= b.CPUs[i-1].Number {
			return reading, 0, fmt.Errorf("%w: processor %d out of order", errFrame, c.Number)
		}
		seconds := func(m int) float64 { return float64(c.Ticks[m]) * tick }
		reading.CPUs[i] = sandbox.GuestCPU{
			Number: c.Number, User: seconds(tickUser), System: seconds(tickSystem), Idle: seconds(tickIdle), IOWait: seconds(tickIOWait),
			IRQ: seconds(tickIRQ), SoftIRQ: seconds(tickSoftIRQ), Steal: seconds(tickSteal),
			NetRx: float64(c.SoftIRQs[softNetRx]), NetTx: float64(c.SoftIRQs[softNetTx]), Block: float64(c.SoftIRQs[softBlock]),
		}
	}
	return reading, b.At, nil
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
