package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tare/sandbox"
)

// killAfter is how long a command has between SIGTERM and SIGKILL, and
// answerWithin how long the agent then has to say how it ended.
const (
	killAfter    = 2 * time.Second
	answerWithin = 5 * time.Second
)

// queued is how many frames may wait for an agent that reads slowly. drained is how long the
// client, after the stream was found closed, waits for the agent's last frames and for
// listeners to take the output that has arrived.
const (
	queued  = 64
	drained = time.Second
)

// ErrHangs is wrapped by the error of a command that did not end though it was killed. Its sandbox
// has probably stopped working.
var ErrHangs = errors.New("the sandbox hangs")

// Client talks to one agent. It is safe for concurrent use. No method waits for the agent
// after its context is done: callers put frames in a queue, and a goroutine writes them.
type Client struct {
	place string // of the agent, in messages
	clock *clock
	guest *guest
	queue chan []byte
	guard guard

	mu   sync.Mutex
	next uint32
	cmds map[uint32]*pending
	asks map[uint32]answer // calls that are not answered yet
	err  error             // why the stream ended
	gone chan struct{}     // closed when the stream ends
}

// Option is a setting of Connect.
type Option func(*Client)

// placeSandbox is where an agent is unless Place says otherwise.
const placeSandbox = "sandbox"

// Place is what messages call the place of the agent: "collector process".
func Place(name string) Option { return func(c *Client) { c.place = name } }

// Connect waits for the agent's hello on r and answers on w. It returns when
// the versions agree, the stream breaks, or ctx ends; r and w stay owned by goroutines that end with the stream.
func Connect(ctx context.Context, r io.Reader, w io.Writer, options ...Option) (*Client, error) {
	c := &Client{
		place: placeSandbox, clock: newClock(), queue: make(chan []byte, queued),
		cmds: map[uint32]*pending{}, asks: map[uint32]answer{}, gone: make(chan struct{}),
	}
	c.guest = &guest{c: c}
	c.guard.expired = func() { c.fail(fmt.Errorf("the agent in the %s has read nothing for %s", c.place, deaf)) }
	for _, option := range options {
		option(c)
	}
	hello := make(chan error, 1)
	go func() {
		r := bufio.NewReaderSize(r, readAhead)
		b, err := c.hello(r)
		if err == nil {
			c.queue <- b // before all other frames
			go c.write(w)
		}
		if hello <- err; err == nil {
			err = c.read(r)
		}
		c.fail(err)
	}()
	select {
	case err := <-hello:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("the agent in the %s said nothing: %w", c.place, ctx.Err())
	}
	return c, nil
}

// write sends what is queued until the stream ends.
func (c *Client) write(w io.Writer) {
	for {
		select {
		case b := <-c.queue:
			if err := c.guard.write(w, b); err != nil {
				// The agent's last frames may say why it no longer reads.
				t := time.NewTimer(drained)
				defer t.Stop()
				select {
				case <-c.gone:
				case <-t.C:
					c.fail(fmt.Errorf("the agent in the %s does not listen: %w", c.place, err))
				}
				return
			}
		case <-c.gone:
			return
		}
	}
}

// send queues a frame. It waits while the agent is slow to read, no longer than
// ctx and the stream last.
func (c *Client) send(ctx context.Context, t frameType, id uint32, body any) error {
	b, err := appendBody(nil, t, id, body)
	if err != nil {
		return err
	}
	select {
	case c.queue <- b:
		return nil
	case <-c.gone:
		return c.Err()
	case <-ctx.Done():
		return fmt.Errorf("the agent in the %s does not listen: %w", c.place, context.Cause(ctx))
	}
}

// trySend queues a frame unless the queue is full.
func (c *Client) trySend(t frameType, id uint32, body any) bool {
	b, err := appendBody(nil, t, id, body)
	if err != nil {
		return false
	}
	select {
	case c.queue <- b:
		return true
	default:
		return false
	}
}

func (c *Client) read(r io.Reader) error {
	for {
		f, err := readFrame(r)
		if err != nil {
			return withNoise(err, r)
		}
		if err := c.take(f); err != nil {
			return err
		}
	}
}

// take handles a frame. It never waits for the listener of a command's output.
func (c *Client) take(f frame) error {
	if f.typ == frameHello {
		return c.refused(f)
	}
	if f.typ == frameReturn {
		return c.returned(f)
	}
	c.mu.Lock()
	p := c.cmds[f.id]
	c.mu.Unlock()
	if p == nil {
		return nil // late output of a command that the caller has abandoned
	}
	switch f.typ {
	case frameStdout, frameStderr:
		return p.put(f)
	case frameReady:
		select {
		case p.ready <- struct{}{}:
		default: // it has reported this before
		}
	case frameExit:
		var e exitBody
		if err := f.decode(&e); err != nil {
			return err
		}
		c.forget(f.id)
		p.exited(e)
	default:
		return fmt.Errorf("%w: type %d is not for the client", errFrame, f.typ)
	}
	return nil
}

// fail ends the client. It keeps the first reason.
func (c *Client) fail(err error) {
	// A stream that its owner closed, having seen the end, says as little.
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
		err = fmt.Errorf("the %s ended", c.place)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.gone)
	}
}

// Err returns why the stream ended, or nil while it goes on.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Client) forget(id uint32) {
	c.mu.Lock()
	delete(c.cmds, id)
	c.mu.Unlock()
}

// Run runs a command to its end, as sandbox.Instance.Exec describes. If the command cannot
// be started, Exit has code 127 and Stderr gets the reason.
func (c *Client) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Exit, error) {
	p := &pending{stdout: cmd.Stdout, stderr: cmd.Stderr, ready: make(chan struct{}, 1), done: make(chan exitBody, 1)}
	defer p.abandon()
	c.mu.Lock()
	c.next++
	id := c.next
	p.grant = func(n int) { _ = c.send(context.Background(), frameRoom, id, roomBody{Bytes: n}) } // until the stream ends
	c.cmds[id] = p
	c.mu.Unlock()
	defer c.forget(id)
	if cmd.Gate != nil {
		defer cmd.Gate.Fail() // other commands must not wait for one that ended before its start
	}
	if err := c.send(ctx, frameStart, id, startBody{Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, User: cmd.User, Gate: cmd.Gate != nil}); err != nil {
		return sandbox.Exit{}, fmt.Errorf("cannot start %q in the sandbox: %w", cmd.Args, err)
	}
	r := &running{c: c, id: id, p: p, cmd: cmd}
	return r.follow(ctx)
}

// end stops a command whose context is done.
func (r *running) end() (sandbox.Exit, error) {
	ctx, cancel := context.WithTimeout(context.Background(), killAfter+answerWithin)
	defer cancel()
	signal := func(s syscall.Signal) {
		_ = r.c.send(ctx, frameSignal, r.id, signalBody{Signal: int(s)}) // the wait below reports a failure
	}
	signal(syscall.SIGTERM)
	kill := time.NewTimer(killAfter)
	defer kill.Stop()
	for {
		select {
		case e := <-r.p.done:
			return r.exit(e), nil
		case <-r.c.gone:
			return r.lost()
		case <-kill.C:
			signal(syscall.SIGKILL)
		case <-ctx.Done():
			return sandbox.Exit{}, fmt.Errorf("%w: it was told to stop %q, but did not within %s", ErrHangs, r.cmd.Args, killAfter+answerWithin)
		}
	}
}

// lost is called when the stream ended; an exit that came just before counts.
func (r *running) lost() (sandbox.Exit, error) {
	r.p.settle(drained)
	select {
	case e := <-r.p.done:
		return r.exit(e), nil
	default:
	}
	return sandbox.Exit{}, fmt.Errorf("while running %s: %w", brief(r.cmd.Args), r.c.Err())
}

// brief returns the start of a command line, quoted. A long script must not hide the rest
// of a message, which says why the command ended.
func brief(args []string) string {
	const most = 48
	line := strings.Join(args, " ")
	if len(line) <= most {
		return strconv.Quote(line)
	}
	return strconv.Quote(strings.ToValidUTF8(line[:most], "")) + "..."
}

// Close drops all commands. The owner of the stream closes the stream.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.cmds)
	return nil
}
