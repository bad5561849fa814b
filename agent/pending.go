package agent

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// pending is the client's side of a running command. Its output waits here, as much as there
// is room for, and a goroutine passes it to the listener. A slow listener delays only its
// own command.
type pending struct {
	stdout, stderr io.Writer
	grant          func(int)     // tells the agent about room
	ready          chan struct{} // a gated command is ready
	done           chan exitBody // gets the agent's report once the output was passed on
	used           int           // room freed since the agent was last told; owned by the goroutine

	mu     sync.Mutex
	waits  []frame       // output frames, in order
	held   int           // room that the agent has used and not got back
	giving chan struct{} // closed when the goroutine ends; nil while it does not run
	exit   *exitBody     // once it is known
	left   bool          // the caller has abandoned the output
}

// put takes a frame of output. It is an error if the agent sends more than there is room
// for.
func (p *pending) put(f frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held += cost(len(f.payload)); p.held > outputRoom {
		return fmt.Errorf("%w: more output than the %d bytes of the command's window", errFrame, outputRoom)
	}
	p.waits = append(p.waits, f)
	if p.giving == nil {
		p.giving = make(chan struct{})
		go p.give(p.giving)
	}
	return nil
}

// give passes waiting output to the listener until everything is passed on.
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
				_, _ = to.Write(f.payload) // the caller bounds what it keeps, and the command goes on
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

// exited takes the agent's report of the end. The command is done once its output was
// passed on.
func (p *pending) exited(e exitBody) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = &e
	if p.giving == nil {
		p.done <- e
	}
}

// settle waits until the output that has arrived was passed on, at most d.
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

// abandon drops output that was not passed on.
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
