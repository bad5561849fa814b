package agent

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// pending is the client's side of a command under way. What comes of its output waits here,
// as much as there is room for, and a goroutine gives it to who wants it: one that
// is slow holds up its own command alone.
type pending struct {
	stdout, stderr io.Writer
	grant          func(int)     // tells the agent of room
	ready          chan struct{} // a gated command is
	done           chan exitBody // has what the agent said last, once the output was given
	used           int           // of the room for output that was given since the agent was told; the goroutine's

	mu     sync.Mutex
	waits  []frame       // of output, in their order
	held   int           // of the room that the agent has used, and has not been given back
	giving chan struct{} // closed when the goroutine ends; nil: none runs
	exit   *exitBody     // when it is known
	left   bool          // nobody wants the output any more
}

// put takes a frame of output. An agent that sends more than there is room for is none.
func (p *pending) put(f frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held += cost(len(f.payload)); p.held > outputRoom {
		return fmt.Errorf("%w: output of more than the %d bytes that there was room for", errFrame, outputRoom)
	}
	p.waits = append(p.waits, f)
	if p.giving == nil {
		p.giving = make(chan struct{})
		go p.give(p.giving)
	}
	return nil
}

// give gives what waits to who wants it, until nothing does.
func (p *pending) give(end chan struct{}) {
	defer close(end)
	for {
		p.mu.Lock()
		frames := p.waits
		p.waits = nil
		if p.left || len(frames) == 0 {
			p.giving = nil
			if p.exit != nil {
				p.done <- *p.exit
			}
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		for _, f := range frames {
			to := p.stdout
			if f.typ == frameStderr {
				to = p.stderr
			}
			if to != nil && !p.isLeft() {
				_, _ = to.Write(f.payload) // the caller bounds what it keeps, the command goes on
			}
			if p.used += cost(len(f.payload)); p.used >= roomBack {
				p.free(p.used)
				p.used = 0
			}
		}
	}
}

// free gives room back to the agent.
func (p *pending) free(n int) {
	p.mu.Lock()
	p.held -= n
	p.mu.Unlock()
	p.grant(n)
}

// exited takes the agent's word on the end. It is done when the output was given.
func (p *pending) exited(e exitBody) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = &e
	if p.giving == nil {
		p.done <- e
	}
}

// settle waits until the output that has come was given, at most d.
func (p *pending) settle(d time.Duration) {
	p.mu.Lock()
	giving := p.giving
	p.mu.Unlock()
	if giving == nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-giving:
	case <-t.C:
	}
}

// abandon leaves output that has not been given.
func (p *pending) abandon() {
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
}

func (p *pending) isLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}
