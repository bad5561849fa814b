package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Client talks to one agent. It is safe for concurrent use.
type Client struct {
	out  *frameWriter
	mu   sync.Mutex
	next uint32
	cmds map[uint32]*pending
	asks map[uint32]chan returnBody // calls that are not answered yet
	err  error                      // why the stream ended
	gone chan struct{}
}

type pending struct {
	stdout, stderr io.Writer
	done           chan exitBody
}

// Connect waits for the agent's hello on r and answers on w. It returns when
// the versions agree, the stream breaks, or ctx ends; r stays owned by a
// goroutine that ends with the stream.
func Connect(ctx context.Context, r io.Reader, w io.Writer) (*Client, error) {
	c := &Client{out: &frameWriter{w: w}, cmds: map[uint32]*pending{}, asks: map[uint32]chan returnBody{}, gone: make(chan struct{})}
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
	if err := c.out.json(frameHello, 0, helloBody{Version: version}); err != nil {
		return nil, fmt.Errorf("the agent in the sandbox does not listen: %w", err)
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

func (c *Client) read(r io.Reader) error {
	for {
		f, err := readFrame(r)
		if err != nil {
			return withNoise(err, r)
		}
		if f.typ == frameReturn {
			if err := c.returned(f); err != nil {
				return err
			}
			continue
		}
		c.mu.Lock()
		p := c.cmds[f.id]
		c.mu.Unlock()
		if p == nil {
			continue // output that arrives after the caller gave the command up
		}
		switch f.typ {
		case frameStdout:
			write(p.stdout, f.payload)
		case frameStderr:
			write(p.stderr, f.payload)
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
	}
}

// write ignores errors: the caller bounds what it keeps, the command goes on.
func write(w io.Writer, p []byte) {
	if w != nil {
		_, _ = w.Write(p)
	}
}

func (c *Client) fail(err error) {
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the sandbox ended")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	close(c.gone)
}

func (c *Client) forget(id uint32) {
	c.mu.Lock()
	delete(c.cmds, id)
	c.mu.Unlock()
}

// Run runs a command to its end, as sandbox.Instance.Exec describes. A command
// that could not be started is an Exit with code 127 and the reason on Stderr.
func (c *Client) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Exit, error) {
	p := &pending{stdout: cmd.Stdout, stderr: cmd.Stderr, done: make(chan exitBody, 1)}
	c.mu.Lock()
	c.next++
	id := c.next
	c.cmds[id] = p
	c.mu.Unlock()
	defer c.forget(id)

	if err := c.out.json(frameStart, id, startBody{Args: cmd.Args, Env: cmd.Env}); err != nil {
		return sandbox.Exit{}, fmt.Errorf("cannot start %q in the sandbox: %w", cmd.Args, err)
	}
	select {
	case e := <-p.done:
		return exitOf(e, cmd), nil
	case <-c.gone:
		return c.lost(p, cmd)
	case <-ctx.Done():
	}
	return c.end(id, p, cmd)
}

// end stops a command whose context is done.
func (c *Client) end(id uint32, p *pending, cmd sandbox.Command) (sandbox.Exit, error) {
	_ = c.out.json(frameSignal, id, signalBody{Signal: int(syscall.SIGTERM)})
	for _, wait := range []time.Duration{killAfter, answerWithin} {
		t := time.NewTimer(wait)
		select {
		case e := <-p.done:
			t.Stop()
			return exitOf(e, cmd), nil
		case <-c.gone:
			t.Stop()
			return c.lost(p, cmd)
		case <-t.C:
			_ = c.out.json(frameSignal, id, signalBody{Signal: int(syscall.SIGKILL)})
		}
	}
	return sandbox.Exit{}, fmt.Errorf("the sandbox did not end %q within %s of being told to", cmd.Args, killAfter+answerWithin)
}

// lost is called when the stream ended; an exit that came just before counts.
func (c *Client) lost(p *pending, cmd sandbox.Command) (sandbox.Exit, error) {
	select {
	case e := <-p.done:
		return exitOf(e, cmd), nil
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return sandbox.Exit{}, fmt.Errorf("while running %q: %w", cmd.Args, c.err)
}

// Close forgets all commands; the owner of the stream closes the stream.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.cmds)
	return nil
}

func exitOf(e exitBody, cmd sandbox.Command) sandbox.Exit {
	if e.Error != "" {
		write(cmd.Stderr, []byte(e.Error+"\n"))
	}
	return sandbox.Exit{
		Code: e.Code, Signal: e.Signal,
		User: time.Duration(e.User), System: time.Duration(e.System),
	}
}
