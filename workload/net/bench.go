package netload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"tare/workload/output"
	"time"
)

// bench is one session at one end: its threads and their counters.
type bench struct {
	cfg     *config
	clock   clock
	workers []*worker
	stop    atomic.Bool
	measure atomic.Bool // the warm-up is over
	wg      sync.WaitGroup
	stalled atomic.Bool
	failed  chan struct{} // closed when the first thread has failed
	once    sync.Once
}

func newBench(cfg *config, socks []*socket) *bench {
	b := &bench{cfg: cfg, clock: clock{time.Now()}, failed: make(chan struct{})}
	for i, s := range socks {
		b.workers = append(b.workers, &worker{cfg: cfg, sock: s, index: i, clock: b.clock, stop: b.stopFlag(), measure: &b.measure})
	}
	return b
}

func (b *bench) start(loop func(*worker) error) {
	for _, w := range b.workers {
		b.wg.Go(func() {
			if w.run(loop); w.err != nil {
				b.once.Do(func() { close(b.failed) })
			}
		})
	}
}

// abandon makes every thread end soon, whatever it is blocked in.
func (b *bench) abandon() {
	b.stop.Store(true)
	for _, w := range b.workers {
		w.sock.wake()
	}
}

// join waits for the threads, and abandons them after d. Errors that this causes are reported
// as such.
func (b *bench) join(ctx context.Context, d time.Duration) error {
	done := make(chan struct{})
	go func() {
		b.wg.Wait()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var late error
	select {
	case <-done:
	case <-ctx.Done():
		late = fmt.Errorf("the connections did not end within %v: the other end hangs, or the network lost it", d)
		if errors.Is(ctx.Err(), context.Canceled) {
			late = errors.New("interrupted")
		}
		b.abandon()
		<-done
	}
	if b.stalled.Load() {
		return fmt.Errorf("no byte moved for %v: the other end hangs, or the network lost it", b.cfg.timeout())
	}
	if late != nil {
		return late
	}
	var errs []error
	for _, w := range b.workers {
		errs = append(errs, w.err)
	}
	return errors.Join(errs...)
}

func (b *bench) close() {
	for _, w := range b.workers {
		w.sock.close()
	}
}

// interval of the series, and of the watch for stalls: 20 times a second is enough to judge a
// window of a second or two, and disturbs fewer than 0.1 % of the latencies.
const interval = 50 * time.Millisecond

// watch ticks every interval until ctx ends. It records the series, and abandons the session if
// nothing moved for the timeout.
func (b *bench) watch(ctx context.Context, s *output.Points) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last, base := b.mark(), b.clock.now()
	moved := last.at
	// An open loop may pause as long as its schedule allows.
	patience := int64(b.cfg.timeout())
	if b.cfg.Rate > 0 {
		patience += int64(float64(b.cfg.Connections) / b.cfg.Rate * 1e9)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m := b.mark()
		if m.in+m.out != last.in+last.out {
			moved = m.at
		} else if m.at-moved > patience {
			b.stalled.Store(true)
			b.abandon()
			return
		}
		if s != nil && m.at > last.at {
			d := m.ops - last.ops
			if b.cfg.Mode == "stream" {
				d = m.in + m.out - last.in - last.out
			}
			s.T = append(s.T, float64(m.at-base)/1e9)
			s.V = append(s.V, float64(d)/(float64(m.at-last.at)/1e9))
		}
		last = m
	}
}

// udpSocket opens a blocking UDP socket, connected to peer if the session has no neighbours.
func (c *config) udpSocket(conn *net.UDPConn, peer netip.AddrPort) (*socket, error) {
	s, err := take(conn)
	if err != nil {
		return nil, err
	}
	if c.Neighbours > 0 {
		s.peer, s.port = peer.String(), peer.Port()
		return s, nil
	}
	if err := connectUDP(s.fd, peer); err != nil {
		s.close()
		return nil, fmt.Errorf("connecting a UDP socket to %v: %w", peer, err)
	}
	s.peer = peer.String()
	return s, nil
}

// sleep waits until d has passed, ctx ends, or a thread fails.
func (b *bench) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-b.failed:
	case <-t.C:
	}
}

// stopFlag returns the flag that the threads check between operations.
func (b *bench) stopFlag() *atomic.Bool { return &b.stop }
