package httpload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/record"
	"tare/workload/inside"
	"tare/workload/inside/raw"
	"tare/workload/output"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// open is one load by this program itself: at a rate, or in a closed loop.
type open struct {
	target      target
	connections int
	rate        float64 // 0: closed loop
	warmup      time.Duration
	duration    time.Duration
	keepAlive   bool
	resume      bool // TLS sessions
	handshakes  handshakes

	requests []request
	places   []place
	start    time.Time // when the first request was due
	until    int64     // when the last may be sent, nanoseconds
	total    uint64    // requests of the open loop
}

// step is the length of the intervals of the series.
const step = 100 * time.Millisecond

// perLane is a rate that one lane reaches in any sandbox. A rate below it has one lane, so that each request may go over any connection.
const perLane = 20000

// lanes is how many threads load.
func (o *open) lanes() int {
	n := min(o.connections, runtime.NumCPU(), runtime.GOMAXPROCS(0))
	if o.rate > 0 {
		n = min(n, 1+int(o.rate/perLane))
	}
	return n
}

// run sends the requests of warm-up and window without a pause, and keeps those of the window. It ends at a broken answer. One with a
// wrong status is only counted: the share tells more than the first.
func (o *open) run(ctx context.Context) (*report, error) {
	if o.connections < 1 || !(o.rate >= 0) || o.rate > maxRate {
		return nil, fmt.Errorf("%w: --connections must be over 0, --rate not negative and at most %g", inside.ErrUsage, float64(maxRate))
	}
	answer, peers, err := o.target.exchanges()
	if err != nil {
		return nil, err
	}
	o.requests, o.places = o.target.plan(peers)
	if o.rate == 0 && o.connections < len(o.places) {
		return nil, fmt.Errorf("%w: --connections %d must be at least %d, one for each name of https and one for http", inside.ErrUsage, o.connections, len(o.places))
	}
	all := o.warmup + o.duration
	o.until, o.total = int64(all), uint64(math.Ceil(o.rate*all.Seconds()))
	if o.target.tls == nil {
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // lanes
	}
	t, cpu, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	return t.report(answer, cpu)
}

// load runs the lanes.
func (o *open) load(outer context.Context) (all *tally, cpu cpuTime, err error) {
	lanes := o.lanes()
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	raw.Threads(lanes)
	var stop atomic.Bool
	var running []*lane
	for i := range lanes {
		l, err := o.newLane(i, lanes, &stop)
		if err != nil {
			return nil, cpu, err
		}
		running = append(running, l)
	}
	o.start = time.Now()
	var wg sync.WaitGroup
	ended := make(chan struct{})
	for _, l := range running {
		wg.Go(func() {
			if err := l.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	go func() { wg.Wait(); close(ended) }()
	begin := time.NewTimer(o.warmup)
	defer begin.Stop()
	for waiting := true; waiting; {
		select {
		case <-begin.C:
			cpu.user, cpu.system = inside.CPU()
		case <-ctx.Done():
			stop.Store(true)
			<-ended
			waiting = false
		case <-ended:
			waiting = false
		}
	}
	user, system := inside.CPU()
	cpu.user, cpu.system = user-cpu.user, system-cpu.system
	for _, l := range running {
		l.close()
	}
	if outer.Err() != nil {
		return nil, cpu, fmt.Errorf("told to end: %w", context.Cause(outer))
	}
	if ctx.Err() != nil {
		return nil, cpu, context.Cause(ctx)
	}
	all = o.newTally()
	for _, l := range running {
		all.merge(l)
	}
	return all, cpu, nil
}

// due returns when the request with that number, from 0, should be sent, in nanoseconds since the start.
func (o *open) due(n uint64) int64 { return int64(float64(n) * (1e9 / o.rate)) }

// tally sums the answers. A request of the open loop belongs to the window in which it was due, one of the closed loop to that
// in which its answer ended.
type tally struct {
	open    *open
	lanes   int
	busy    time.Duration // that the lanes ran or waited for a processor, of lasted
	lasted  time.Duration
	latency *hdrhistogram.Histogram // from due, or from sent, to the end of the answer
	send    *hdrhistogram.Histogram // open loop: from due to sent
	wake    *hdrhistogram.Histogram // open loop: how late the lane was, after it had waited
	sent    int64                   // good answers
	ended   int64                   // those that ended within the window, whenever they were due
	unsent  int64                   // open loop: due in the window, not sent by its end
	done    []int64                 // good answers by interval
	first   string                  // the URL of the first wrong answer, of a target with several
	wrong   map[int]int64           // answers by status, of those that have another than 200
}

func (o *open) newTally() *tally {
	return &tally{open: o, latency: newHistogram(), send: newHistogram(), wake: newHistogram(), wrong: map[int]int64{},
		done: make([]int64, int((o.warmup+o.duration)/step)+1)}
}

// add counts an answer.
func (t *tally) add(c *conn, now int64) error {
	o := t.open
	if c.answer.status != http.StatusOK {
		if len(t.wrong) == 0 {
			t.first = c.request.url
		}
		t.wrong[c.answer.status]++
		return nil
	}
	if err := o.target.judge(c.request.url, c.answer.status, c.answer.length, nil); err != nil {
		return fmt.Errorf("answer %d is wrong: %w", c.number+1, err)
	}
	t.sent++
	if i := int(now / int64(step)); i < len(t.done) {
		t.done[i]++
	}
	in := now > int64(o.warmup) && now <= o.until
	if in {
		t.ended++
	}
	switch {
	case o.rate == 0 && in:
		note(t.latency, time.Duration(now-c.sent))
	case o.rate > 0 && c.due >= int64(o.warmup):
		note(t.latency, time.Duration(now-c.due))
		note(t.send, time.Duration(c.sent-c.due))
	}
	return nil
}

// merge adds what a lane has counted.
func (t *tally) merge(l *lane) {
	o, from := t.open, l.tally
	// Requests for which no connection was free have waited at least until the end.
	for n := l.next; n < o.total; n += l.step {
		if due := o.due(n); due >= int64(o.warmup) {
			t.unsent++
			note(t.latency, time.Duration(o.until-due))
		}
	}
	t.lanes, t.busy, t.lasted = t.lanes+1, t.busy+from.busy, t.lasted+from.lasted
	t.latency.Merge(from.latency)
	t.send.Merge(from.send)
	t.wake.Merge(from.wake)
	t.sent, t.ended, t.first = t.sent+from.sent, t.ended+from.ended, cmp.Or(t.first, from.first)
	for i, n := range from.done {
		t.done[i] += n
	}
	for status, n := range from.wrong {
		t.wrong[status] += n
	}
}

// statuses is an error if answers had another status than 200. It says which, and in how many.
func (t *tally) statuses() error {
	all := t.sent
	for _, n := range t.wrong {
		all += n
	}
	most := slices.SortedFunc(maps.Keys(t.wrong), func(a, b int) int { return cmp.Or(cmp.Compare(t.wrong[b], t.wrong[a]), a-b) })
	var parts []string
	for i, code := range most {
		s := fmt.Sprintf("status %d in %d", code, t.wrong[code])
		if i == 0 {
			s += fmt.Sprintf(" of %d answers", all)
		}
		parts = append(parts, fmt.Sprintf("%s (%.3g %%)", s, 100*float64(t.wrong[code])/float64(all)))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("GET %s answers with %s, want 200", t.first, strings.Join(parts, ", "))
}

// report is the client's report.
func (t *tally) report(answer int64, cpu cpuTime) (*report, error) {
	if err := t.statuses(); err != nil {
		return nil, err
	}
	o := t.open
	if t.ended == 0 {
		return nil, fmt.Errorf("no answer to GET %s within %s; measure for longer, or raise the rate", o.requests[0].url, o.duration)
	}
	r := &report{
		Format: 1, Load: Closed, Connections: o.connections, Body: o.target.body, Answer: answer,
		Window: o.duration.Seconds(), Requests: t.ended, Bytes: t.ended * answer, Rate: o.rate,
		User: cpu.user.Seconds(), System: cpu.system.Seconds(),
	}
	// Handshakes have all processors, everything else those of the lanes.
	threads := t.lanes
	if o.target.tls != nil && !o.keepAlive {
		threads = runtime.NumCPU()
	}
	used := (r.User + r.System) / r.Window / float64(threads)
	if o.rate > 0 {
		t.reportOpen(r, max(used, t.busy.Seconds()/max(t.lasted.Seconds(), 1e-9)))
	} else if used > busyClient {
		r.warn("http-client-busy", "the client used %.0f%% of its processors' time: it may be what limits the rate", used*100)
	}
	r.Series = t.series()
	if o.target.tls != nil {
		o.handshakes.tell(r, o.resume)
	}
	var err error
	r.Histogram, err = output.Encode(t.latency)
	return r, err
}

// reportOpen adds what the open loop has.
func (t *tally) reportOpen(r *report, busy float64) {
	r.Load, r.SendDelay, r.WakeDelay = Open, spreadOf(t.send), spreadOf(t.wake)
	r.Due, r.Unsent = t.latency.TotalCount(), t.unsent // sent or not
	if r.Unsent > 0 {
		r.warn("http-overload", "the rate of %g/s was not reached: %d requests of the window had not been sent at its end, and count with the time that they had waited",
			r.Rate, r.Unsent)
	}
	pace := inside.Pace{Due: r.Due, Unsent: r.Unsent, Busy: busy, Full: busyThreads,
		Waits: t.wake.TotalCount(), Wake: r.WakeDelay.P99, Latency: float64(t.latency.ValueAtPercentile(99)) * 1e-9}
	if late := pace.Late(); late != "" {
		r.warn(record.GeneratorLate, "%s", late)
	}
}

func (t *tally) series() *output.Points {
	s := &output.Points{}
	for i := range int((t.open.warmup + t.open.duration) / step) {
		s.T = append(s.T, (time.Duration(i+1) * step).Seconds())
		s.V = append(s.V, float64(t.done[i])/step.Seconds())
	}
	return s
}

// cpuTime is this process's processor time from when the window begins.
type cpuTime struct{ user, system time.Duration }

// Shares of their time from which on the client's threads are what is slow, and not the wait for answers: in the open loop they also wait for a processor.
const busyThreads, busyClient = 0.8, 0.9

// newHistogram returns a histogram with three significant digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

func note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(max(1, min(int64(d), maxLatency)))
}

func spreadOf(h *hdrhistogram.Histogram) spread {
	if h.TotalCount() == 0 {
		return spread{}
	}
	return spread{Mean: h.Mean() * 1e-9, P99: float64(h.ValueAtPercentile(99)) * 1e-9}
}
