package netload

import (
	"errors"
	"slices"
	"time"

	"tare/workload/inside"
	"tare/workload/output"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// profileReport is the additional part of a profile's report. Counts and windows of the report
// itself are of the measured transactions.
type profileReport struct {
	Name       string  `json:"name"`
	Strands    int     `json:"strands"`
	Iterations int64   `json:"iterations"`         // of transactions, finished in the window
	Errors     int64   `json:"errors"`             // of all transactions: failures that canfail allows
	Cut        int64   `json:"cut,omitempty"`      // iterations that hung when their time was up
	RunWindow  float64 `json:"run_window_s"`       // of all transactions, as uperf's Total
	RunBytes   int64   `json:"run_bytes"`          // read and written
	RunOps     int64   `json:"run_operations"`     // and one a strand, as uperf counts
	Received   *int64  `json:"received,omitempty"` // by the server in the measured transactions: bytes that arrived

	Transactions []transactionReport `json:"transactions,omitempty"`
	Flowops      []flowopReport      `json:"flowops,omitempty"`
}

// transactionReport is of one transaction of all groups, by number from 1.
type transactionReport struct {
	N          int     `json:"n"`
	Measured   bool    `json:"measured,omitempty"`
	Window     float64 `json:"window_s"`
	Bytes      int64   `json:"bytes"`
	Operations int64   `json:"operations"`
	Iterations int64   `json:"iterations"`
}

// flowopReport is of all flowops of one type in the measured transactions.
type flowopReport struct {
	Op      string `json:"op"`
	Latency string `json:"latency_histogram"`
}

// score adds up the rounds.
type score struct {
	r         *profileRun
	total     profileReport
	out       report
	latency   *hdrhistogram.Histogram
	first     int64 // clock at the begin of round 0
	in0, out0 int64 // at the begin of the round
	ops0      int64
	user0     time.Duration
	system0   time.Duration
	window    int64 // nanoseconds
}

func newScore(r *profileRun) *score {
	sc := &score{r: r, latency: newHistogram()}
	sc.total.Name, sc.total.Strands = r.prog.Name, len(r.strands)
	return sc
}

func (sc *score) begin(n int, now int64) {
	if n == 0 {
		sc.first = now
	}
	sc.in0 = sc.r.sum(func(s *strand) int64 { return s.in.Load() })
	sc.out0 = sc.r.sum(func(s *strand) int64 { return s.out.Load() })
	sc.ops0 = sc.r.sum(func(s *strand) int64 { return s.ops.Load() })
	sc.user0, sc.system0 = inside.CPU()
}

// end closes round n: when the strands of the master have ended; at the peer, when the master
// reports that.
func (sc *score) end(n int, begin int64) {
	r := sc.r
	end := int64(0)
	t := transactionReport{N: n + 1, Measured: r.prog.measured[n]}
	for _, s := range r.strands {
		if n >= len(s.tasks) {
			continue
		}
		if s.master {
			end = max(end, s.finished, s.deadline) // the strand does not change them before its next job
		}
		t.Iterations += s.iterations.Load()
	}
	if end <= begin {
		end = max(begin+1, r.clock.now())
	}
	t.Window = time.Duration(end - begin).Seconds()
	t.Bytes = r.sum(bytesOf) - sc.in0 - sc.out0
	t.Operations = r.sum(func(s *strand) int64 { return s.ops.Load() }) - sc.ops0
	sc.total.Transactions = append(sc.total.Transactions, t)
	sc.total.RunWindow = time.Duration(end - sc.first).Seconds()
	sc.total.RunBytes += t.Bytes
	sc.total.RunOps += t.Operations
	if !t.Measured {
		return
	}
	user, system := inside.CPU()
	sc.out.User += (user - sc.user0).Seconds()
	sc.out.System += (system - sc.system0).Seconds()
	sc.window += end - begin
	sc.out.Bytes += t.Bytes
	sc.out.Operations += t.Operations
	sc.total.Iterations += t.Iterations
}

// arrived counts what the peer has read in round n, when its strands are idle. In a transaction
// by iterations that includes what was in flight when the master had ended.
func (sc *score) arrived(n int) {
	if !sc.r.prog.measured[n] {
		return
	}
	if sc.total.Received == nil {
		sc.total.Received = new(int64)
	}
	*sc.total.Received += sc.r.sum(func(s *strand) int64 { return s.in.Load() }) - sc.in0
}

// report makes the report; peer is the server's, at the client.
func (sc *score) report(peer *report) (*report, error) {
	r := sc.r
	out := &sc.out
	out.Format, out.Endpoint, out.Session, out.Config, out.Profile = 1, "server", 1, *r.cfg, &sc.total
	out.Config.Listen, out.Config.Profile = nil, r.prog.Name
	out.Window = time.Duration(sc.window).Seconds()
	out.TotalSent = r.sum(func(s *strand) int64 { return s.out.Load() })
	out.TotalReceived = r.sum(func(s *strand) int64 { return s.in.Load() })
	out.TotalOperations = r.sum(func(s *strand) int64 { return s.ops.Load() })
	out.Lost = r.sum(func(s *strand) int64 { return s.lost.Load() })
	out.Unsent = r.sum(func(s *strand) int64 { return s.unsent })
	sc.total.RunOps += int64(len(r.strands))
	sc.total.Errors = r.sum(func(s *strand) int64 { return s.errors.Load() })
	sc.total.Cut = r.sum(func(s *strand) int64 { return s.cut })
	sc.complain()
	if peer == nil {
		return out, nil
	}
	out.Endpoint, out.Peer, out.Series = "client", peer, r.series
	for _, n := range r.prog.notes {
		out.warn("net-profile-note", "%s", n)
	}
	sc.compare(peer)
	return out, sc.latencies()
}

// complain turns problems into warnings.
func (sc *score) complain() {
	out := &sc.out
	if n := sc.total.Errors; n > 0 {
		i := slices.IndexFunc(sc.r.strands, func(s *strand) bool { return s.firstError != "" })
		out.warn("net-errors", "%d operations failed, which canfail allows; the first of one strand: %s", n, sc.r.strands[i].firstError)
	}
	if out.Lost > 0 {
		out.warn("net-udp-lost", "%d datagrams that the other end sent did not arrive", out.Lost)
	}
	if out.Unsent > 0 {
		out.warn("net-overload", "the rate was not reached: %d iterations had not started at the end and count with the time they had waited", out.Unsent)
	}
	if sc.total.Cut > 0 {
		out.warn("net-cut", "%d iterations hung when their transaction's time was up, and count with the time they had lasted", sc.total.Cut)
	}
}

// compare compares the ends' totals, if nothing may be lost.
func (sc *score) compare(peer *report) {
	out := &sc.out
	if sc.r.prog.datagrams() {
		if lost := out.TotalSent - peer.TotalReceived; lost > 0 && peer.Lost == 0 {
			out.warn("net-udp-lost", "%d of %d bytes that the client sent by UDP were not read by the server", lost, out.TotalSent)
		}
		return
	}
	if sc.total.Errors > 0 || peer.Profile == nil || peer.Profile.Errors > 0 {
		return
	}
	if out.TotalSent != peer.TotalReceived || out.TotalReceived != peer.TotalSent {
		out.warn("net-ends-differ", "the client sent %d bytes and received %d, the server received %d and sent %d: do not trust this trial",
			out.TotalSent, out.TotalReceived, peer.TotalReceived, peer.TotalSent)
	}
}

// latencies encodes the histograms.
func (sc *score) latencies() error {
	for _, s := range sc.r.strands {
		sc.latency.Merge(s.hist)
	}
	if sc.total.Iterations == 0 {
		return errors.New("no iteration of a measured transaction ended in its time; let it take longer, or look for a stalled server")
	}
	var err error
	if sc.out.Latency, err = output.Encode(sc.latency); err != nil {
		return err
	}
	for _, op := range sc.r.prog.ops {
		h := newHistogram()
		for _, s := range sc.r.strands {
			h.Merge(s.byOp[op])
		}
		if h.TotalCount() == 0 {
			continue
		}
		text, err := output.Encode(h)
		if err != nil {
			return err
		}
		sc.total.Flowops = append(sc.total.Flowops, flowopReport{string(op), text})
	}
	return nil
}
