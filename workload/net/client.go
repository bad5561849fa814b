package netload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/record"
	"tare/workload/inside"
	"tare/workload/inside/raw"
	"tare/workload/output"
)

// client runs one session against the server at addr and returns the report.
func client(ctx context.Context, cfg config, host string, port int) (*report, error) {
	raw.Threads(cfg.Connections)
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	dialer := net.Dialer{Timeout: min(handshake, cfg.timeout())}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("no server at %s: %w", addr, err)
	}
	defer func() { _ = c.Close() }()
	w := newWire(c, nil)
	if cfg.Mode == modeProfile {
		return profileClient(ctx, w, cfg)
	}
	socks, err := connectAll(ctx, w, &cfg, addr)
	if err != nil {
		return nil, err
	}
	b := newBench(&cfg, socks)
	defer b.close()
	return b.drive(ctx, w)
}

func connectAll(ctx context.Context, w *wire, cfg *config, addr string) (socks []*socket, err error) {
	defer func() {
		if err != nil {
			for _, k := range socks {
				k.close()
			}
		}
	}()
	if cfg.Protocol == "udp" {
		return connectUDPs(w, cfg)
	}
	if err := w.send(cfg); err != nil {
		return nil, err
	}
	a, err := w.reply(handshake)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: min(handshake, cfg.timeout())}
	for i := range cfg.Connections {
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return socks, fmt.Errorf("data connection %d: %w", i, err)
		}
		k, err := prepareTCP(c.(*net.TCPConn), cfg.NoDelay)
		if err != nil {
			return socks, fmt.Errorf("data connection %d: %w", i, err)
		}
		socks = append(socks, k)
		if e := writeAll(k.fd, hello(a.Token, i)); e != 0 {
			return socks, fmt.Errorf("data connection %d: greeting the server: %w", i, e)
		}
	}
	_, err = w.reply(2 * handshake)
	return socks, err
}

func connectUDPs(w *wire, cfg *config) (socks []*socket, err error) {
	local, remote, err := w.addrs()
	if err != nil {
		return nil, err
	}
	var open []*net.UDPConn
	defer func() {
		for _, c := range open[len(socks):] {
			_ = c.Close()
		}
	}()
	for range cfg.Connections {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: local.Addr().AsSlice()})
		if err != nil {
			return nil, fmt.Errorf("opening a UDP socket: %w", err)
		}
		open = append(open, c)
		at, err := addrOf(c.LocalAddr())
		if err != nil {
			return nil, err
		}
		cfg.Ports = append(cfg.Ports, int(at.Port()))
	}
	if err := w.send(cfg); err != nil {
		return nil, err
	}
	a, err := w.reply(handshake)
	if err != nil {
		return nil, err
	}
	if len(a.Ports) != cfg.Connections {
		return nil, fmt.Errorf("the server opened %d UDP sockets for %d connections", len(a.Ports), cfg.Connections)
	}
	for i, p := range a.Ports {
		if p < 1 || p > 65535 {
			return socks, fmt.Errorf("the server named %d as a UDP port", p)
		}
		k, err := cfg.udpSocket(open[i], netip.AddrPortFrom(remote.Addr(), uint16(p)))
		if err != nil {
			return socks, err
		}
		socks = append(socks, k)
		tv := unix.NsecToTimeval(int64(udpRetry))
		if err := unix.SetsockoptTimeval(k.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return socks, fmt.Errorf("setting SO_RCVTIMEO, without which a lost datagram would hang: %w", err)
		}
		if cfg.Neighbours > 0 {
			// So the kernel says that it dropped a request because its ARP table is full: ENOBUFS, which UDP
			// does not report otherwise (udp(7), ip(7)).
			if err := unix.SetsockoptInt(k.fd, unix.SOL_IP, unix.IP_RECVERR, 1); err != nil {
				return socks, fmt.Errorf("setting IP_RECVERR, without which a full ARP table would not show: %w", err)
			}
		}
	}
	return socks, nil
}

// drive runs warm-up, window and end of a session whose connections stand.
func (b *bench) drive(ctx context.Context, w *wire) (*report, error) {
	cfg := b.cfg
	r := &report{Format: 1, Endpoint: "client", Config: *cfg, Session: 1, Series: &output.Points{}}
	r.Config.Ports = nil
	start := b.clock.now() + int64(time.Millisecond) // all threads run by then
	begin := start + int64(seconds(cfg.Warmup))
	loop := b.plan(start, begin)
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	b.start(loop)
	var watcher sync.WaitGroup
	watcher.Go(func() { b.watch(watching, r.Series) })

	b.sleep(ctx, time.Duration(begin-b.clock.now()))
	from := b.mark()
	b.measure.Store(true)
	err := w.send(order{Op: opBegin})
	var to mark
	if err == nil {
		to, err = b.window(ctx, w, begin)
	}
	unwatch()
	watcher.Wait() // from here on, only the report uses the series
	if err != nil {
		b.abandon()
		return nil, errors.Join(err, b.join(ctx, handshake))
	}
	a, err := w.reply(2 * handshake)
	if err != nil {
		return nil, err
	}
	if a.Report == nil {
		return nil, errors.New("the server ended the session without a report")
	}
	r.between(from, to, b.mark())
	r.Peer = a.Report
	if cfg.Mode == "rr" {
		if err := b.latency(r, begin); err != nil {
			return nil, err
		}
	}
	r.compare(a.Report)
	return r, nil
}

// plan gives each thread its part and returns the loop.
func (b *bench) plan(start, begin int64) func(*worker) error {
	cfg := b.cfg
	for i, k := range b.workers {
		k.start, k.begin = start, begin
		k.count = share(cfg.Count, cfg.Connections, i)
		if cfg.Count == 0 {
			k.end = begin + int64(seconds(cfg.Duration))
			k.ordered = true
		}
		if cfg.Rate > 0 {
			// Connections take turns, evenly spaced.
			k.period = int64(float64(cfg.Connections) / cfg.Rate * 1e9)
			k.phase = k.period * int64(i) / int64(cfg.Connections)
			k.wake = newHistogram()
			k.spin = raw.Spin(seconds(cfg.Spin), cfg.Rate)
		}
		if cfg.Mode == "rr" {
			k.hist = newHistogram()
		}
	}
	switch {
	case cfg.Protocol == "udp":
		return askUDP
	case cfg.Mode == "rr":
		return askTCP
	case cfg.download():
		return receiveStream
	}
	return sendStream
}

// window waits for the end of measuring and brings both ends to a stop.
func (b *bench) window(ctx context.Context, w *wire, begin int64) (to mark, err error) {
	cfg := b.cfg
	if cfg.Count == 0 {
		b.sleep(ctx, time.Duration(begin+int64(seconds(cfg.Duration))-b.clock.now()))
	} else if err := b.join(ctx, cfg.limit()); err != nil {
		return to, err
	}
	if ctx.Err() != nil {
		return to, errors.New("interrupted")
	}
	to = b.mark()
	if err := w.send(order{Op: opEnd}); err != nil {
		return to, err
	}
	if cfg.Mode == "stream" && cfg.download() { // the server must stop first
		b.stop.Store(true)
		if err := w.send(order{Op: opStop}); err != nil {
			return to, err
		}
		return to, b.join(ctx, handshake+cfg.timeout())
	}
	if cfg.Mode == "stream" {
		b.stop.Store(true) // request and response end by their own clocks
	}
	if err := b.join(ctx, handshake+cfg.timeout()); err != nil {
		return to, err
	}
	for _, k := range b.workers {
		if cfg.Protocol == "tcp" && cfg.Mode == "rr" {
			_ = unix.Shutdown(k.sock.fd, unix.SHUT_WR)
		}
	}
	return to, w.send(order{Op: opStop})
}

// busyThreads is the share of a connection's time from which on its own thread is what is slow, and not the wait for replies.
const busyThreads = 0.5

// latency merges the threads' histograms, and takes the window from their clocks.
func (b *bench) latency(r *report, begin int64) error {
	all, wake := newHistogram(), newHistogram()
	finished := begin
	var busy, lasted time.Duration
	for _, k := range b.workers {
		all.Merge(k.hist)
		finished = max(finished, k.finished)
		r.Lost += k.lost
		r.NoRoom += k.noRoom
		r.Stale += k.stale
		r.Unsent += k.unsent
		busy, lasted = busy+k.busy, lasted+k.lasted
		if k.wake != nil {
			wake.Merge(k.wake)
		}
	}
	if r.Config.Rate == 0 {
		// An overloaded open loop finishes operations in the window that were due before it, so
		// it uses the counters between the marks.
		r.Operations = all.TotalCount()
		r.Bytes = r.Operations * int64(r.Config.Size+r.Config.replySize())
		r.Window = r.Config.Duration
		if r.Config.Count > 0 {
			r.Window = time.Duration(finished - begin).Seconds()
		}
	}
	if all.TotalCount() == 0 {
		return errors.New("no operation ended in the measured time; measure for longer, or look for a stalled server")
	}
	var err error
	if r.Latency, err = output.Encode(all); err != nil {
		return err
	}
	if wake.TotalCount() > 0 {
		r.WakeDelay = wake.Mean() / 1e9
		r.WakeDelayP99 = float64(wake.ValueAtQuantile(99)) / 1e9
	}
	if r.Config.Rate > 0 {
		r.Due = all.TotalCount() // sent or not
		p := inside.Pace{Due: r.Due, Unsent: r.Unsent, Busy: busy.Seconds() / max(lasted.Seconds(), 1e-9), Full: busyThreads,
			Waits: wake.TotalCount(), Wake: r.WakeDelayP99, Latency: float64(all.ValueAtPercentile(99)) * 1e-9}
		if late := p.Late(); late != "" {
			r.warn(record.GeneratorLate, "%s", late)
		}
	}
	if r.NoRoom > 0 {
		r.warn("net-arp-full", "the ARP table of the client's kernel was full, so %d requests to new neighbours were dropped; raise its limit (net.ipv4.neigh.default.gc_thresh3, the factor arp-limit)", r.NoRoom)
	}
	if r.Lost > 0 {
		r.warn("net-udp-lost", "%d requests got no reply within %v and were sent again; their latency includes the wait", r.Lost, udpRetry)
	}
	if r.Unsent > 0 {
		r.warn("net-overload", "the rate of %g/s was not reached: %d operations of the window had not started at its end and count with the time they had waited",
			r.Config.Rate, r.Unsent)
	}
	return nil
}
