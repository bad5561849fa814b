package netload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/workload/inside/raw"
	"tare/workload/output"
)

// profileClient runs the master's end over a control connection.
func profileClient(ctx context.Context, w *wire, cfg config) (*report, error) {
	prog, err := newProgram(cfg.Profile, cfg.Vars)
	if err != nil {
		return nil, err
	}
	local, remote, err := w.addrs()
	if err != nil {
		return nil, err
	}
	raw.Threads(len(prog.strands))
	r, ports, err := newProfileRun(&cfg, prog, true, local, remote)
	if err != nil {
		return nil, err
	}
	defer r.close()
	cfg.Listen = ports
	if err := w.send(cfg); err != nil {
		return nil, err
	}
	a, err := w.reply(2 * handshake)
	if err != nil {
		return nil, err
	}
	if err := r.connectTo(a.Listen); err != nil {
		return nil, err
	}
	r.series = &output.Points{}
	r.spin = raw.Spin(seconds(cfg.Spin), max(1, prog.rateInAll()))
	return r.drive(ctx, w)
}

// connectTo sets the peer's ports.
func (r *profileRun) connectTo(ports []listening) error {
	if len(ports) != len(r.strands) {
		return fmt.Errorf("the other end listens for %d strands; this end has %d", len(ports), len(r.strands))
	}
	for i, p := range ports {
		if p.TCP < 0 || p.TCP > 65535 || p.UDP < 0 || p.UDP > 65535 {
			return fmt.Errorf("the other end named %d and %d as ports", p.TCP, p.UDP)
		}
		r.strands[i].ports = p
	}
	return nil
}

// drive leads the rounds.
func (r *profileRun) drive(ctx context.Context, w *wire) (*report, error) {
	answers, broken := make(chan answer, 1), make(chan error, 1)
	go func() {
		for {
			a, err := w.reply(2 * maxTime)
			if err != nil {
				broken <- err
				return
			}
			answers <- a
			if a.Report != nil {
				return // only the end of the connection follows
			}
		}
	}()
	sc := newScore(r)
	for n := range r.prog.rounds {
		if err := r.round(ctx, w, n, sc, answers, broken); err != nil {
			// The server may have a more exact error.
			select {
			case told := <-broken:
				return nil, errors.Join(err, told)
			case <-time.After(handshake / 20):
				return nil, err
			}
		}
	}
	if err := w.send(order{Op: opStop}); err != nil {
		return nil, err
	}
	select {
	case a := <-answers:
		if a.Report == nil {
			return nil, errors.New("the server ended the session without a report")
		}
		return sc.report(a.Report)
	case err := <-broken:
		return nil, err
	case <-time.After(2 * handshake):
		return nil, errors.New("the server did not report at the end")
	case <-ctx.Done():
		return nil, errors.New("interrupted")
	}
}

// round runs transaction n of all groups.
func (r *profileRun) round(ctx context.Context, w *wire, n int, sc *score, answers <-chan answer, broken <-chan error) error {
	if err := w.send(order{Op: opTransaction, N: n}); err != nil {
		return err
	}
	begin := r.clock.now()
	sc.begin(n, begin)
	r.point, r.level = begin, r.followed()
	watch := r.watchdog(r.prog.measured[n])
	if err := r.collect(ctx, r.begin(n, begin), maxTime, broken, watch); err != nil {
		return err
	}
	sc.end(n, begin)
	if err := w.send(order{Op: opFinish, N: n, Strands: r.tallies()}); err != nil {
		return err
	}
	select {
	case a := <-answers:
		k, err := r.settle(n, a.Strands)
		if err != nil {
			return err
		}
		return r.collect(ctx, k, 2*handshake, broken, idle)
	case err := <-broken:
		return err
	case <-ctx.Done():
		return errors.New("interrupted")
	case <-time.After(2*handshake + r.cfg.timeout() + 2*r.patience):
		return errors.New("the server's strands do not end their transaction")
	}
}

// followed returns the counter that the series follows.
func (r *profileRun) followed() int64 {
	if r.prog.oneWay() {
		return r.sum(bytesOf)
	}
	return r.sum(func(s *strand) int64 { return s.iterations.Load() })
}

// watchdog records the series, and ends the session if nothing moves.
func (r *profileRun) watchdog(measured bool) func() error {
	last, moved := int64(-1), r.clock.now()
	return func() error {
		now := r.clock.now()
		if m := r.sum(bytesOf) + r.sum(func(s *strand) int64 { return s.ops.Load() + s.errors.Load() }); m != last {
			last, moved = m, now
		} else if now-moved > int64(r.cfg.timeout()+r.patience) {
			return fmt.Errorf("nothing moved for %v: the other end hangs, or the network lost it", r.cfg.timeout())
		}
		if measured && now > r.point {
			level := r.followed()
			r.series.T = append(r.series.T, float64(now)/1e9)
			r.series.V = append(r.series.V, float64(max(0, level-r.level))/(float64(now-r.point)/1e9))
			r.point, r.level = now, level
		}
		return nil
	}
}
