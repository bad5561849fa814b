package trial

import (
	"slices"
	"testing"
	"time"

	"tare/plan"
	"tare/record"
	"tare/sandbox"
)

// young is a kind whose sandboxes need time.
type young struct {
	*kind
	settle time.Duration
}

func (y *young) Traits(options map[string]string) sandbox.Traits {
	t := y.kind.Traits(options)
	t.Settle = y.settle
	return t
}

func TestSettle(t *testing.T) {
	for _, settle := range []time.Duration{0, 60 * time.Millisecond} {
		e, _ := engine(t, "")
		e.Kinds["process"] = &young{e.Kinds["process"].(*kind), settle}
		began := time.Now()
		trial, _ := e.Trial(t.Context(), plan.Next{Cell: e.Study.Strata[0].Cells[0], Block: 1, Attempt: 1, Seq: 1})
		if trial.Status != record.OK {
			t.Fatal(trial.Failure)
		}
		phase := func(name string) int {
			return slices.IndexFunc(trial.Phases, func(p record.Phase) bool { return p.Name == name })
		}
		if got := phase(PhaseSettle) >= 0; got != (settle > 0) {
			t.Errorf("settle %s: phases %v", settle, trial.Phases)
		}
		if settle == 0 {
			continue
		}
		// From the end of the start, which lies before the phase.
		if got := trial.Phases[phase(PhaseWarmup)].Offset - trial.Phases[phase(PhaseStart)].Offset; got < settle || time.Since(began) < settle {
			t.Errorf("the load began %s after the sandbox, want %s", got, settle)
		}
		if phase(PhaseSettle) > phase(PhaseWarmup) || phase(PhaseSettle) < phase(PhaseReady) {
			t.Errorf("phases %v", trial.Phases)
		}
	}
}

// TestSettleEnds: a timeout while a sandbox settles ends the trial as any other.
func TestSettleEnds(t *testing.T) {
	e, j := engine(t, "")
	e.Kinds["process"] = &young{e.Kinds["process"].(*kind), time.Hour}
	e.Study.Timeout = 400 * time.Millisecond
	trial, _ := e.Trial(t.Context(), plan.Next{Cell: e.Study.Strata[0].Cells[0], Block: 1, Attempt: 1, Seq: 1})
	if trial.Failure == nil || trial.Failure.Phase != PhaseSettle || trial.Failure.Kind != "hung" {
		t.Errorf("%+v", trial.Failure)
	}
	if !slices.ContainsFunc(j.lines, func(s string) bool { return s == "stop server" }) {
		t.Errorf("the sandboxes were not stopped: %q", j.lines)
	}
}
