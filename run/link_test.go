package run

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/sandbox"
	"tare/study"
)

// linked is a bridge whose links can be made worse.
type linked struct {
	*bridge
	bad string
}

func (l *linked) Rate(n sandbox.Network, bytes int64) error {
	l.j.note("rate %s %d", endOf(n.Path), bytes)
	return nil
}

func (l *linked) Delay(n sandbox.Network, d time.Duration) error {
	l.j.note("delay %s %v", endOf(n.Path), d)
	if l.bad != "" {
		return errors.New(l.bad)
	}
	return nil
}

// worse gives the engine's only cell a link.
func worse(e *Engine, delay, rate string) {
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
	e.Network = &linked{bridge: e.Network.(*bridge)}
	worse(e, "2ms", "8Mbit")
	tr, _ := e.Trial(t.Context(), first(e))
	if tr.Status != record.OK {
		t.Fatalf("%+v", tr.Failure)
	}
	want := []string{"attach server", "attach client", "start server", "start client",
		"rate server 1000000", "delay server 2ms", "rate client 1000000", "open collectors on server+client"}
	if d := cmp.Diff(want, j.lines[:len(want)]); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestLinkThatCannotBeMade(t *testing.T) {
	e, j := engine(t, "")
	e.Network = &linked{bridge: e.Network.(*bridge), bad: "no tun device"}
	worse(e, "2ms", "")
	tr, _ := e.Trial(t.Context(), first(e))
	if tr.Failure == nil || tr.Failure.Phase != PhaseStart || tr.Failure.Reason != "the link of server: no tun device" {
		t.Errorf("%+v", tr.Failure)
	}
	if last := j.lines[len(j.lines)-1]; last != "detach client" {
		t.Errorf("the last thing done is %q", last)
	}
	// A network that knows no such thing says so.
	e, _ = engine(t, "")
	worse(e, "", "8Mbit")
	if tr, _ = e.Trial(t.Context(), first(e)); tr.Failure == nil || tr.Failure.Phase != PhaseStart {
		t.Errorf("%+v", tr.Failure)
	}
}
