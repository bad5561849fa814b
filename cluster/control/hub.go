package control

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/internal/begun"
)

// Bounds of a connection that has not said who it is: seconds, bytes, and how many at once.
const (
	greetWithin = 10 * time.Second
	maxGreeting = 512
	maxNew      = 1024
)

// Hub accepts the connections of a study in the coordinator's pod. It is safe for concurrent use.
type Hub struct {
	config *tls.Config
	user   func(net.Conn)

	// Tree writes tare's image as a tar file: an expected agent that does not run in it may fetch it
	// (fetch.go). nil: there is none.
	Tree func(io.Writer) error

	mu       sync.Mutex
	expected map[string]*guest // by the sandbox's name
}

// guest is an agent that is expected.
type guest struct {
	token string
	conn  chan Arrival // has room for as many as may wait
	stays bool         // it may come again
}

// says reports whether the guest is expected, with this token.
func (g *guest) says(token string) bool {
	return g != nil && subtle.ConstantTimeCompare([]byte(g.token), []byte(token)) == 1
}

// Arrival is an agent that has connected. Addr is its pod's address. It is not valid if only the API server
// knows the address.
type Arrival struct {
	net.Conn
	Addr  netip.Addr
	At    time.Time // its greeting was read
	Began time.Time // its first instruction, by its own clock: At, less what that says has passed
}

// NewHub creates a hub. user takes over each connection of a user, and must close it.
func NewHub(id Identity, user func(net.Conn)) (*Hub, error) {
	c, err := id.config()
	if err != nil {
		return nil, err
	}
	return &Hub{config: c, user: user, expected: map[string]*guest{}}, nil
}

// Serve accepts connections until the listener is closed.
func (h *Hub) Serve(l net.Listener) error {
	room := make(chan struct{}, maxNew)
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case room <- struct{}{}:
		default: // who floods the port must not keep others out for long: agents try again
			_ = conn.Close()
			continue
		}
		go func() {
			t := tls.Server(conn, h.config)
			serve, err := h.greet(t)
			<-room
			if err != nil {
				_ = t.Close()
				return
			}
			serve()
		}()
	}
}

// greet finds out who has come, and returns what is to be done with the connection.
func (h *Hub) greet(t *tls.Conn) (func(), error) {
	if err := t.SetDeadline(time.Now().Add(greetWithin)); err != nil {
		return nil, err
	}
	if err := t.Handshake(); err != nil {
		return nil, err
	}
	var who string
	for _, c := range t.ConnectionState().PeerCertificates[:1] {
		who = c.Subject.CommonName
	}
	switch who {
	case User:
		return func() { h.user(t) }, t.SetDeadline(time.Time{})
	case Agent:
		line, err := readLine(t)
		if err != nil {
			return nil, err
		}
		if name, token, ok := wanted(line); ok {
			return func() { h.give(t, name, token) }, nil
		}
		now := time.Now()
		name, token, addr, age, err := parseGreeting(line)
		if err != nil {
			return nil, err
		}
		return func() { h.arrive(name, token, Arrival{t, seen(t, addr), now, now.Add(-age)}) }, t.SetDeadline(time.Time{})
	}
	return nil, fmt.Errorf("the certificate is for %.100q", who)
}

// readLine reads a line, and no byte more.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxGreeting; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
	}
	return "", errors.New("the greeting is too long")
}

// parseGreeting reads the sandbox's name, its token, the pod's address, and for how many microseconds the agent has run.
func parseGreeting(line string) (name, token string, addr netip.Addr, age time.Duration, err error) {
	words := strings.Split(line, " ")
	if len(words) != 4 {
		return "", "", addr, 0, errors.New("the greeting is not a name, a token, an address and a time")
	}
	micro, err := strconv.ParseUint(words[3], 10, 40) // twelve days
	if err == nil {
		addr, err = netip.ParseAddr(words[2])
	}
	return words[0], words[1], addr, time.Duration(micro) * time.Microsecond, err
}

// seen is the address that an agent says it has, if its connection comes from there: an agent's word
// alone must not direct another sandbox's traffic. A network may hide a pod behind its node.
func seen(c net.Conn, said netip.Addr) netip.Addr {
	if from, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil && from.Addr().Unmap() == said.Unmap() {
		return said
	}
	return netip.Addr{}
}

// arrive hands an agent's connection to who expects it.
func (h *Hub) arrive(name, token string, conn Arrival) {
	h.mu.Lock()
	g := h.expected[name]
	known := g.says(token)
	if known && !g.stays {
		delete(h.expected, name)
	}
	h.mu.Unlock()
	if known {
		select {
		case g.conn <- conn:
			return
		default: // no more of them may wait
		}
	}
	_ = conn.Close()
}

// Await prepares for repeated connections under a name that present the token. At most so many of them
// may wait. The hub never forgets the name.
func (h *Hub) Await(name, token string, waiting int) <-chan Arrival {
	g := &guest{token: token, conn: make(chan Arrival, waiting), stays: true}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expected[name] = g
	return g.conn
}

// Expect prepares for the agent of a sandbox. The agent must present the token. forget ends the
// wait, and closes a connection that nobody took.
func (h *Hub) Expect(name string) (token string, arrived <-chan Arrival, forget func()) {
	g := &guest{token: rand.Text(), conn: make(chan Arrival, 1)}
	h.mu.Lock()
	h.expected[name] = g
	h.mu.Unlock()
	return g.token, g.conn, func() {
		h.mu.Lock()
		if h.expected[name] == g {
			delete(h.expected, name)
		}
		h.mu.Unlock()
		select {
		case c := <-g.conn:
			_ = c.Close()
		default:
		}
	}
}

// Dial connects the agent of a sandbox to the coordinator. own is the address of the agent's pod. A pod's
// network may come up after its first process, so Dial tries until ctx ends.
func Dial(ctx context.Context, id Identity, address, name, token, own string) (net.Conn, error) {
	c, err := id.config()
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second}, Config: c}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			_, err = fmt.Fprintf(conn, "%s %s %s %d\n", name, token, own, begun.Ago().Microseconds())
			if err == nil {
				return conn, nil
			}
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot reach the coordinator at %s: %w; check the network policies", address, err)
		case <-time.After(wait):
		}
	}
}

// Join identifies a connection to the coordinator, such as a forwarded port, as that of a user.
func Join(ctx context.Context, id Identity, conn net.Conn) (net.Conn, error) {
	c, err := id.config()
	if err != nil {
		return nil, err
	}
	t := tls.Client(conn, c)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("cannot verify the coordinator: %w", err)
	}
	return t, nil
}
