package httpload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"tare/record"
	"tare/workload/inside"
	"tare/workload/output"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// open is one load at a rate, by the library of vegeta.
type open struct {
	target      target
	connections int
	rate        float64
	warmup      time.Duration
	duration    time.Duration
	keepAlive   bool
	resume      bool // TLS sessions
	handshakes  handshakes
}

// requests are what is sent, in turn.
func (o *open) requests() []vegeta.Target {
	if len(o.target.each) > 0 {
		var all []vegeta.Target
		for _, u := range o.target.each {
			all = append(all, vegeta.Target{Method: http.MethodGet, URL: u.String()})
		}
		return all
	}
	one := vegeta.Target{Method: http.MethodGet, URL: o.target.url.String()}
	if len(o.target.hosts) == 0 {
		return []vegeta.Target{one}
	}
	var all []vegeta.Target
	for _, h := range o.target.hosts {
		one.Header = http.Header{"Host": {h}}
		all = append(all, one)
	}
	return all
}

// step is the length of the intervals of the series.
const step = 100 * time.Millisecond

// run sends the requests of warm-up and window without a pause, and keeps those that were due
// in the window. It ends at a broken answer. One with a wrong status is only counted: the share tells
// more than the first.
func (o *open) run(ctx context.Context) (*report, error) {
	if o.connections < 1 || !(o.rate > 0) || o.rate > maxRate {
		return nil, fmt.Errorf("%w: --connections must be over 0, --rate over 0 and at most %g", inside.ErrUsage, float64(maxRate))
	}
	answer, err := o.target.exchanges()
	if err != nil {
		return nil, err
	}
	// One more for the thread that sleeps.
	runtime.GOMAXPROCS(runtime.NumCPU() + 1)
	all := o.warmup + o.duration
	p := &pacer{interval: 1e9 / o.rate, until: all, wake: newHistogram(),
		total: uint64(math.Ceil(o.rate * all.Seconds()))}
	a := vegeta.NewAttacker(vegeta.Client(o.client()), vegeta.MaxBody(0), // bodies are read, counted and not kept
		vegeta.Workers(uint64(o.connections)), vegeta.MaxWorkers(uint64(o.connections)))
	results := a.Attack(vegeta.NewStaticTargeter(o.requests()...), p, 0, "")
	defer a.Stop()

	t := &tally{open: o, pacer: p, latency: newHistogram(), send: newHistogram(),
		done: make([]int64, int(all/step)+1), cpu: cpuMark{at: o.warmup}}
	for {
		select {
		case r, ok := <-results:
			if !ok {
				return t.report(answer)
			}
			if err := t.add(r); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("told to end: %w", context.Cause(ctx))
		}
	}
}

// client returns a client that keeps connections open and treats a body of a wrong length as an error.
func (o *open) client() *http.Client {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		conn, took, err := o.target.dial(ctx, address)
		o.handshakes.note(conn, took)
		return conn, err
	}
	return &http.Client{
		Timeout: o.target.timeout,
		Transport: checking{o.target, &http.Transport{
			DialContext: dial, DialTLSContext: dial, DisableCompression: true, DisableKeepAlives: !o.keepAlive,
			MaxConnsPerHost: o.connections, MaxIdleConnsPerHost: o.connections, MaxIdleConns: o.connections,
			ReadBufferSize: 64 << 10,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// checking judges the length of each good answer when it was read.
type checking struct {
	target target
	http.RoundTripper
}

func (c checking) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	resp.Body = &body{target: c.target, ReadCloser: resp.Body}
	return resp, nil
}

type body struct {
	target target
	io.ReadCloser
	n int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	why := err
	if errors.Is(err, io.EOF) {
		why = nil // the expected end
	}
	if err != nil {
		if wrong := b.target.judge(http.StatusOK, b.n, why); wrong != nil {
			return n, wrong
		}
	}
	return n, err
}

// tally sums the answers. A request belongs to the window in which it was due.
type tally struct {
	open    *open
	pacer   *pacer
	latency *hdrhistogram.Histogram // from due to the end of the answer
	send    *hdrhistogram.Histogram // from due to sent
	sent    uint64                  // requests in total
	ended   int64                   // answers that ended within the window, whenever they were due
	done    []int64                 // answers by interval
	first   string                  // the URL of the first wrong answer, of a target with several
	wrong   map[int]int             // answers by status, of those that have another than 200
	cpu     cpuMark
}

func (t *tally) add(r *vegeta.Result) error {
	if _, good, err := t.see(r); !good {
		return err
	}
	due := t.pacer.due(r.Seq)
	if due.Sub(t.pacer.start) < t.open.warmup {
		return nil
	}
	note(t.latency, r.End().Sub(due))
	note(t.send, r.Timestamp.Sub(due))
	return nil
}

// see counts an answer, and returns when it ended, from the first request on, if it is good.
func (t *tally) see(r *vegeta.Result) (at time.Duration, good bool, err error) {
	if r.Code != 0 && r.Code != http.StatusOK { // read whole; vegeta's error is the status of some
		if t.wrong == nil {
			t.wrong = map[int]int{}
			if len(t.open.target.each) > 0 {
				t.first = r.URL
			}
		}
		t.wrong[int(r.Code)]++
		return 0, false, nil
	}
	if r.Error != "" {
		var timeout string
		if r.Latency >= t.open.target.timeout {
			timeout = fmt.Sprintf(" (longer than the timeout %s)", t.open.target.timeout)
		}
		return 0, false, fmt.Errorf("answer %d is wrong%s: %s", r.Seq+1, timeout, r.Error)
	}
	t.sent++
	at = r.End().Sub(t.pacer.start)
	t.cpu.see(at)
	if i := int(at / step); i >= 0 && i < len(t.done) {
		t.done[i]++
	}
	if at > t.open.warmup && at <= t.open.warmup+t.open.duration {
		t.ended++
	}
	return at, true, nil
}

// statuses is an error if answers had another status than 200. It says which, and in how many.
func (t *tally) statuses() error {
	all := int(t.sent) //nolint:gosec // answers of minutes
	for _, n := range t.wrong {
		all += n
	}
	most := slices.SortedFunc(maps.Keys(t.wrong), func(a, b int) int { return cmp.Or(t.wrong[b]-t.wrong[a], a-b) })
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
	return fmt.Errorf("GET %s answers with %s, want 200", cmp.Or(t.first, t.open.target.url.RequestURI()), strings.Join(parts, ", "))
}

func (t *tally) report(answer int64) (*report, error) {
	if err := t.statuses(); err != nil {
		return nil, err
	}
	o := t.open
	user, system := t.cpu.used()
	r := &report{
		Format: 1, Load: "open", Connections: o.connections, Body: o.target.body, Answer: answer,
		Window: o.duration.Seconds(), Requests: t.ended, Bytes: t.ended * answer, Rate: o.rate,
		User: user.Seconds(), System: system.Seconds(),
		SendDelay: spreadOf(t.send), WakeDelay: spreadOf(t.pacer.wake),
	}
	// Requests for which no connection was free have waited at least until the end.
	for n := t.sent; n < t.pacer.total; n++ {
		if due := t.pacer.due(n); due.Sub(t.pacer.start) >= o.warmup {
			r.Unsent++
			note(t.latency, t.pacer.start.Add(o.warmup+o.duration).Sub(due))
		}
	}
	r.Due = t.latency.TotalCount() // sent or not
	pace := inside.Pace{Due: r.Due, Unsent: r.Unsent, Busy: t.cpu.busy(), Full: busyPool,
		Waits: t.pacer.wake.TotalCount(), Wake: r.WakeDelay.P99, Latency: float64(t.latency.ValueAtPercentile(99)) * 1e-9}
	if t.ended == 0 {
		return nil, fmt.Errorf("no answer to GET %s within %s; measure for longer, or raise the rate", o.target.url.RequestURI(), o.duration)
	}
	if r.Unsent > 0 {
		r.warn("http-overload", "the rate of %g/s was not reached: %d requests of the window had not been sent at its end, and count with the time that they had waited",
			o.rate, r.Unsent)
	}
	if late := pace.Late(); late != "" {
		r.warn(record.GeneratorLate, "%s", late)
	}
	return r, t.finish(r)
}

// finish adds what the reports of both loops have.
func (t *tally) finish(r *report) (err error) {
	r.Series = t.series()
	if t.open.target.tls != nil {
		t.open.handshakes.tell(r, t.open.resume)
	}
	r.Histogram, err = output.Encode(t.latency)
	return err
}

func (t *tally) series() *output.Points {
	s := &output.Points{}
	for i := range int((t.open.warmup + t.open.duration) / step) {
		s.T = append(s.T, (time.Duration(i+1) * step).Seconds())
		s.V = append(s.V, float64(t.done[i])/step.Seconds())
	}
	return s
}

// cpuMark takes this process's processor time when the window begins.
type cpuMark struct {
	at           time.Duration
	set          bool
	user, system time.Duration
	from         time.Time
	before       time.Duration // inside.Busy
}

func (c *cpuMark) see(at time.Duration) {
	if !c.set && at >= c.at {
		c.set = true
		c.user, c.system = inside.CPU()
		c.before, c.from = inside.Busy(), time.Now()
	}
}

// busyPool is the share of the runtime's processors (GOMAXPROCS) from which on they are all in use most of the time. More
// goroutines than that share them, so a smaller share says nothing about what is slow.
const busyPool = 0.8

// busy is the share of them that this process's threads used or waited for, since the mark.
func (c *cpuMark) busy() float64 {
	if !c.set {
		return 0
	}
	return (inside.Busy() - c.before).Seconds() / max(time.Since(c.from).Seconds(), 1e-9) / float64(runtime.GOMAXPROCS(0))
}

func (c *cpuMark) used() (user, system time.Duration) {
	user, system = inside.CPU()
	return user - c.user, system - c.system
}
