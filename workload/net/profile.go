package netload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"tare/workload/net/uperf"
)

// A session of a profile. The control connection leads it, round by round:
//
//	client: config with the profile, the strands' ports     server: answer with its ports
//	client: transaction n; both ends' strands run           server: nothing, or an error
//	client: finish n, with what its strands did and sent    server: what its strands sent
//	client: stop                                            server: report
//
// The master's strands decide when a transaction ends; the peer's follow them, and
// learn by "finish" that nothing more will come (see strand.ended, strand.settle).

const (
	opTransaction = "transaction"
	opFinish      = "finish"
)

// tally is what a strand did in a round: the iterations, and the bytes sent on each of its
// connections since it was opened.
type tally struct {
	Iterations int64   `json:"i"`
	Sent       []int64 `json:"s,omitempty"`
}

// profileRun is a session's strands at one end.
type profileRun struct {
	cfg      *config
	prog     *program
	clock    clock
	strands  []*strand
	jobs     []chan func() error // by strand
	results  chan error
	wg       sync.WaitGroup
	stop     atomic.Bool
	spin     int64 // of paced transactions: the end of each wait, nanoseconds
	patience time.Duration

	series *series // at the client
	point  int64   // clock of the last point
	level  int64   // of what the series follows, then
}

// newProfileRun makes the strands and opens their listening sockets.
func newProfileRun(cfg *config, prog *program, master bool, local, peer netip.AddrPort) (*profileRun, []listening, error) {
	r := &profileRun{cfg: cfg, prog: prog, clock: clock{time.Now()}, results: make(chan error, len(prog.strands)), patience: prog.patience()}
	digits := digits
	if len(prog.strands)*(len(prog.ops)+1) > 256 {
		digits = 2 // a histogram of 3 digits has 220 KB, of 2 digits 30 KB
	}
	here, there := rawAddrOf(local), rawAddrOf(peer)
	var ports []listening
	of, nth := map[int]int{}, map[int]int{}
	for _, g := range prog.strands {
		of[g]++
	}
	for i, g := range prog.strands {
		s := &strand{run: r, index: i, group: g, of: of[g], nth: nth[g], master: master, tasks: tasks(&prog.Groups[g], master),
			clock: r.clock, peer: there, tcp: -1, udp: -1, rand: rand.New(rand.NewPCG(uint64(i), 1))} //nolint:gosec // sizes of messages
		nth[g]++
		s.buf = make([]byte, bufferOf(s.tasks, len(prog.strands)))
		if master {
			s.hist = hdrhistogram.New(1, histogramMax, digits)
			s.byOp = map[uperf.Op]*hdrhistogram.Histogram{}
			for _, op := range prog.ops {
				s.byOp[op] = hdrhistogram.New(1, histogramMax, digits)
			}
		}
		r.strands = append(r.strands, s)
		l, o := s.listen(here)
		if o != done {
			r.close()
			return nil, nil, s.err()
		}
		ports = append(ports, l)
	}
	for _, s := range r.strands {
		jobs := make(chan func() error, 1)
		r.jobs = append(r.jobs, jobs)
		r.wg.Go(func() {
			s.pin()
			for job := range jobs {
				r.results <- job()
			}
		})
	}
	return r, ports, nil
}

// bufferOf is the size of a strand's buffer.
func bufferOf(ts []*task, strands int) int64 {
	most := int64(64)
	for _, t := range ts {
		for i := range t.steps {
			if st := &t.steps[i]; st.op == uperf.Accept || st.op == uperf.Connect {
				if st.Protocol == uperf.UDP {
					most = max(most, maxDatagram+1)
				}
			} else {
				most = max(most, st.size)
			}
		}
	}
	return min(most, maxBuffer, max(128<<10, maxBuffers/int64(strands)))
}

// close ends the strands and what they hold. It takes as long as a strand may be
// blocked: a tick, or a connect's timeout.
func (r *profileRun) close() {
	r.stop.Store(true)
	for _, j := range r.jobs {
		close(j)
	}
	r.wg.Wait()
	for _, s := range r.strands {
		s.close()
	}
}

// begin starts round n and returns how many strands take part.
func (r *profileRun) begin(n int, begin int64) int {
	count := 0
	for i, s := range r.strands {
		if n >= len(s.tasks) {
			continue
		}
		s.ending.Store(false)
		s.task = s.tasks[n]
		r.jobs[i] <- func() error { return s.work(s.tasks[n], begin, r.prog.measured[n]) }
		count++
	}
	return count
}

// settle brings the streams to the same place, after round n.
func (r *profileRun) settle(n int, peer []tally) (int, error) {
	if len(peer) != len(r.strands) {
		return 0, fmt.Errorf("the other end told of %d strands, there are %d", len(peer), len(r.strands))
	}
	count := 0
	for i, s := range r.strands {
		if n < len(s.tasks) {
			sent := peer[i].Sent
			r.jobs[i] <- func() error { return s.settle(sent) }
			count++
		}
	}
	return count, nil
}

// tallies are what the strands did in round n, when they rest.
func (r *profileRun) tallies() []tally {
	out := make([]tally, len(r.strands))
	for i, s := range r.strands {
		out[i] = tally{s.iterations.Load(), s.counts()}
	}
	return out
}

// collect waits for n strands to do their jobs. fail brings what else ends the
// session; tick is called every interval.
func (r *profileRun) collect(ctx context.Context, n int, within time.Duration, fail <-chan error, watch func() error) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	until := time.Now().Add(within)
	for n > 0 {
		select {
		case err := <-r.results:
			if err != nil {
				return err
			}
			n--
		case err := <-fail:
			return err
		case <-ctx.Done():
			return errors.New("interrupted")
		case now := <-t.C:
			if now.After(until) {
				return fmt.Errorf("%d strands did not end within %v: the other end hangs, or the network lost it", n, within)
			}
			if err := watch(); err != nil {
				return err
			}
		}
	}
	return nil
}

func idle() error { return nil }

// sum adds up a counter of all strands.
func (r *profileRun) sum(of func(*strand) int64) int64 {
	var n int64
	for _, s := range r.strands {
		n += of(s)
	}
	return n
}

func bytesOf(s *strand) int64 { return s.in.Load() + s.out.Load() }

// drainListeners throws away connections that came after the last accept: the
// connecting end may have been one iteration ahead.
func (s *strand) drainListeners() {
	for s.tcp >= 0 {
		ready, e := rawPoll(s.tcp, unix.POLLIN, 0)
		if !ready || e != 0 {
			break
		}
		fd, e := rawAccept(s.tcp)
		if e != 0 {
			break
		}
		rawClose(fd)
	}
	for s.udp >= 0 {
		if _, e := rawRecv(s.udp, s.buf, unix.MSG_DONTWAIT); e != 0 {
			break
		}
	}
}

// profileClient runs the master's end over a control connection.
func profileClient(ctx context.Context, w *wire, cfg config) (*report, error) {
	prog, err := newProgram(cfg.Profile, cfg.Vars)
	if err != nil {
		return nil, err
	}
	local, err := addrOf(w.conn.LocalAddr())
	if err != nil {
		return nil, err
	}
	remote, err := addrOf(w.conn.RemoteAddr())
	if err != nil {
		return nil, err
	}
	tune(len(prog.strands))
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
	r.series = &series{}
	r.spin = int64(min(cfg.Spin, spinShare/max(1, prog.rateInAll())) * 1e9)
	return r.drive(ctx, w)
}

// connectTo takes the peer's ports.
func (r *profileRun) connectTo(ports []listening) error {
	if len(ports) != len(r.strands) {
		return fmt.Errorf("the other end listens for %d strands, there are %d", len(ports), len(r.strands))
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
				return // what follows is the end of the connection
			}
		}
	}()
	sc := newScore(r)
	for n := range r.prog.rounds {
		if err := r.round(ctx, w, n, sc, answers, broken); err != nil {
			// The server may know better what happened.
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

// followed is the counter that the series follows.
func (r *profileRun) followed() int64 {
	if r.prog.oneWay() {
		return r.sum(bytesOf)
	}
	return r.sum(func(s *strand) int64 { return s.iterations.Load() })
}

// watchdog takes the series and ends the session when nothing moves.
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
