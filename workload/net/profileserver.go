package netload

import (
	"context"
	"errors"
	"fmt"

	"tare/workload/inside/raw"
)

// profile runs the peer's end of a profile under the client's orders.
func (s *server) profile(ctx context.Context, w *wire, cfg *config) (*report, error) {
	prog, err := newProgram(cfg.Profile, cfg.Vars)
	if err != nil {
		return nil, err
	}
	if n := len(prog.strands); s.maxN < maxConnections && n > s.maxN {
		return nil, fmt.Errorf("%d strands wanted, at most %d allowed (--max-connections)", n, s.maxN)
	}
	local, remote, err := w.addrs()
	if err != nil {
		return nil, err
	}
	raw.Threads(len(prog.strands))
	r, ports, err := newProfileRun(cfg, prog, false, local, remote)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.connectTo(cfg.Listen); err != nil {
		return nil, err
	}
	if err := w.send(answer{Listen: ports}); err != nil {
		return nil, err
	}
	// The control connection ends with this session, and the reader with it.
	orders, broken := make(chan order), make(chan error, 1)
	left, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		for {
			var o order
			if err := w.receive(&o, cfg.limit()); err != nil {
				broken <- fmt.Errorf("the client is gone: %w", err)
				return
			}
			select {
			case orders <- o:
			case <-left.Done():
				return
			}
		}
	}()
	return r.follow(ctx, w, orders, broken)
}

// follow does what the client orders until it says stop.
func (r *profileRun) follow(ctx context.Context, w *wire, orders <-chan order, broken <-chan error) (*report, error) {
	sc := newScore(r)
	busy, begin, round := 0, int64(0), -1
	for {
		select {
		case err := <-r.results:
			if err != nil {
				return nil, err
			}
			busy--
		case err := <-broken:
			return nil, err
		case <-ctx.Done():
			return nil, errors.New("the server is being ended")
		case o := <-orders:
			switch {
			case o.Op == opTransaction && o.N == round+1 && o.N < r.prog.rounds && busy == 0:
				round, begin = o.N, r.clock.now()
				sc.begin(round, begin)
				busy = r.begin(round, begin)
			case o.Op == opFinish && o.N == round && round >= 0 && len(o.Strands) == len(r.strands):
				sc.end(round, begin)
				if err := r.finish(ctx, o, busy, broken); err != nil {
					return nil, err
				}
				busy = 0
				sc.arrived(round)
				if err := w.send(answer{Strands: r.tallies()}); err != nil {
					return nil, err
				}
			case o.Op == opStop && busy == 0:
				return sc.report(nil)
			default:
				return nil, fmt.Errorf("unexpected order %q %d from the client", o.Op, o.N)
			}
		}
	}
}

// finish lets the strands end the round as the master has, and reads what the master sent.
func (r *profileRun) finish(ctx context.Context, o order, busy int, broken <-chan error) error {
	for i, s := range r.strands {
		s.want.Store(o.Strands[i].Iterations)
		s.ending.Store(true)
	}
	within := handshake + r.cfg.timeout() + 2*r.patience
	if err := r.collect(ctx, busy, within, broken, idle); err != nil {
		return err
	}
	n, err := r.settle(o.N, o.Strands)
	if err != nil {
		return err
	}
	return r.collect(ctx, n, within, broken, idle)
}
