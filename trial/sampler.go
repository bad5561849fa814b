package trial

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tare/collect"
	"tare/internal/window"
	"tare/record"
	"tare/sandbox"
)

// sampler reads all collectors at the study's rate, on one goroutine.
type sampler struct {
	start  time.Time
	probes []namedProbe
	series map[seriesKey]*window.Series
	failed map[string]error // by collector; the first error ends it
	buf    []record.Sample
	marks  chan chan time.Duration // asks for a reading now; it answers with its time
	often  time.Duration           // between readings of probes that are read more often than others
	stop   chan struct{}
	done   chan struct{}
}

type namedProbe struct {
	name  string
	probe collect.Probe
	often bool
}

type seriesKey struct {
	name   string
	labels record.Labels
}

func (k seriesKey) compare(o seriesKey) int {
	return cmp.Or(cmp.Compare(k.name, o.name), cmp.Compare(k.labels, o.labels))
}

// openSampler opens the collectors over all sandboxes of the trial. One that
// fails to open is a warning: the trial's responses do not depend on it.
func (t *trial) openSampler(ctx context.Context) {
	var scopes []sandbox.LocalScope
	for _, ep := range t.endpoints {
		if ep.inst != nil {
			sc := ep.inst.Scope()
			sc.Scope = sandbox.Scope{Node: ep.want.Node, Sandbox: ep.want.Name, Kind: ep.kind.Name(), Endpoint: ep.role.Name}
			sc.Network = ep.spec.Network
			scopes = append(scopes, sc)
		}
	}
	scopes = append(scopes, t.outside(ctx)...)
	slices.SortStableFunc(scopes, func(a, b sandbox.LocalScope) int { // collectors take the first one's node for the trial's
		return cmp.Compare(away(a.Node, t.node), away(b.Node, t.node))
	})
	if len(scopes) == 0 { // the sandboxes are made while the trial runs: the node's own figures are left
		scopes = append(scopes, sandbox.LocalScope{Scope: sandbox.Scope{Node: t.node}})
	}
	s := &sampler{
		start: t.rec.Start, series: map[seriesKey]*window.Series{}, failed: map[string]error{},
		marks: make(chan chan time.Duration), stop: make(chan struct{}), done: make(chan struct{}),
	}
	for _, c := range t.collectors() {
		p, err := c.Open(ctx, scopes)
		if err != nil {
			s.failed[c.Name()] = err
			continue
		}
		s.probes = append(s.probes, namedProbe{c.Name(), p, c == t.maker.Counting})
		if p, ok := p.(collect.Sourced); ok {
			t.rec.Facts["collector."+c.Name()] = p.Source()
		}
	}
	if t.counts() {
		s.often = t.countInterval()
	}
	t.sampler = s
	s.read(everything)
	go s.loop(t.maker.Study.Collect.Interval)
}

// outside are the scopes of what the roles' requests pass through. A fact of the trial says what is read, or why nothing is.
func (t *trial) outside(ctx context.Context) (out []sandbox.LocalScope) {
	n := map[string]int{}
	for _, ep := range t.endpoints {
		for _, o := range ep.role.Outside {
			fact := o.Name + record.FactOutside
			place, is := t.maker.Place.(Outsider)
			if !is {
				t.rec.Facts[fact] = record.NotRead + "run the study on the cluster, with --on k8s and --observe"
				continue
			}
			scopes, names, err := place.Outside(ctx, o)
			if err != nil {
				t.rec.Facts[fact] = record.NotRead + err.Error()
				continue
			}
			for _, s := range scopes {
				n[o.Name]++
				s.Endpoint = record.CopyName(o.Name, n[o.Name])
				out = append(out, s)
			}
			if had := t.rec.Facts[fact]; had != "" {
				names = had + ", " + names
			}
			t.rec.Facts[fact] = names
		}
	}
	return out
}

// away is 0 on the trial's own node, and 1 on another.
func away(node, own string) int {
	if node == own {
		return 0
	}
	return 1
}

func (s *sampler) loop(interval time.Duration) {
	defer close(s.done)
	ticker := func(d time.Duration) (<-chan time.Time, func()) {
		if d <= 0 {
			return nil, func() {}
		}
		tick := time.NewTicker(d)
		return tick.C, tick.Stop
	}
	ticks, stop := ticker(interval)
	defer stop()
	fast, stop := ticker(s.often)
	defer stop()
	for {
		select {
		case <-ticks:
			s.read(usual)
		case <-fast:
			s.read(often)
		case answer := <-s.marks:
			answer <- s.read(everything)
		case <-s.stop:
			return
		}
	}
}

// mark takes a reading at once and returns its time: the edges of the measured
// window must have points of their own, or a short window would be summed up
// over what happened around it.
func (s *sampler) mark() time.Duration {
	answer := make(chan time.Duration)
	s.marks <- answer
	return <-answer
}

// Probes that are read at once: all, or those of one rate.
func everything(namedProbe) bool { return true }
func usual(p namedProbe) bool    { return !p.often }
func often(p namedProbe) bool    { return p.often }

// read appends what the chosen probes say to their series. All samples of one
// reading bear the time at which it began, which read returns, but for those of a
// collect.Stamped.
func (s *sampler) read(chosen func(namedProbe) bool) (at time.Duration) {
	at = time.Since(s.start)
	for _, p := range s.probes {
		if s.failed[p.name] != nil || !chosen(p) {
			continue
		}
		var err error
		if s.buf, err = p.probe.Read(s.buf[:0]); err != nil {
			s.failed[p.name] = err
			continue
		}
		var times []time.Time
		st, stamped := p.probe.(collect.Stamped)
		if stamped {
			times = st.Times()
		}
		for i := range s.buf {
			x := &s.buf[i]
			k := seriesKey{x.Name, x.Labels}
			sr := s.series[k]
			if sr == nil {
				sr = &window.Series{Series: record.Series{Name: x.Name, Labels: x.Labels, Unit: x.Unit, Kind: x.Kind}, Stamped: stamped}
				s.series[k] = sr
			}
			was := at
			if stamped {
				was = times[i].Sub(s.start)
			}
			add(sr, was, x.Value)
		}
	}
	return at
}

// add appends a point. A stamp that goes back, by a better estimate of a clock, is
// left out.
func add(l *window.Series, at time.Duration, v float64) {
	if n := len(l.T); l.Stamped && n > 0 && at <= l.T[n-1] {
		return
	}
	l.T, l.V = append(l.T, at), append(l.V, v)
}

// closeSampler takes a last reading, closes the probes and turns the series
// into samples over the measured window. It does nothing without a sampler.
func (t *trial) closeSampler() {
	s := t.sampler
	if s == nil {
		return
	}
	t.sampler = nil
	close(s.stop)
	<-s.done
	for _, p := range s.probes {
		if f, is := p.probe.(collect.Fetcher); is && s.failed[p.name] == nil {
			f.Fetch()
		}
	}
	s.read(everything)
	for _, p := range s.probes {
		if err := p.probe.Close(); err != nil && s.failed[p.name] == nil {
			s.failed[p.name] = err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.failed)) {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{
			Code: "collector", Text: fmt.Sprintf("collector %s: %v", name, s.failed[name]),
		})
	}
	keys := slices.SortedFunc(maps.Keys(s.series), seriesKey.compare)
	lines := make([]*window.Series, len(keys))
	for i, k := range keys {
		lines[i] = s.series[k]
		t.evidence.Series = append(t.evidence.Series, lines[i].Series)
	}
	t.rec.Samples = append(t.rec.Samples, window.Figures(lines, t.window)...)
}
