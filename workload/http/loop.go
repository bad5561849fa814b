package httpload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"tare/record"
	"tare/workload/inside"
	"tare/workload/output"
)

// Kinds of load.
const (
	Closed = "closed"
	Open   = "open"
	Wrk    = "wrk" // a closed loop by the program wrk, for which the client needs the image WrkImage
)

// What a load of the kind Wrk needs.
const (
	WrkImage = "wrk"                  // the client's root file system
	WrkEnd   = 300 * time.Millisecond // after the measured time: wrk's threads look every 100 ms whether it is over
)

// Bounds of a Loop.
const (
	MaxConnections = maxConnections
	MaxRate        = maxRate
)

// anyBody stands for answers whose length is not known beforehand.
const anyBody = -1

// Loop is load on a server of any kind, by the library of vegeta or by wrk. The library needs no
// program in the client's sandbox but this one. Each answer must have the status 200.
type Loop struct {
	Kind        string   // Closed, Open or Wrk
	URL         string   // http://HOST:PORT/PATH, or https:// with TLS
	Hosts       []string // names for the header Host, which requests take in turn; none: the URL's
	Body        int64    // bytes of every answer's body; 0: not known. Wrk needs it, but for Each
	Each        []string // URLs without ports that requests take in turn, in the place of URL and Hosts; the name of the host is also that of TLS
	At          string   // the host that has them all
	Ports       [2]int   // of At: for http, and for https
	Connections int
	Threads     int           // Wrk; they share the connections evenly
	Delay       time.Duration // Wrk: the longest pause before a request; pauses are drawn evenly
	Rate        float64       // requests a second; Open
	KeepAlive   bool          // a connection serves many requests
	Warmup      time.Duration
	Duration    time.Duration
	Timeout     time.Duration // of one answer
	TLS         *TLS          // nil: plain HTTP
}

// Args is the client's command.
func (l Loop) Args() []string {
	what, size := "loop", l.Body
	if l.Kind == Wrk {
		what = Closed
	}
	if size == 0 {
		size = anyBody
	}
	args := []string{"/tare", "internal", "http", what, "--url", l.URL, "--size", strconv.FormatInt(size, 10),
		"--connections", strconv.Itoa(l.Connections), "--keep-alive=" + strconv.FormatBool(l.KeepAlive),
		"--warmup", l.Warmup.String(), "--duration", l.Duration.String(), "--timeout", l.Timeout.String()}
	switch l.Kind {
	case Open:
		args = append(args, "--rate", strconv.FormatFloat(l.Rate, 'f', -1, 64))
	case Wrk:
		args = append(args, "--threads", strconv.Itoa(l.Threads), "--delay", l.Delay.String())
	}
	if len(l.Each) > 0 {
		args = append(args, "--each", strings.Join(l.Each, " "), "--at", l.At, "--ports", fmt.Sprintf("%d,%d", l.Ports[0], l.Ports[1]))
	}
	if len(l.Hosts) > 0 {
		args = append(args, "--hosts", strings.Join(l.Hosts, ","))
	}
	if l.TLS != nil {
		args = append(args, "--resume="+strconv.FormatBool(l.TLS.Resume), "--trust", l.TLS.Trust, "--server-name", l.TLS.Name)
	}
	return args
}

// throughput is not known where answers differ in length.
const throughput = "throughput"

// reportKind is the kind of load that a report names.
func reportKind(kind string) string {
	if kind == Wrk {
		return Closed
	}
	return kind
}

// LoopResponses are the responses of a Loop of that kind, with TLS or without. Wrk does not time
// its handshakes.
func LoopResponses(kind string, secure bool) []record.Response {
	all := Workload{}.Responses(map[string]string{"load": reportKind(kind)})
	if secure && kind != Wrk {
		all = append(all, handshake())
	}
	return slices.DeleteFunc(all, func(r record.Response) bool { return r.Name == throughput })
}

// ParseLoop reads what the client of a Loop of that kind printed.
func ParseLoop(kind string, secure bool, out io.Reader) (record.Reading, error) {
	r, err := output.JSON[report](out)
	if err != nil {
		return record.Reading{}, fmt.Errorf("the report of the http client: %w", err)
	}
	if (secure && kind != Wrk) != (r.TLS != nil) {
		return record.Reading{}, errors.New("the report of the http client: its handshakes are not those of the load that was asked for")
	}
	rd, err := r.reading(reportKind(kind))
	rd.Samples = slices.DeleteFunc(rd.Samples, func(s record.Sample) bool { return s.Name == throughput || s.Name == "bytes" })
	return rd, err
}

// run loads the server in a closed loop.
func (o *open) runClosed(ctx context.Context) (*report, error) {
	if o.connections < 1 {
		return nil, fmt.Errorf("%w: --connections must be over 0", inside.ErrUsage)
	}
	answer, err := o.target.exchange()
	if err != nil {
		return nil, err
	}
	all := o.warmup + o.duration
	a := vegeta.NewAttacker(vegeta.Client(o.client()), vegeta.MaxBody(0),
		vegeta.Workers(uint64(o.connections)), vegeta.MaxWorkers(uint64(o.connections)))
	p := &flood{until: all}
	results := a.Attack(vegeta.NewStaticTargeter(o.requests()...), p, 0, "")
	defer a.Stop()
	t := &tally{open: o, pacer: &pacer{wake: newHistogram()}, latency: newHistogram(), send: newHistogram(),
		done: make([]int64, int(all/step)+1), cpu: cpuMark{at: o.warmup}}
	for {
		select {
		case r, ok := <-results:
			if !ok {
				return t.closed(answer)
			}
			t.pacer.start = p.begun()
			if err := t.addClosed(r); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("told to end: %w", context.Cause(ctx))
		}
	}
}

// flood is a vegeta.Pacer that never waits: the number of workers bounds what is under way.
type flood struct {
	until time.Duration
	mu    sync.Mutex
	start time.Time
}

// Pace implements vegeta.Pacer.
func (f *flood) Pace(time.Duration, uint64) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.start.IsZero() {
		f.start = time.Now()
	}
	return 0, time.Since(f.start) > f.until
}

// Rate implements vegeta.Pacer.
func (*flood) Rate(time.Duration) float64 { return math.Inf(1) }

func (f *flood) begun() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start
}

// addClosed counts an answer in the window in which it ended.
func (t *tally) addClosed(r *vegeta.Result) error {
	at, good, err := t.see(r)
	if good && at > t.open.warmup && at <= t.open.warmup+t.open.duration {
		note(t.latency, r.Latency)
	}
	return err
}

// closed reports a closed loop.
func (t *tally) closed(answer int64) (*report, error) {
	if err := t.statuses(); err != nil {
		return nil, err
	}
	o := t.open
	if t.ended == 0 {
		return nil, fmt.Errorf("no answer to GET %s within %s; measure for longer", o.target.url.RequestURI(), o.duration)
	}
	user, system := t.cpu.used()
	r := &report{
		Format: 1, Load: Closed, Connections: o.connections, Body: o.target.body, Answer: answer,
		Window: o.duration.Seconds(), Requests: t.ended, Bytes: t.ended * answer,
		User: user.Seconds(), System: system.Seconds(),
	}
	if busy := (r.User + r.System) / r.Window / float64(runtime.NumCPU()); busy > 0.9 {
		r.warn("http-client-busy", "the client used %.0f%% of the processors: it may be what limits the rate", busy*100)
	}
	return r, t.finish(r)
}
