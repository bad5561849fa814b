package guest

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/agent"
	"tare/collect"
	"tare/collect/collecttest"
	"tare/record"
	"tare/sandbox"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m)) }

// served is a guest whose kernel is this host's: a real agent, read through its
// real protocol.
func served(t testing.TB) sandbox.Guest {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := agent.Serve(context.Background(), toAgent, fromAgent, nil); err != nil {
			t.Error(err)
		}
		_ = fromAgent.Close()
	}()
	c, err := agent.Connect(t.Context(), toClient, fromClient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = fromClient.Close()
		<-done
	})
	g := c.Guest()
	// The agent opens its files at the first question, and keeps them.
	for g.Ask(); ; time.Sleep(time.Millisecond) {
		if got, err := g.Take(); err != nil || len(got) > 0 {
			return g
		}
	}
}

func TestContract(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: New(), Scopes: func(t *testing.T, _ int) []sandbox.LocalScope {
		return []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Guest: served(t)}, {Scope: sandbox.Scope{Endpoint: "client"}}}
	}})
}

// scripted is a guest that has what was put there.
type scripted struct {
	mu       sync.Mutex
	readings []sandbox.GuestReading
	failed   error
	asked    int
}

func (s *scripted) Ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
}

func (s *scripted) Take() ([]sandbox.GuestReading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.readings, s.failed
	s.readings, s.failed = nil, nil
	return out, err
}

func (*scripted) Clock(context.Context) (sandbox.Clock, error) { return sandbox.Clock{}, nil }

func TestReadingsKeepTheirTimes(t *testing.T) {
	now := time.Now()
	g := &scripted{readings: []sandbox.GuestReading{
		{At: now.Add(-2 * time.Second), CPUs: []sandbox.GuestCPU{{Number: 0, User: 1, Idle: 10}}, Runnable: 3, Free: 100, Spent: time.Second},
		// A processor is plugged in, and idle falls, as the kernel lets it.
		{At: now.Add(-time.Second), CPUs: []sandbox.GuestCPU{{Number: 0, User: 1.5, Idle: 9}, {Number: 2, Steal: 4, NetRx: 7}}, Runnable: 1, Free: 90, Spent: 2 * time.Second},
	}}
	p, err := New().Open(t.Context(), []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "client"}, Guest: g}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	type at struct {
		name   string
		labels record.Labels
		ago    time.Duration
		value  float64
	}
	var some []at
	times := p.(collect.Stamped).Times()
	for i, s := range got {
		if s.Value != 0 && s.Name != record.CollectorCPU {
			some = append(some, at{s.Name, s.Labels, now.Sub(times[i]), s.Value})
		}
	}
	want := []at{
		{"guest_cpu", "cpu=0,end=client,mode=user", 2 * time.Second, 1},
		{"guest_cpu", "cpu=0,end=client,mode=idle", 2 * time.Second, 10},
		{"guest_runnable", "end=client", 2 * time.Second, 3},
		{"guest_memory_available", "end=client", 2 * time.Second, 100},
		{"agent_cpu", "end=client", 2 * time.Second, 1},
		{"guest_cpu", "cpu=0,end=client,mode=user", time.Second, 1.5},
		{"guest_cpu", "cpu=0,end=client,mode=idle", time.Second, 10},
		{"guest_cpu", "cpu=2,end=client,mode=steal", time.Second, 4},
		{"guest_softirqs", "cpu=2,end=client,mode=net_rx", time.Second, 7},
		{"guest_runnable", "end=client", time.Second, 1},
		{"guest_memory_available", "end=client", time.Second, 90},
		{"agent_cpu", "end=client", time.Second, 2},
	}
	if d := cmp.Diff(want, some, cmp.AllowUnexported(at{})); d != "" {
		t.Error(d)
	}
	if g.asked != 1 {
		t.Errorf("asked %d times", g.asked)
	}
}

func TestTwoGuestsOfOneEnd(t *testing.T) {
	if _, err := New().Open(t.Context(), []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "a"}, Guest: &scripted{}}, {Scope: sandbox.Scope{Endpoint: "a"}, Guest: &scripted{}}}); err == nil {
		t.Error("opened")
	}
}

// BenchmarkRead is what the whole path costs a reading: asking, the agent's work,
// its answer, the samples. At 10 Hz, 1 ms is one per cent of a core.
func BenchmarkRead(b *testing.B) {
	p, err := New().Open(b.Context(), []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Guest: served(b)}})
	if err != nil {
		b.Fatal(err)
	}
	var dst []record.Sample
	for b.Loop() {
		for len(dst) < 2 { // until the answer is there
			if dst, err = p.Read(dst[:0]); err != nil {
				b.Fatal(err)
			}
		}
		dst = dst[:0]
	}
}

// TestFailedReadingIsTold: at the end, and the ones around it are kept.
func TestFailedReadingIsTold(t *testing.T) {
	g := &scripted{failed: errors.New("no /proc")}
	p, err := New().Open(t.Context(), []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Guest: g}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(nil); err != nil {
		t.Fatal(err)
	}
	g.readings = []sandbox.GuestReading{{At: time.Now(), Runnable: 1}}
	if got, err := p.Read(nil); err != nil || len(got) < 2 {
		t.Errorf("%v %v", got, err)
	}
	if err := p.Close(); err == nil || err.Error() != "server: 1 readings failed, the last one: no /proc" {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
