package observer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/agent"
	"tare/cluster/control"
	"tare/collect"
	"tare/collect/remote"
	"tare/record"
	"tare/sandbox"
)

// node is a probe that has read these samples at a time.
type node struct {
	collect.Fetcher
	samples []record.Sample
	at      time.Time
}

func (n node) Read(dst []record.Sample) ([]record.Sample, error) {
	return append(dst, n.samples...), nil
}

func (n node) Times() (out []time.Time) {
	for range n.samples {
		out = append(out, n.at)
	}
	return out
}

// TestTwoNodes: the trial's node tells of itself and of its pod, the other one of its pod alone, and of its processors if pods of others run
// there; each sample keeps its time.
func TestTwoNodes(t *testing.T) {
	sample := func(name, end string) record.Sample {
		s := record.Sample{Name: name}
		if end != "" {
			s.Labels = record.MakeLabels(record.LabelEndpoint, end)
		}
		return s
	}
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	p := &probes{on: []collect.Fetcher{
		node{samples: []record.Sample{sample("host_cpu", ""), sample("cpu", "server")}, at: first},
		node{samples: []record.Sample{sample("host_cpu", ""), sample("cpu", "client"), sample(record.SystemCPU, "")}, at: second},
	}, outside: [][]string{nil, {"controller", "backend"}}}
	got, err := p.Read([]record.Sample{sample("before", "")})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]record.Sample{sample("before", ""), sample("host_cpu", ""), sample("cpu", "server"), sample("cpu", "client"), sample(record.SystemCPU, "controller"), sample(record.SystemCPU, "backend")}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]time.Time{first, first, second, second, second}, p.Times()); d != "" {
		t.Errorf("times: -want +got\n%s", d)
	}
}

// TestObserverGone: connections of an observer that has ended are passed over. Without another one the node counts as lost, but an
// interrupted question does not.
func TestObserverGone(t *testing.T) {
	waiting := make(chan control.Arrival, 3)
	nodes := Nodes{"n1": waiting}
	stale := func() {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.ReadFull(theirs, make([]byte, len(wake)))
			_ = theirs.Close()
		}()
		waiting <- control.Arrival{Conn: ours}
	}
	stale()
	stale()
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.ReadFull(theirs, make([]byte, len(wake)))
		_ = remote.Serve(context.Background(), theirs, theirs, nil, agent.Operations{opFree: func(json.RawMessage) (any, error) { return 42, nil }})
	}()
	waiting <- control.Arrival{Conn: ours}
	if b, err := nodes.Available(t.Context(), "n1"); b != 42 || err != nil {
		t.Errorf("%d, %v", b, err)
	}
	stale()
	late, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := nodes.Available(late, "n1"); !errors.Is(err, sandbox.ErrNodeLost) || !strings.Contains(err.Error(), "observer on node n1") {
		t.Errorf("without an observer: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := nodes.Available(ended, "n1"); err == nil || errors.Is(err, sandbox.ErrNodeLost) {
		t.Errorf("interrupted: %v", err)
	}
}
