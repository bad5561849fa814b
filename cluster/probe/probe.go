// Package probe lets `tare doctor` examine a cluster from a pod: the node's clock, and whether
// the pod can reach other pods.
//
// The data path: 1. Serve listens in the pod; 2. doctor forwards that port, presents the token of
// the pod's manifest, and uses the connection like one to an agent; 3. Clock and Reach ask. The pods reach each other
// on the same port, without a token.
package probe

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"tare/agent"
)

// Port is where a probe listens.
const Port = 7777

const (
	opWall  = "wall"  // no body; answer: nanoseconds since 1970, of the node's clock
	opReach = "reach" // body: an address with a port; answer: nanoseconds until it was connected
)

// reachWithin bounds an attempt to reach another pod.
const reachWithin = 5 * time.Second

// tokenWithin is how long a client has to say the token.
const tokenWithin = 10 * time.Second

// Serve answers clients that present the token, until ctx ends.
func Serve(ctx context.Context, token string) error {
	if token == "" {
		return errors.New("the pod's manifest has no token")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", fmt.Sprintf(":%d", Port))
	if err != nil {
		return err
	}
	return serve(ctx, l, token)
}

func serve(ctx context.Context, l net.Listener, token string) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	ops := agent.Operations{
		opWall:  func(json.RawMessage) (any, error) { return time.Now().UnixNano(), nil },
		opReach: func(body json.RawMessage) (any, error) { return reach(ctx, body) },
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			if admitted(conn, token) {
				_ = agent.Serve(ctx, conn, conn, ops, agent.NoCommands) // the other end hears why
			}
			_ = conn.Close()
		}()
	}
}

// admitted reads what a client says first.
func admitted(conn net.Conn, token string) bool {
	said := make([]byte, len(token))
	_ = conn.SetReadDeadline(time.Now().Add(tokenWithin))
	_, err := io.ReadFull(conn, said)
	_ = conn.SetReadDeadline(time.Time{})
	return err == nil && subtle.ConstantTimeCompare(said, []byte(token)) == 1
}

func reach(ctx context.Context, body json.RawMessage) (any, error) {
	var address string
	if err := json.Unmarshal(body, &address); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	begun := time.Now()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	took := time.Since(begun)
	return took.Nanoseconds(), conn.Close()
}

// Probe is the client of a probe.
type Probe struct {
	client *agent.Client
	conn   net.Conn
}

// Connect opens a session with a probe.
func Connect(ctx context.Context, conn net.Conn, token string) (*Probe, error) {
	_, err := io.WriteString(conn, token)
	var c *agent.Client
	if err == nil {
		c, err = agent.Connect(ctx, conn, conn, agent.Place("pod"))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Probe{c, conn}, nil
}

// Close ends the connection.
func (p *Probe) Close() {
	_ = p.client.Close()
	_ = p.conn.Close()
}

// rounds is how often Clock asks: the fastest answer is the most exact.
const rounds = 8

// Clock returns how far the pod's clock is ahead of this machine's, and the uncertainty of that, within.
func (p *Probe) Clock(ctx context.Context) (ahead, within time.Duration, err error) {
	for i := range rounds {
		asked := time.Now()
		var wall int64
		if err := p.client.Call(ctx, opWall, nil, &wall); err != nil {
			return 0, 0, err
		}
		half := time.Since(asked) / 2
		if i == 0 || half < within {
			ahead, within = time.Unix(0, wall).Sub(asked.Add(half)), half
		}
	}
	return ahead, within, nil
}

// Reach makes the pod connect to another pod's probe, and returns how long that took.
func (p *Probe) Reach(ctx context.Context, host string) (time.Duration, error) {
	var took time.Duration
	err := p.client.Call(ctx, opReach, net.JoinHostPort(host, fmt.Sprint(Port)), &took)
	return took, err
}
