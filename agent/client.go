package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// queued is how many frames may wait for an agent that is slow to read, and
// drained how long, after its stream was found closed, for its last words.
const (
	queued  = 64
	drained = time.Second
)

// Client talks to one agent. It is safe for concurrent use. No call of it waits
// for the agent longer than its context lasts: a goroutine writes what callers
// leave in a queue.
type Client struct {
	clock *clock
	guest *guest
	queue chan []byte
	mu    sync.Mutex
	next  uint32
	cmds  map[uint32]*pending
	asks  map[uint32]answer // calls that are not answered yet
	err   error             // why the stream ended
	gone  chan struct{}     // closed then
}

// pending is a command under way.
type pending struct {
	stdout, stderr io.Writer
	ready          chan struct{} // a gated command is
	done           chan exitBody
}

// Connect waits for the agent's hello on r and answers on w. It returns when
// the versions agree, the stream breaks, or ctx ends; r and w stay owned by
// goroutines that end with the stream.
func Connect(ctx context.Context, r io.Reader, w io.Writer) (*Client, error) {
	c := &Client{
		clock: newClock(), queue: make(chan []byte, queued),
		cmds: map[uint32]*pending{}, asks: map[uint32]answer{}, gone: make(chan struct{}),
	}
	c.guest = &guest{c: c}
	hello := make(chan error, 1)
	go func() {
		err := c.hello(r)
		hello <- err
		if err == nil {
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
		return nil, fmt.Errorf("the agent in the sandbox said nothing: %w", ctx.Err())
	}
	go c.write(w)
	if err := c.send(ctx, frameHello, 0, helloBody{Version: version}); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Client) hello(r io.Reader) error {
	f, err := readFrame(r)
	if err != nil {
		return fmt.Errorf("the agent in the sandbox did not say hello: %w", withNoise(err, r))
	}
	var h helloBody
	if f.typ != frameHello {
		return fmt.Errorf("%w: the first frame has type %d", errFrame, f.typ)
	}
	if err := f.decode(&h); err != nil {
		return err
	}
	if h.Version != version {
		return fmt.Errorf("the agent in the sandbox speaks version %d, this tare %d; use the same binary", h.Version, version)
	}
	return nil
}

// write sends what is queued until the stream ends.
func (c *Client) write(w io.Writer) {
	for {
		select {
		case b := <-c.queue:
			if _, err := w.Write(b); err != nil {
				// What the agent said last tells more than that it does not listen.
				t := time.NewTimer(drained)
				defer t.Stop()
				select {
				case <-c.gone:
				case <-t.C:
					c.fail(fmt.Errorf("the agent in the sandbox does not listen: %w", err))
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
	b, err := encode(t, id, body)
	if err != nil {
		return err
	}
	select {
	case c.queue <- b:
		return nil
	case <-c.gone:
		return c.why()
	case <-ctx.Done():
		return fmt.Errorf("the agent in the sandbox does not listen: %w", context.Cause(ctx))
	}
}

// trySend queues a frame unless the queue is full.
func (c *Client) trySend(t frameType, id uint32, body any) bool {
	b, err := encode(t, id, body)
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

func encode(t frameType, id uint32, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return appendFrame(nil, t, id, b)
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

// take does what a frame asks for.
func (c *Client) take(f frame) error {
	if f.typ == frameReturn {
		return c.returned(f)
	}
	c.mu.Lock()
	p := c.cmds[f.id]
	c.mu.Unlock()
	if p == nil {
		return nil // output that arrives after the caller gave the command up
	}
	switch f.typ {
	case frameStdout:
		write(p.stdout, f.payload)
	case frameStderr:
		write(p.stderr, f.payload)
	case frameReady:
		select {
		case p.ready <- struct{}{}:
		default: // it has said so before
		}
	case frameExit:
		var e exitBody
		if err := f.decode(&e); err != nil {
			return err
		}
		c.forget(f.id)
		p.done <- e
	default:
		return fmt.Errorf("%w: type %d is not for the client", errFrame, f.typ)
	}
	return nil
}

// write ignores errors: the caller bounds what it keeps, the command goes on.
func write(w io.Writer, p []byte) {
	if w != nil {
		_, _ = w.Write(p)
	}
}

// fail ends the client. The first reason counts.
func (c *Client) fail(err error) {
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the sandbox ended")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.gone)
	}
}

// why is the reason of the stream's end, once gone is closed.
func (c *Client) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Client) forget(id uint32) {
	c.mu.Lock()
	delete(c.cmds, id)
	c.mu.Unlock()
}

// Run runs a command to its end, as sandbox.Instance.Exec describes. A command
// that could not be started is an Exit with code 127 and the reason on Stderr.
func (c *Client) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Exit, error) {
	p := &pending{stdout: cmd.Stdout, stderr: cmd.Stderr, ready: make(chan struct{}, 1), done: make(chan exitBody, 1)}
	c.mu.Lock()
	c.next++
	id := c.next
	c.cmds[id] = p
	c.mu.Unlock()
	defer c.forget(id)
	if cmd.Gate != nil {
		defer cmd.Gate.Fail() // nobody else is to wait for what ended before its start
	}
	if err := c.send(ctx, frameStart, id, startBody{Args: cmd.Args, Env: cmd.Env, Gate: cmd.Gate != nil}); err != nil {
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
		_ = r.c.send(ctx, frameSignal, r.id, signalBody{Signal: int(s)}) // the waiting below says it
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
			return sandbox.Exit{}, fmt.Errorf("the sandbox did not end %q within %s of being told to", r.cmd.Args, killAfter+answerWithin)
		}
	}
}

// lost is called when the stream ended; an exit that came just before counts.
func (r *running) lost() (sandbox.Exit, error) {
	select {
	case e := <-r.p.done:
		return r.exit(e), nil
	default:
	}
	return sandbox.Exit{}, fmt.Errorf("while running %s: %w", brief(r.cmd.Args), r.c.why())
}

// brief is a command's begin: what comes after it in a message, why it ended, must not
// be lost behind a script.
func brief(args []string) string {
	const most = 48
	line := strings.Join(args, " ")
	if len(line) <= most {
		return strconv.Quote(line)
	}
	return strconv.Quote(strings.ToValidUTF8(line[:most], "")) + "..."
}

// Close forgets all commands; the owner of the stream closes the stream.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.cmds)
	return nil
}
