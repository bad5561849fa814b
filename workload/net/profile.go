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

	"tare/workload/inside/raw"
	"tare/workload/net/uperf"
	"tare/workload/output"
)

// A session of a profile. The control connection leads it, round by round:
//
//	client: config with the profile, the strands' ports     server: answer with its ports
//	client: transaction n; both ends' strands run           server: nothing, or an error
//	client: finish n, with what its strands did and sent    server: what its strands sent
//	client: stop                                            server: report
//
// The master's strands decide when a transaction ends. The peer's follow them, and "finish"
// tells them that nothing more will come (see strand.ended, strand.settle).

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

	series *output.Points // at the client
	point  int64          // clock of the last point
	level  int64          // of the followed counter at point
}

// newProfileRun makes the strands and opens their listening sockets.
func newProfileRun(cfg *config, prog *program, master bool, local, peer netip.AddrPort) (*profileRun, []listening, error) {
	r := &profileRun{cfg: cfg, prog: prog, clock: clock{time.Now()}, results: make(chan error, len(prog.strands)), patience: prog.patience()}
	digits := digits
	if len(prog.strands)*(len(prog.ops)+1) > 256 {
		digits = 2 // a histogram of 3 digits has 220 KB, of 2 digits 30 KB
	}
	here, there := raw.AddrOf(local), raw.AddrOf(peer)
	var ports []listening
	of, nth := map[int]int{}, map[int]int{}
	work := make([][]*task, len(prog.Groups)) // nothing changes it, so strands share it
	for i := range prog.Groups {
		work[i] = tasks(&prog.Groups[i], master)
	}
	for _, g := range prog.strands {
		of[g]++
	}
	for i, g := range prog.strands {
		s := &strand{run: r, index: i, group: g, of: of[g], nth: nth[g], master: master, tasks: work[g],
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
	for range r.strands {
		jobs := make(chan func() error, 1)
		r.jobs = append(r.jobs, jobs)
		r.wg.Go(func() {
			raw.Pin()
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

// settle brings the streams to the same position, after round n.
func (r *profileRun) settle(n int, peer []tally) (int, error) {
	if len(peer) != len(r.strands) {
		return 0, fmt.Errorf("the other end reported %d strands; this end has %d", len(peer), len(r.strands))
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

// tallies returns what the strands did in round n, when they are idle.
func (r *profileRun) tallies() []tally {
	out := make([]tally, len(r.strands))
	for i, s := range r.strands {
		out[i] = tally{s.iterations.Load(), s.counts()}
	}
	return out
}

// collect waits for n strands to do their jobs. fail gets other errors that end the session.
// watch is called every interval.
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
