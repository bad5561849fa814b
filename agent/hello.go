package agent

import (
	"fmt"
	"io"
	"os"
	"time"
)

// The handshake of a session. Nothing else happens before it is complete.
//
// 1. The agent says hello: its version. 2. The client refuses another version, and answers
// with its own. 3. The agent refuses another version with a second hello that says why, and
// ends.
//
// Neither end proves who it is: a pipe and a serial port have no other end than the harness,
// and a stream over a network must be in TLS that knows both ends, as cluster/control's is.

// helloWithin is how long the client has for its hello, after the agent's, and how long it may
// take to read the agent's from a network.
const helloWithin = 30 * time.Second

// refusedWithin is how long an agent that refuses a client tries to tell it.
const refusedWithin = time.Second

// hello is the agent's first frame.
func (s *server) hello() ([]byte, error) {
	return appendBody(nil, frameHello, 0, helloBody{Version: version, Pid: os.Getpid()})
}

// greeted waits for the client's hello and accepts or refuses it.
func (s *server) greeted(r io.Reader) error {
	late := time.AfterFunc(helloWithin, func() {
		s.out.end(fmt.Errorf("agent: the client did not say hello within %s", helloWithin))
	})
	f, err := readFrame(r)
	if err != nil {
		return err
	}
	late.Stop()
	var h helloBody
	if f.typ != frameHello {
		return fmt.Errorf("%w: the client's first frame has type %d, not hello", errFrame, f.typ)
	}
	if err := f.decode(&h); err != nil {
		return err
	}
	if h.Version == version {
		return nil
	}
	err = fmt.Errorf("the client speaks version %d, this agent %d; use the same binary", h.Version, version)
	s.say(frameHello, 0, helloBody{Version: version, Error: err.Error()})
	s.out.settle(refusedWithin)
	return fmt.Errorf("agent: %w", err)
}

// hello takes the agent's first frame and makes the client's.
func (c *Client) hello(r io.Reader) ([]byte, error) {
	f, err := readFrame(r)
	if err != nil {
		return nil, fmt.Errorf("the agent in the %s did not say hello: %w", c.place, withNoise(err, r))
	}
	var h helloBody
	if f.typ != frameHello {
		return nil, fmt.Errorf("%w: the first frame has type %d", errFrame, f.typ)
	}
	if err := f.decode(&h); err != nil {
		return nil, err
	}
	if h.Version != version {
		return nil, fmt.Errorf("the agent in the %s speaks version %d, this tare %d; use the same binary", c.place, h.Version, version)
	}
	return appendBody(nil, frameHello, 0, helloBody{Version: version})
}

// refused handles the agent's second hello, which says why it refuses.
func (c *Client) refused(f frame) error {
	var h helloBody
	if err := f.decode(&h); err != nil {
		return err
	}
	if h.Error != "" {
		return fmt.Errorf("the agent in the %s refuses this tare: %s", c.place, text(h.Error))
	}
	return fmt.Errorf("%w: the agent said hello twice", errFrame)
}
