package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// gateLead is how far ahead the common moment is set, so that every agent has
// heard of it before it comes: also one in an emulated processor on a busy host,
// which 30 ms were too short for in one of ten starts.
const gateLead = 100 * time.Millisecond

// asksAtOnce bounds the clocks that are estimated at the same time.
const asksAtOnce = 8

// Gate lets the commands of several sandboxes start at one moment. Each is made
// ready first, program loaded and all; the last one to arrive sets the moment.
type Gate struct {
	mu   sync.Mutex
	left int
	at   time.Time
	err  error
	open chan struct{}
	asks chan struct{} // has an element for each ask that runs
}

// NewGate makes a gate for n commands.
func NewGate(n int) *Gate {
	return &Gate{left: n, open: make(chan struct{}), asks: make(chan struct{}, asksAtOnce)}
}

// Ask calls ask, which estimates a sandbox's clock by round trips, and returns its error. At most asksAtOnce of them run at the
// same time. With hundreds, each answer would wait for others, and the estimate would be wrong by up to half of that time.
// Ask returns the cause of ctx's end if that comes first.
func (g *Gate) Ask(ctx context.Context, ask func() error) error {
	select {
	case g.asks <- struct{}{}:
		defer func() { <-g.asks }()
		return ask()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ErrGate is what Arrive says to the others when a command cannot start; the
// reason is that command's own.
var ErrGate = errors.New("another command that was to start at the same time failed before it began")

// Opened is closed when the moment is set, or when there will be none.
func (g *Gate) Opened() <-chan struct{} { return g.open }

// Moment is when the commands go, once Opened; zero if they do not.
func (g *Gate) Moment() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// Arrive is called by a kind of sandbox when the command is ready to go. It
// returns the moment, on this host's clock, when all of them go.
func (g *Gate) Arrive(ctx context.Context) (time.Time, error) {
	g.mu.Lock()
	if g.left--; g.left == 0 && g.err == nil {
		g.at = time.Now().Add(gateLead)
		close(g.open)
	}
	g.mu.Unlock()
	select {
	case <-g.open:
		return g.at, g.err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// Fail lets nobody through: a command that cannot start must not keep the others
// waiting. It does nothing once the gate is open.
func (g *Gate) Fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		g.err = ErrGate
		close(g.open)
	}
}
