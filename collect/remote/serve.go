package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"tare/agent"
	"tare/collect"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Operations of the collector process.
const (
	opOpen = "open" // body: openBody; answer: openedBody; once
	opRead = "read" // no body; answer: readingsBody
)

// Bounds, so that every answer fits in a frame of 1 MiB: a value takes up to 30 bytes as JSON, a
// series about 170.
const (
	maxSeries  = 2048    // of a collector, in its whole session
	maxValues  = 1 << 14 // that are kept until they are asked for; the oldest are dropped
	leastEvery = time.Millisecond
)

type openBody struct {
	Collector string               `json:"collector"`
	Scopes    []sandbox.LocalScope `json:"scopes"`
	Every     int64                `json:"every_ns"` // between two readings; 0: one for each opRead
}

type openedBody struct {
	Source string       `json:"source,omitempty"` // see collect.Sourced
	First  readingsBody `json:"first"`
}

// readingsBody has what came since the answer before.
type readingsBody struct {
	Now      int64         `json:"now_ns"`           // CLOCK_MONOTONIC
	Series   []seriesBody  `json:"series,omitempty"` // the new ones; their numbers go on from the last answer's
	Readings []readingBody `json:"readings"`         // by rising time
	Lost     int           `json:"lost,omitempty"`   // readings that were dropped
}

type readingBody struct {
	At     int64     `json:"at_ns"` // CLOCK_MONOTONIC
	Series []int     `json:"s"`     // the number of each value's series
	Values []float64 `json:"v"`
}

type seriesBody struct {
	Name   string            `json:"name"`
	Labels record.Labels     `json:"labels,omitempty"`
	Unit   record.Unit       `json:"unit"`
	Kind   record.SampleType `json:"kind"`
}

func (s *seriesBody) sample() record.Sample {
	return record.Sample{Name: s.Name, Labels: s.Labels, Unit: s.Unit, Kind: s.Kind}
}

// Serve opens the collector that the client names and reads it until r ends, the client stops
// reading, or ctx is done. It starts no commands. Further operations may be given.
func Serve(ctx context.Context, r io.Reader, w io.Writer, collectors []collect.Collector, further agent.Operations, traits ...agent.Trait) error {
	s := &server{collectors: collectors, numbers: map[seriesBody]int{}, stop: make(chan struct{})}
	ops := agent.Operations{opOpen: s.open, opRead: s.read}
	maps.Copy(ops, further)
	err := agent.Serve(ctx, r, w, ops, append(traits, agent.NoCommands)...)
	return errors.Join(err, s.close())
}

type server struct {
	collectors []collect.Collector
	stop       chan struct{}
	ticks      sync.WaitGroup

	mu      sync.Mutex
	probe   collect.Probe // nil before opOpen
	closed  bool
	every   time.Duration
	buf     []record.Sample
	numbers map[seriesBody]int
	answer  readingsBody // the next one
	values  int          // in answer
	failed  error        // why the probe gives no more
}

func (s *server) open(body json.RawMessage) (any, error) {
	var b openBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.collectors, func(c collect.Collector) bool { return c.Name() == b.Collector })
	if i < 0 {
		return nil, fmt.Errorf("there is no collector %.100q", b.Collector)
	}
	every := time.Duration(b.Every)
	if every != 0 && every < leastEvery {
		return nil, fmt.Errorf("cannot read every %s; ask for %s or more", every, leastEvery)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probe != nil || s.closed {
		return nil, errors.New("a stream can open only one collector, and only once")
	}
	if err := s.collectors[i].Check(); err != nil {
		return nil, err
	}
	p, err := s.collectors[i].Open(context.Background(), b.Scopes)
	if err != nil {
		return nil, err
	}
	if _, ok := p.(collect.Stamped); ok {
		return nil, errors.Join(fmt.Errorf("the readings of the collector %s already come from another process; open it at the end of its stream", b.Collector), p.Close())
	}
	s.probe, s.every = p, every
	if s.take(); s.failed != nil {
		return nil, s.failed
	}
	if every > 0 {
		s.ticks.Go(s.tick)
	}
	opened := openedBody{First: s.hand()}
	if p, ok := p.(collect.Sourced); ok {
		opened.Source = p.Source()
	}
	return opened, nil
}

// tick reads the probe at multiples of every by CLOCK_MONOTONIC. So all collectors of the process read at the same moment, and the
// processor wakes up once for all of them.
func (s *server) tick() {
	next := func() time.Duration { return s.every - held.Monotonic()%s.every }
	t := time.NewTimer(next())
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			s.take()
			s.mu.Unlock()
			t.Reset(next())
		case <-s.stop:
			return
		}
	}
}

// take reads the probe once, unless it has failed.
func (s *server) take() {
	if s.failed != nil {
		return
	}
	at := int64(held.Monotonic())
	if s.buf, s.failed = s.probe.Read(s.buf[:0]); s.failed != nil {
		return
	}
	r := readingBody{At: at, Series: make([]int, len(s.buf)), Values: make([]float64, len(s.buf))}
	for i := range s.buf {
		x := &s.buf[i]
		key := seriesBody{x.Name, x.Labels, x.Unit, x.Kind}
		n, ok := s.numbers[key]
		if !ok {
			if n = len(s.numbers); n == maxSeries {
				s.failed = fmt.Errorf("the collector has more than %d series, which is too many for a stream", maxSeries)
				return
			}
			s.numbers[key], s.answer.Series = n, append(s.answer.Series, key)
		}
		r.Series[i], r.Values[i] = n, x.Value
	}
	s.answer.Readings = append(s.answer.Readings, r)
	for s.values += cost(&r); s.values > maxValues && len(s.answer.Readings) > 1; s.answer.Lost++ {
		s.values -= cost(&s.answer.Readings[0])
		s.answer.Readings = slices.Delete(s.answer.Readings, 0, 1)
	}
}

// cost is how much of maxValues a reading takes; a reading without values takes some, too.
func cost(r *readingBody) int { return len(r.Values) + 2 }

// hand gives away what has been read.
func (s *server) hand() readingsBody {
	out := s.answer
	out.Now = int64(held.Monotonic())
	s.answer, s.values = readingsBody{}, 0
	return out
}

func (s *server) read(json.RawMessage) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probe == nil {
		return nil, errors.New("no collector is open")
	}
	if s.every == 0 && !s.closed {
		s.take()
	}
	if len(s.answer.Readings) == 0 && s.failed != nil {
		return nil, s.failed
	}
	return s.hand(), nil
}

func (s *server) close() error {
	close(s.stop)
	s.ticks.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.probe == nil {
		return nil
	}
	return s.probe.Close()
}
