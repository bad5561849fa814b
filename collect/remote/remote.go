// Package remote reads a collector in another process, on this machine or on another one.
//
// The data path: 1. Open connects to the other process, estimates its clock, and says which
// collector to open on which scopes; 2. that process (Serve) reads the collector at its own
// rate and keeps the readings; 3. each Read returns the readings that have come, with their
// times by this host's clock (collect.Stamped). About once a second it asks for more, and does not wait;
// 4. Fetch waits for the last ones.
//
// The stream is an agent's (package agent): its hello, frames, calls and clock.
// docs/design/0027-samplers-elsewhere.md says why.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"tare/agent"
	"tare/collect"
	"tare/record"
	"tare/sandbox"
)

// Dial starts or finds a process that runs Serve and returns the stream to it. The context
// bounds Dial alone, not the stream. Closing the stream ends Serve, in bounded time even if
// the process hangs.
type Dial func(context.Context) (io.ReadWriteCloser, error)

// Collector is a collector that another process reads.
type Collector struct {
	collect.Collector // of this process: name and series
	every             time.Duration
	dial              Dial
	options           []agent.Option
	patience          time.Duration
}

const (
	openWithin = 10 * time.Second // bounds Open
	patience   = 5 * time.Second  // how long an answer may take, before the collector fails
	// askEvery is the pause between two questions. The readings have their own times, so they can wait. Each question costs the node
	// as much processor time as several readings.
	askEvery = time.Second
	// fewValues is how many values an answer should have at most, which is well below what the other process keeps. If one has
	// more, the next question comes earlier.
	fewValues = maxValues / 4
)

// New makes the remote counterpart of a collector, which the other process reads every so
// often; 0: only when this process reads.
func New(c collect.Collector, every time.Duration, dial Dial, options ...agent.Option) *Collector {
	return &Collector{Collector: c, every: every, dial: dial, patience: patience, options: append(options, agent.Place("collector process"))}
}

// Check never fails: Open finds out what the other process can read.
func (*Collector) Check() error { return nil }

// Open implements collect.Collector.
func (c *Collector) Open(ctx context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	stream, err := c.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the collector process: %w", err)
	}
	p := &probe{name: c.Name(), stream: stream, described: map[string]record.Unit{}, patience: c.patience}
	if c.every > 0 { // else it reads only when it is asked
		p.pause = askEvery
	}
	for _, r := range c.Series() {
		p.described[r.Name] = r.Unit
	}
	if err := p.open(ctx, c, scopes); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return p, nil
}

func (p *probe) open(ctx context.Context, c *Collector, scopes []sandbox.LocalScope) (err error) {
	if p.client, err = agent.Connect(ctx, p.stream, p.stream, c.options...); err != nil {
		return err
	}
	if _, err := p.client.Clock(ctx); err != nil {
		return err
	}
	var opened openedBody
	a := agent.Answer{Asked: time.Now()}
	if err := p.client.Call(ctx, opOpen, openBody{Collector: p.name, Scopes: scopes, Every: int64(c.every)}, &opened); err != nil {
		return err
	}
	a.At, p.since = time.Now(), a.Asked
	p.source = "another process"
	if opened.Source != "" {
		p.source += ": " + opened.Source
	}
	return p.keep(&opened.First, a)
}

type probe struct {
	name      string
	source    string
	stream    io.ReadWriteCloser
	client    *agent.Client
	described map[string]record.Unit
	patience  time.Duration
	closed    bool
	times     []time.Time

	mu     sync.Mutex
	series []record.Sample // by number, without values
	come   []stamped       // since the last Read
	since  time.Time       // the next readings are not older; the time of the last question that was answered
	pause  time.Duration   // from a question to the next
	last   int64           // time of the newest reading, by the other clock
	asked  time.Time       // when the unanswered question was asked; zero: there is none
	failed error
	lost   int
}

type stamped struct {
	record.Sample
	at time.Time
}

var (
	_ collect.Fetcher = (*probe)(nil)
	_ collect.Sourced = (*probe)(nil)
)

// Source implements collect.Sourced.
func (p *probe) Source() string { return p.source }

// Times implements collect.Stamped.
func (p *probe) Times() []time.Time { return p.times }

// Read implements collect.Probe. It returns what has come before it returns why no more comes.
func (p *probe) Read(dst []record.Sample) ([]record.Sample, error) {
	p.times = p.times[:0]
	if p.closed {
		return dst, fmt.Errorf("%s collector: Read after Close: %w", p.name, os.ErrClosed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.come) == 0 {
		if err := p.ended(); err != nil {
			return dst, err
		}
	}
	for i := range p.come {
		dst, p.times = append(dst, p.come[i].Sample), append(p.times, p.come[i].at)
	}
	p.come = p.come[:0]
	if p.asked.IsZero() && time.Since(p.since) >= p.pause && p.client.Ask(opRead, nil, p.answered) {
		p.asked = time.Now()
	}
	return dst, nil
}

// Fetch implements collect.Fetcher. An answer to an earlier question comes first.
func (p *probe) Fetch() {
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	a := agent.Answer{Asked: time.Now()}
	a.Err = p.client.Call(ctx, opRead, nil, &a.Body)
	if ctx.Err() != nil {
		a.Err = p.silent()
	}
	a.At = time.Now()
	p.answered(a)
}

// silent is the reason of a peer that does not answer.
func (p *probe) silent() error {
	return fmt.Errorf("the collector process has not answered for %s", p.patience)
}

// ended returns why no more readings come, or nil.
func (p *probe) ended() error {
	if p.failed != nil {
		return p.failed
	}
	if err := p.client.Err(); err != nil {
		return err
	}
	if !p.asked.IsZero() && time.Since(p.asked) > p.patience {
		return p.silent()
	}
	return nil
}

func (p *probe) answered(a agent.Answer) {
	var b readingsBody
	err := a.Err
	if err == nil {
		if err = json.Unmarshal(a.Body, &b); err != nil {
			err = fmt.Errorf("%w: %w", errAnswer, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = time.Time{}
	if err == nil {
		err = p.keep(&b, a)
	}
	if p.failed == nil {
		p.failed = err
	}
}

var errAnswer = errors.New("the collector process sent an impossible answer")

// keep checks an answer and keeps its readings for the next Read.
func (p *probe) keep(b *readingsBody, a agent.Answer) error {
	if err := p.learn(b.Series); err != nil {
		return err
	}
	values, nanos := 0, make([]int64, len(b.Readings))
	for i := range b.Readings {
		r := &b.Readings[i]
		if values += len(r.Values); len(r.Series) != len(r.Values) || values > maxValues+maxSeries {
			return fmt.Errorf("%w: %d values of %d series", errAnswer, values, len(r.Series))
		}
		if r.At <= p.last {
			return fmt.Errorf("%w: a reading is older than the one before it", errAnswer)
		}
		p.last, nanos[i] = r.At, r.At
	}
	if b.Now < p.last {
		return fmt.Errorf("%w: a reading is newer than the answer", errAnswer)
	}
	times := p.client.HostTimes(p.since, a, b.Now, nanos)
	for i := range b.Readings {
		for k, n := range b.Readings[i].Series {
			v := b.Readings[i].Values[k]
			if n < 0 || n >= len(p.series) || v < 0 {
				return fmt.Errorf("%w: series %d of %d has the value %v", errAnswer, n, len(p.series), v)
			}
			s := p.series[n]
			s.Value = v
			p.come = append(p.come, stamped{s, times[i]})
		}
	}
	if values > 0 && p.pause > 0 {
		p.pause = min(askEvery, max(a.Asked.Sub(p.since), leastEvery)*fewValues/time.Duration(values))
	}
	p.since, p.lost = a.Asked, p.lost+max(b.Lost, 0)
	return nil
}

// learn adds new series. They must be what the collector of that name describes.
func (p *probe) learn(series []seriesBody) error {
	if len(p.series)+len(series) > maxSeries {
		return fmt.Errorf("%w: more than %d series", errAnswer, maxSeries)
	}
	for i := range series {
		s := series[i].sample()
		var pairs []string
		for _, kv := range s.Labels.Pairs() {
			pairs = append(pairs, kv[0], kv[1])
		}
		if u, ok := p.described[s.Name]; !ok || u != s.Unit || s.Kind != record.Counter && s.Kind != record.Gauge || record.MakeLabels(pairs...) != s.Labels {
			return fmt.Errorf("%w: the collector %s has no series %.200q", errAnswer, p.name, fmt.Sprintf("%s{%s} %s %s", s.Name, s.Labels, s.Unit, s.Kind))
		}
		p.series = append(p.series, s)
	}
	return nil
}

// Close implements collect.Probe. It ends the other process.
func (p *probe) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.stream.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost > 0 {
		err = errors.Join(err, fmt.Errorf("the collector process dropped %d readings, because this process asked for them too late", p.lost))
	}
	return err
}
