package trial

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// worse gives the engine's only cell a link.
func worse(e *Maker, delay, rate string) {
	c := &e.Study.Strata[0].Cells[0]
	if delay != "" {
		*c = append(*c, record.Level{Factor: study.FactorLinkDelay, Value: delay})
	}
	if rate != "" {
		*c = append(*c, record.Level{Factor: study.FactorLinkRate, Value: rate})
	}
}

// TestLinkIsMadeAfterTheStart: a machine's port is there only then; before anything is read
// or run.
func TestLinkIsMadeAfterTheStart(t *testing.T) {
	e, j := engine(t, "")
	worse(e, "2ms", "8Mbit")
	tr, _ := e.Trial(t.Context(), first(e))
	if tr.Status != record.OK {
		t.Fatalf("%+v", tr.Failure)
	}
	want := []string{"attach server", "attach client", "start server", "start client",
		"shape server 2ms 1000000", "shape client 2ms 1000000", "open collectors on server+client"}
	if d := cmp.Diff(want, j.lines[:len(want)]); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestLinkThatCannotBeMade(t *testing.T) {
	e, j := engine(t, "")
	e.Place.(*place).link = errors.New("no tun device")
	worse(e, "2ms", "")
	tr, _ := e.Trial(t.Context(), first(e))
	if tr.Failure == nil || tr.Failure.Phase != PhaseStart || tr.Failure.Reason != "no tun device" {
		t.Errorf("%+v", tr.Failure)
	}
	if last := j.lines[len(j.lines)-1]; last != "release x-1" {
		t.Errorf("the last thing done is %q", last)
	}
}

// TestEndsOnTwoNodes: the isolated end is on the block's node, the other one on its peer. If both are isolated, the
// first one stays.
func TestEndsOnTwoNodes(t *testing.T) {
	for _, tt := range []struct{ path, isolate, server, client string }{
		{record.PathNodes, "server", "a", "b"}, {record.PathNodes, "client", "b", "a"}, {record.PathNodes, study.Both, "a", "b"},
		{record.PathWire, "server", "a", "a"},
	} {
		e, j := engine(t, "")
		e.Nodes = []string{"a", "b"}
		c := &e.Study.Strata[0].Cells[0]
		*c = append(*c, record.Level{Factor: study.FactorLinkPath, Value: tt.path}, record.Level{Factor: study.FactorIsolate, Value: tt.isolate})
		next := first(e)
		next.Node = "a"
		tr, _ := e.Trial(t.Context(), next)
		if tr.Status != record.OK {
			t.Fatalf("%+v", tr.Failure)
		}
		near := "open collectors on server+client"
		if tt.server != "a" {
			near = "open collectors on client+server"
		}
		if !slices.Contains(j.lines, near) {
			t.Errorf("path %s, isolated %s: no %q, so another node than the trial's is read first", tt.path, tt.isolate, near)
		}
		for _, w := range e.Place.(*place).wants {
			if want := map[string]string{"server": tt.server, "client": tt.client}[w.Role]; w.Node != want {
				t.Errorf("path %s, isolated %s: %s is on %q, want %q", tt.path, tt.isolate, w.Role, w.Node, want)
			}
		}
	}
}
