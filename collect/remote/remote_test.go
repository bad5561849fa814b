package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/agent"
	"tare/collect"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// turns is a collector of a counter that rises with each reading, and of gauges.
type turns struct {
	gauges int
	check  error
	fails  int // the reading that fails; 0: none
	scopes []sandbox.LocalScope
	reads  atomic.Int64
	closed atomic.Bool
}

func (*turns) Name() string   { return "turns" }
func (*turns) About() string  { return "for tests" }
func (c *turns) Check() error { return c.check }
func (*turns) Series() []record.Response {
	return []record.Response{{Name: "turns", Unit: record.Count}, {Name: "gauge", Unit: record.Second}}
}

func (c *turns) Open(_ context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	c.scopes = scopes
	return c, nil
}

func (c *turns) Read(dst []record.Sample) ([]record.Sample, error) {
	n := c.reads.Add(1)
	if n == int64(c.fails) {
		return dst, errors.New("the register is gone")
	}
	dst = append(dst, record.Sample{Name: "turns", Unit: record.Count, Kind: record.Counter, Value: float64(n)})
	for i := range c.gauges {
		dst = append(dst, record.Sample{
			Name: "gauge", Labels: record.MakeLabels(record.LabelDevice, fmt.Sprintf("device-with-quite-a-long-name-%d", i), record.LabelEndpoint, "server"),
			Unit: record.Second, Kind: record.Gauge, Value: 0.1234567890123456,
		})
	}
	return dst, nil
}

func (c *turns) Close() error {
	c.closed.Store(true)
	return nil
}

// elsewhere is a collector whose readings have their own times.
type elsewhere struct{ turns }

func (*elsewhere) Times() []time.Time { return nil }

func (c *elsewhere) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) { return c, nil }

type duplex struct {
	io.Reader
	io.WriteCloser
}

// dial returns a Dial to a peer in this process, which serves until its input ends.
func dial(t testing.TB, serve func(r io.Reader, w io.Writer) error) Dial {
	return func(context.Context) (io.ReadWriteCloser, error) {
		in, toPeer := io.Pipe()
		fromPeer, out := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = serve(in, out) // the test looks at the client's side
			_ = out.Close()
		}()
		t.Cleanup(func() {
			_ = toPeer.Close()
			_, _ = io.Copy(io.Discard, fromPeer)
			<-done
		})
		return duplex{fromPeer, toPeer}, nil
	}
}

func serving(t testing.TB, collectors ...collect.Collector) Dial {
	return dial(t, func(r io.Reader, w io.Writer) error { return Serve(context.Background(), r, w, collectors, nil) })
}

func open(t *testing.T, c *Collector, scopes ...sandbox.LocalScope) collect.Fetcher {
	t.Helper()
	p, err := c.Open(t.Context(), scopes)
	if err != nil {
		t.Fatal(err)
	}
	return p.(collect.Fetcher)
}

// TestItsOwnRate: the other process reads by its own clock, also while nobody asks, and the
// readings keep their times.
func TestItsOwnRate(t *testing.T) {
	c := &turns{}
	before := time.Now()
	scope := sandbox.LocalScope{Scope: sandbox.Scope{Sandbox: "x", Endpoint: "server"}, Roles: sandbox.ThreadRoles{sandbox.AgentRule()}}
	p := open(t, New(c, 2*time.Millisecond, serving(t, c)), scope)
	if len(c.scopes) != 1 || c.scopes[0].Sandbox != "x" || c.scopes[0].Roles.Of(sandbox.Thread{Args: []string{"/tare", "internal", "agent"}}) != record.RoleHarness {
		t.Errorf("the scopes that arrived: %+v", c.scopes)
	}
	for c.reads.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	last, value, points, reads := before, 0.0, 0, 0
	for points < 20 {
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		reads++
		for i, at := range p.Times() {
			if !at.After(last) || at.After(time.Now()) || got[i].Value != value+1 {
				t.Fatalf("%v at %s, after %v at %s", got[i].Value, at, value, last)
			}
			last, value = at, got[i].Value
		}
		points += len(got)
		time.Sleep(10 * time.Millisecond)
	}
	if reads >= points {
		t.Errorf("%d readings in %d answers", points, reads)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for !c.closed.Load() {
		time.Sleep(time.Millisecond)
	}
}

// TestFewQuestions: one answer has the readings of a long time, and Fetch brings those that no answer had.
func TestFewQuestions(t *testing.T) {
	c := &turns{}
	p := open(t, New(c, 2*time.Millisecond, serving(t, c)))
	answers, last := 0, 0.0
	read := func() {
		t.Helper()
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			answers, last = answers+1, got[len(got)-1].Value
		}
	}
	for c.reads.Load() < 100 {
		read()
		time.Sleep(time.Millisecond)
	}
	if answers > 5 {
		t.Errorf("%d answers in the time of 100 readings", answers)
	}
	p.Fetch()
	if read(); last < 100 {
		t.Errorf("the last of at least 100 readings is number %v", last)
	}
}

// TestFails: what the other process cannot open or read is an error that says why.
func TestFails(t *testing.T) {
	for want, c := range map[string]collect.Collector{
		"no kernel file": &turns{check: errors.New("no kernel file")}, "the register is gone": &turns{fails: 1},
		"already come from another process": &elsewhere{}, "more than 2048 series": &turns{gauges: maxSeries},
	} {
		_, err := New(c, time.Second, serving(t, c)).Open(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "open in the collector process: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(&turns{}, time.Second, serving(t)).Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), `no collector "turns"`) {
		t.Errorf("%v", err)
	}
	if _, err := New(&turns{}, time.Microsecond, serving(t, &turns{})).Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "ask for 1ms or more") {
		t.Errorf("%v", err)
	}
	c := &turns{fails: 3}
	p := open(t, New(c, 0, serving(t, c))) // read when this process reads
	sum, err := 0, error(nil)
	for err == nil {
		var got []record.Sample
		got, err = p.Read(nil)
		sum += len(got)
	}
	if sum != 2 || !strings.Contains(err.Error(), "the register is gone") {
		t.Errorf("%d readings, then %v", sum, err)
	}
}

// TestNobodyAsks: the other process keeps a bounded number of readings, says what it dropped,
// and its longest answer fits in a frame.
func TestNobodyAsks(t *testing.T) {
	c := &turns{gauges: maxSeries - 1}
	p := open(t, New(c, time.Millisecond, serving(t, c)))
	for c.reads.Load() < 3*maxValues/maxSeries {
		time.Sleep(time.Millisecond)
	}
	for points := 0; points < 2*maxValues/3; {
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		points += len(got)
		time.Sleep(time.Millisecond)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("Close: %v", err)
	}
}

// TestNoCommands: nothing can be started through the stream.
func TestNoCommands(t *testing.T) {
	stream, err := serving(t)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := agent.Connect(t.Context(), stream, stream)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	exit, err := client.Run(t.Context(), sandbox.Command{Args: []string{"true"}, Stderr: &said})
	if err != nil || exit.Code != 127 || !strings.Contains(said.String(), "does not start commands") {
		t.Errorf("%+v, %v: %s", exit, err, &said)
	}
}

// played is a peer that answers as the test says. Its clock is an hour ahead.
func played(t testing.TB, first readingsBody, read agent.Operation) Dial {
	answer := func(v any) agent.Operation { return func(json.RawMessage) (any, error) { return v, nil } }
	return dial(t, func(r io.Reader, w io.Writer) error {
		return agent.Serve(context.Background(), r, w, agent.Operations{
			"time": func(json.RawMessage) (any, error) { return map[string]int64{"ns": ahead()}, nil },
			opOpen: answer(openedBody{First: first}), opRead: read,
		})
	})
}

func ahead() int64 { return int64(held.Monotonic() + time.Hour) }

func counter() []seriesBody {
	return []seriesBody{{Name: "turns", Unit: record.Count, Kind: record.Counter}}
}

// TestAnotherClock: times are translated.
func TestAnotherClock(t *testing.T) {
	before := time.Now()
	at := ahead()
	p := open(t, New(&turns{}, time.Second, played(t, readingsBody{Now: ahead()}, func(json.RawMessage) (any, error) {
		readings := []readingBody{{at, []int{0}, []float64{1}}, {ahead(), []int{0}, []float64{2}}}
		return readingsBody{Now: ahead(), Series: counter(), Readings: readings}, nil
	})))
	p.Fetch()
	got, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	times := p.Times()
	if len(got) != 2 || len(times) != 2 || times[0].Before(before) || !times[1].After(times[0]) || times[1].After(time.Now()) {
		t.Errorf("%+v at %s, asked from %s on", got, times, before)
	}
}

// TestImpossibleAnswers: they end the collector and give no samples.
func TestImpossibleAnswers(t *testing.T) {
	long := make([]seriesBody, maxSeries+1)
	for i := range long {
		long[i] = counter()[0]
	}
	one := func(at int64, s []int, v ...float64) []readingBody { return []readingBody{{at, s, v}} }
	for name, b := range map[string]any{
		"no object":          []int{1},
		"not described":      readingsBody{Series: []seriesBody{{Name: "other", Unit: record.Count, Kind: record.Counter}}},
		"another unit":       readingsBody{Series: []seriesBody{{Name: "turns", Unit: record.Byte, Kind: record.Counter}}},
		"another kind":       readingsBody{Series: []seriesBody{{Name: "turns", Unit: record.Count, Kind: "x"}}},
		"labels":             readingsBody{Series: []seriesBody{{Name: "turns", Labels: "b=1,a=2", Unit: record.Count, Kind: record.Gauge}}},
		"too many series":    readingsBody{Series: long},
		"a series not told":  readingsBody{Series: counter(), Readings: one(1, []int{1}, 1)},
		"below zero":         readingsBody{Series: counter(), Readings: one(1, []int{0}, -1)},
		"a negative series":  readingsBody{Series: counter(), Readings: one(1, []int{-1}, 1)},
		"lengths":            readingsBody{Series: counter(), Readings: one(1, []int{0}, 1, 2)},
		"not after the last": readingsBody{Series: counter(), Readings: append(one(2, []int{0}, 1), one(2, []int{0}, 1)...)},
		"the future":         readingsBody{Now: 1, Series: counter(), Readings: one(1<<62, []int{0}, 1)},
		"too many values":    readingsBody{Series: counter(), Readings: one(1, make([]int, maxValues+maxSeries+1), make([]float64, maxValues+maxSeries+1)...)},
	} {
		t.Run(name, func(t *testing.T) {
			if r, ok := b.(readingsBody); ok && r.Now == 0 {
				r.Now = ahead()
				b = r
			}
			p := open(t, New(&turns{}, time.Second, played(t, readingsBody{Now: 1}, func(json.RawMessage) (any, error) { return b, nil })))
			p.Fetch()
			if got, err := p.Read(nil); len(got) > 0 || !errors.Is(err, errAnswer) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestSilence: a peer that does not answer holds up neither Open nor Read.
func TestSilence(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	silent := dial(t, func(r io.Reader, _ io.Writer) error { _, err := io.Copy(io.Discard, r); return err })
	if _, err := New(&turns{}, 0, silent).Open(ctx, nil); err == nil || !strings.Contains(err.Error(), "the agent in the collector process said nothing") {
		t.Errorf("%v", err)
	}
	noisy := dial(t, func(_ io.Reader, w io.Writer) error { _, err := io.WriteString(w, "sh: tare: not found\n"); return err })
	if _, err := New(&turns{}, 0, noisy).Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "tare: not found") {
		t.Errorf("%v", err)
	}
	quiet := make(chan struct{})
	c := New(&turns{}, 0, played(t, readingsBody{Now: 1}, func(json.RawMessage) (any, error) { <-quiet; return nil, os.ErrClosed }))
	c.patience = 10 * time.Millisecond
	p, fetched := open(t, c), open(t, c)
	t.Cleanup(func() { close(quiet) })
	var err error
	for err == nil {
		_, err = p.Read(nil)
		time.Sleep(time.Millisecond)
	}
	if !strings.Contains(err.Error(), "has not answered for 10ms") {
		t.Error(err)
	}
	fetched.Fetch()
	if _, err := fetched.Read(nil); err == nil || !strings.Contains(err.Error(), "has not answered for 10ms") {
		t.Error(err)
	}
	refused := func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("no such pod") }
	if _, err := New(&turns{}, 0, refused).Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "cannot reach the collector process: no such pod") {
		t.Errorf("%v", err)
	}
}

// FuzzAnswers is a peer that answers anything, in two answers.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"now_ns":9,"series":[{"name":"turns","unit":"1","kind":"counter"}],"readings":[{"at_ns":1,"s":[0],"v":[1]}]}`), []byte(`{"now_ns":9,"readings":[{"at_ns":2,"s":[0,0],"v":[1,1e9]}],"lost":-1}`))
	f.Add([]byte(`{"series":[{"name":"gauge","labels":"end=a","unit":"s","kind":"gauge"}]}`), []byte(`null`))
	stream, err := serving(f)(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	client, err := agent.Connect(f.Context(), stream, stream)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p := &probe{name: "turns", stream: duplex{WriteCloser: nopCloser{}}, client: client, described: map[string]record.Unit{"turns": record.Count, "gauge": record.Second}}
		asked := time.Now().Add(-time.Second)
		p.since = asked
		for _, b := range [][]byte{first, second} {
			p.answered(agent.Answer{Body: b, Asked: asked, At: time.Now()})
		}
		p.asked = time.Now() // ask nothing
		got, _ := p.Read(nil)
		for i, s := range got {
			if s.Name != "turns" && s.Name != "gauge" || s.Value < 0 || p.Times()[i].Before(asked) || p.Times()[i].After(time.Now()) {
				t.Errorf("%+v at %s", s, p.Times()[i])
			}
		}
		if len(got) > 2*(maxValues+maxSeries) || len(p.series) > maxSeries || p.lost < 0 {
			t.Errorf("%d samples, %d series, %d lost", len(got), len(p.series), p.lost)
		}
		_ = p.Close()
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// FuzzQuestions is a client that asks anything.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte(`{"collector":"turns","scopes":[{"end":"a","cgroups":["x"],"roles":[{"role":"vmm","comm":"q"}],"network":{"addr":"1.2.3.4/8"}}],"every_ns":0}`))
	f.Add([]byte(`{"collector":"turns","every_ns":-1}`))
	f.Add([]byte(`{"collector":"none"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(body, []byte("every_ns")) && !bytes.Contains(body, []byte(`"every_ns":0`)) {
			return // a ticker would read in the background
		}
		s := &server{collectors: []collect.Collector{&turns{gauges: 3}}, numbers: map[seriesBody]int{}, stop: make(chan struct{})}
		_, opened := s.open(body)
		if _, err := s.read(nil); (err == nil) != (opened == nil) {
			t.Errorf("open: %v, read: %v", opened, err)
		}
		if _, err := s.open(body); err == nil {
			t.Error("a stream opened twice")
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}
