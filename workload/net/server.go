package netload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"tare/workload/inside/raw"
)

// server answers one session at a time. It refuses others meanwhile, because they would disturb
// the measurement.
type server struct {
	ln     *net.TCPListener
	maxN   int
	stderr io.Writer

	mu      sync.Mutex
	current *session
	done    int
	last    *report
}

// session is one client's run at the server.
type session struct {
	cfg   config
	token uint64
	data  chan dataConn
}

type dataConn struct {
	conn  *net.TCPConn
	index int
}

// serve accepts until ctx ends, ends the running session, and returns the report of the last one;
// nil if no client came.
func (s *server) serve(ctx context.Context) (*report, error) {
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = s.ln.Close() })
	defer stop()
	slots := make(chan struct{}, 2*maxConnections)
	var failed error
	for {
		c, err := s.ln.AcceptTCP()
		if err != nil {
			if ctx.Err() == nil {
				failed = fmt.Errorf("accepting connections: %w", err)
			}
			break
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = c.Close() // there are more unfinished handshakes than any client needs
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := s.handle(ctx, c); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintln(s.stderr, "tare net: server:", err)
			}
		})
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, failed
}

// handle distinguishes data from control connections by the first byte.
func (s *server) handle(ctx context.Context, c *net.TCPConn) error {
	keep := false
	defer func() {
		if !keep {
			_ = c.Close()
		}
	}()
	if err := c.SetReadDeadline(time.Now().Add(handshake)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	hello := make([]byte, helloSize)
	first := hello[:1]
	if _, err := io.ReadFull(c, first); err != nil {
		return fmt.Errorf("a connection from %s sent nothing: %w", c.RemoteAddr(), err)
	}
	if first[0] != helloMagic {
		return s.control(ctx, newWire(c, first))
	}
	if _, err := io.ReadFull(c, hello[1:]); err != nil {
		return fmt.Errorf("a data connection from %s broke off: %w", c.RemoteAddr(), err)
	}
	token, index := parseHello(hello)
	s.mu.Lock()
	cur := s.current
	s.mu.Unlock()
	if cur == nil || cur.token != token {
		return fmt.Errorf("a data connection from %s belongs to no session", c.RemoteAddr())
	}
	select {
	case cur.data <- dataConn{c, index}:
		keep = true
		return nil
	default:
		return fmt.Errorf("more data connections from %s than it announced", c.RemoteAddr())
	}
}

// control leads one session from its config to its report.
func (s *server) control(ctx context.Context, w *wire) error {
	refuse := func(err error) error {
		return errors.Join(err, w.send(answer{Error: err.Error()}))
	}
	var cfg config
	if err := w.receive(&cfg, handshake); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return refuse(err)
	}
	if cfg.Mode == modeProfile {
		cfg.Connections = 0 // the profile has its own
	}
	if cfg.Connections > s.maxN {
		return refuse(fmt.Errorf("%d connections wanted, at most %d allowed (--max-connections)", cfg.Connections, s.maxN))
	}
	ses := &session{cfg: cfg, token: rand.Uint64(), data: make(chan dataConn, cfg.Connections)} //nolint:gosec // tells sessions apart; it is no secret
	s.mu.Lock()
	busy := s.current != nil
	if !busy {
		s.current = ses
	}
	s.mu.Unlock()
	if busy {
		return refuse(errors.New("another session is running; wait for its end or start a second server on another port"))
	}
	defer func() {
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
	}()

	r, err := s.lead(ctx, w, ses)
	if err != nil {
		return refuse(err)
	}
	s.mu.Lock()
	s.done++
	r.Session = s.done
	s.last = r
	s.mu.Unlock()
	return w.send(answer{Report: r})
}

// lead runs the session.
func (s *server) lead(ctx context.Context, w *wire, ses *session) (*report, error) {
	if ses.cfg.Mode == modeProfile {
		return s.profile(ctx, w, &ses.cfg)
	}
	raw.Threads(ses.cfg.Connections)
	socks, err := s.connect(w, ses)
	if err != nil {
		return nil, err
	}
	return s.session(ctx, w, ses, socks)
}

// connect brings the session's data connections together.
func (s *server) connect(w *wire, ses *session) (socks []*socket, err error) {
	defer func() {
		if err != nil {
			for _, k := range socks {
				if k != nil {
					k.close()
				}
			}
			socks = nil
		}
	}()
	if ses.cfg.Protocol == "udp" {
		return s.connectUDP(w, ses)
	}
	if err := w.send(answer{Token: ses.token}); err != nil {
		return nil, err
	}
	socks = make([]*socket, ses.cfg.Connections)
	late := time.After(handshake)
	for range ses.cfg.Connections {
		select {
		case d := <-ses.data:
			if d.index < 0 || d.index >= len(socks) || socks[d.index] != nil {
				_ = d.conn.Close()
				return socks, fmt.Errorf("data connection %d came twice or is not one of %d", d.index, len(socks))
			}
			if socks[d.index], err = prepareTCP(d.conn, ses.cfg.NoDelay); err != nil {
				return socks, err
			}
		case <-late:
			return socks, fmt.Errorf("the data connections did not all come within %v", handshake)
		}
	}
	return socks, w.send(answer{Token: ses.token})
}

// prepareTCP sets the options of a data connection and takes it over.
func prepareTCP(c *net.TCPConn, nodelay bool) (*socket, error) {
	if err := c.SetNoDelay(nodelay); err != nil { // package net has set it already
		return nil, fmt.Errorf("setting TCP_NODELAY=%v: %w", nodelay, err)
	}
	return take(c)
}

// connectUDP opens a socket for each connection, towards the port that the
// client named for it.
func (s *server) connectUDP(w *wire, ses *session) ([]*socket, error) {
	local, remote, err := w.addrs()
	if err != nil {
		return nil, err
	}
	if len(ses.cfg.Ports) != ses.cfg.Connections {
		return nil, fmt.Errorf("%d UDP ports named for %d connections", len(ses.cfg.Ports), ses.cfg.Connections)
	}
	var socks []*socket
	a := answer{Token: ses.token}
	family, on := "udp", &net.UDPAddr{IP: local.Addr().AsSlice()}
	if ses.cfg.Neighbours > 0 {
		family, on = "udp4", nil // all addresses
	}
	for _, p := range ses.cfg.Ports {
		if p < 1 || p > 65535 {
			return socks, fmt.Errorf("the UDP port %d is out of range", p)
		}
		c, err := net.ListenUDP(family, on)
		if err != nil {
			return socks, fmt.Errorf("opening a UDP socket: %w", err)
		}
		at, err := addrOf(c.LocalAddr())
		if err != nil {
			return socks, err
		}
		k, err := ses.cfg.udpSocket(c, netip.AddrPortFrom(remote.Addr(), uint16(p)))
		if err != nil {
			return socks, err
		}
		socks = append(socks, k)
		a.Ports = append(a.Ports, int(at.Port()))
	}
	return socks, w.send(a)
}

// session runs the threads under the client's orders.
func (s *server) session(ctx context.Context, w *wire, ses *session, socks []*socket) (*report, error) {
	cfg := &ses.cfg
	b := newBench(cfg, socks)
	defer b.close()
	for i, k := range b.workers {
		k.count = share(cfg.Count, cfg.Connections, i)
	}
	loop := answerTCP
	switch {
	case cfg.Neighbours > 0:
		loop = answerAround
	case cfg.Protocol == "udp":
		loop = answerUDP
	case cfg.Mode == "stream" && cfg.download():
		loop = sendStream
	case cfg.Mode == "stream":
		loop = receiveStream
	}
	// The control connection ends with the server or with the client; then the
	// threads must end as well.
	stop := context.AfterFunc(ctx, func() { _ = w.conn.Close() })
	defer stop()
	b.start(loop)

	begin := b.mark()
	end := begin
	for {
		var o order
		if err := w.receive(&o, cfg.limit()); err != nil {
			b.abandon()
			_ = b.join(ctx, handshake)
			return nil, fmt.Errorf("the client is gone: %w", err)
		}
		switch o.Op {
		case opBegin:
			begin = b.mark()
			b.measure.Store(true)
		case opEnd:
			if cfg.Count > 0 && cfg.Protocol == "tcp" { // the end is when everything has arrived
				if err := b.join(ctx, handshake); err != nil {
					return nil, err
				}
			}
			end = b.mark()
		case opStop:
			b.stop.Store(true)
			if cfg.Protocol == "udp" {
				b.abandon() // they wait for datagrams, which do not end
			}
			if err := b.join(ctx, handshake); err != nil {
				return nil, err
			}
			r := &report{Format: 1, Endpoint: "server", Config: *cfg}
			r.Config.Ports = nil
			r.between(begin, end, b.mark())
			return r, nil
		default:
			b.abandon()
			_ = b.join(ctx, handshake)
			return nil, fmt.Errorf("unknown order %q from the client", o.Op)
		}
	}
}

// share returns connection i's part of count operations.
func share(count int64, n, i int) int64 {
	part := count / int64(n)
	if int64(i) < count%int64(n) {
		part++
	}
	return part
}

// addrs are the two endpoints of the control connection.
func (w *wire) addrs() (local, remote netip.AddrPort, err error) {
	if local, err = addrOf(w.conn.LocalAddr()); err != nil {
		return local, remote, err
	}
	remote, err = addrOf(w.conn.RemoteAddr())
	return local, remote, err
}

func addrOf(a net.Addr) (netip.AddrPort, error) {
	var ap netip.AddrPort
	switch a := a.(type) {
	case *net.TCPAddr:
		ap = a.AddrPort()
	case *net.UDPAddr:
		ap = a.AddrPort()
	default:
		return ap, fmt.Errorf("%v is not a TCP or UDP address", a)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}
