package trial

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/plan"
	"tare/record"
)

func first(e *Maker) plan.Next {
	return plan.Next{Cell: e.Study.Strata[0].Cells[0], Seq: 1, Block: 1, Attempt: 1}
}

// The order of a trial is a promise: set-up, warm-up, run, tear-down, whatever
// fails.
func TestOrderOfATrial(t *testing.T) {
	before := []string{
		"attach server", "attach client", "start server", "start client",
		"open collectors on server+client", "exec serve", "exec call 198.18.0.2:1",
	}
	after := []string{"close collectors", "stop server", "stop client", "detach server", "detach client", "release x-1"}
	ended, parsed := []string{"ended server"}, []string{"ended server", "parse server", "parse client"}
	tests := []struct {
		bad               string
		want              []string
		kind, phase, text string
	}{
		{bad: "", want: slices.Concat(before, parsed, after)},
		{bad: "garbage", want: slices.Concat(before, parsed, after), kind: record.Unfit, phase: PhaseFinish, text: "; its output ends with: words"},
		{bad: "all refused", want: slices.Concat(before, parsed, after), kind: record.Refused, phase: PhaseFinish, text: "no right"},
		{bad: "start server", want: []string{"attach server", "attach client", "start server", "detach server", "detach client", "release x-1"},
			kind: "start", phase: PhaseStart, text: "no kernel"},
		{bad: "start client", want: []string{"attach server", "attach client", "start server", "start client", "stop server", "detach server", "detach client", "release x-1"},
			kind: "start", phase: PhaseStart, text: "no kernel"},
		{bad: "no image for client", want: []string{"attach server", "attach client", "start server", "start client", "stop server", "detach server", "detach client", "release x-1"},
			kind: record.NoImage, phase: PhaseStart, text: "node a cannot pull"},
		{bad: "refuse client", want: []string{"attach server", "attach client", "start server", "start client", "stop server", "detach server", "detach client", "release x-1"},
			kind: record.Refused, phase: PhaseStart, text: "it may not"},
		{bad: "die server", want: slices.Concat(before[:6], after), kind: "died", phase: PhaseReady, text: "the sandbox ended"},
		{bad: "hang server", want: slices.Concat(before[:6], after), kind: "hung", phase: PhaseReady, text: "timeout"},
		{bad: "die client", want: slices.Concat(before, ended, after), kind: "died", phase: PhaseRun, text: "the sandbox ended"},
		{bad: "oom client", want: slices.Concat(before, ended, after), kind: "memory", phase: PhaseRun, text: "out of memory"},
		{bad: "exit client", want: slices.Concat(before, ended, after), kind: "disk", phase: PhaseRun, text: "No space left"},
		{bad: "hang client", want: slices.Concat(before, ended, after), kind: "hung", phase: PhaseRun, text: "timeout"},
		{bad: "hang and lose client", want: slices.Concat(before, ended, after), kind: record.NodeLost, phase: PhaseRun, text: "node a: the cluster does not reach"},
		{bad: "stop server", want: slices.Concat(before, parsed, after)},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.bad, " ", "-"), func(t *testing.T) {
			e, j := engine(t, tt.bad)
			trial, _ := e.Trial(t.Context(), first(e))
			if d := cmp.Diff(tt.want, j.lines); d != "" {
				t.Errorf("order (-want +got):\n%s", d)
			}
			f := trial.Failure
			switch {
			case tt.kind == "" && trial.Status != record.OK:
				t.Fatalf("failed: %+v", f)
			case tt.kind != "" && (trial.Status != record.Failed || f.Kind != tt.kind || f.Phase != tt.phase || !strings.Contains(f.Reason, tt.text)):
				t.Errorf("status %s, failure %+v; want kind %s in phase %s with %q", trial.Status, f, tt.kind, tt.phase, tt.text)
			}
			if (tt.bad == "garbage" || tt.bad == "refuse client") && f.Tail != "words" {
				t.Errorf("the tail is %q, and not what the program printed, or the site said", f.Tail)
			}
			if tt.bad == "stop server" && (len(trial.Warnings) != 1 || trial.Warnings[0].Code != "left-behind") {
				t.Errorf("warnings %v", trial.Warnings)
			}
		})
	}
}

func TestPhasesFollowEachOther(t *testing.T) {
	e, _ := engine(t, "")
	trial, evidence := e.Trial(t.Context(), first(e))
	var names []string
	at := time.Duration(0)
	for _, p := range trial.Phases {
		names = append(names, p.Name)
		if p.Name != PhaseFinish && p.Offset < at {
			t.Errorf("phase %s begins at %s, before the one before it ended (%s)", p.Name, p.Offset, at)
		}
		at = p.Offset + p.Duration
	}
	want := []string{PhasePrepare, PhaseStart, PhaseReady, PhaseWarmup, PhaseRun, PhaseFinish, PhaseStop, PhaseCleanup}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if len(evidence.Series) != 1 || len(evidence.Series[0].V) < 5 {
		t.Errorf("series %+v", evidence.Series)
	}
	if !slices.ContainsFunc(trial.Samples, func(s record.Sample) bool {
		return s.Name == "reads_rate" && s.Unit == record.PerSecond && s.Value > 0
	}) {
		t.Errorf("no rate of the counter in %+v", trial.Samples)
	}
	if trial.Facts["server.runtime"] != "process" || trial.Facts["server.family"] != "native" || trial.Facts["server.where"] != record.WhereNative || trial.Facts["collector.meter"] != "a register" {
		t.Errorf("facts %v", trial.Facts)
	}
}

// TestInterruptedTrialIsCleanedUp: the end of a trial has time of its own.
func TestInterruptedTrialIsCleanedUp(t *testing.T) {
	e, j := engine(t, "hang client")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if trial, _ := e.Trial(ctx, first(e)); trial.Status != record.Failed {
		t.Errorf("status %s", trial.Status)
	}
	if !slices.Contains(j.lines, "stop client") || j.lines[len(j.lines)-1] != "release x-1" {
		t.Errorf("not cleaned up: %v", j.lines)
	}
}

func FuzzReadyIsFoundInAnyPieces(f *testing.F) {
	f.Add("noise\nlistening on 1\n", 3)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		if piece < 1 || piece > len(text) {
			return
		}
		whole, pieces := newOutput("r", "stdout", "listening"), newOutput("r", "stdout", "listening")
		_, _ = whole.Write([]byte(text))
		for chunk := range slices.Chunk([]byte(text), piece) {
			_, _ = pieces.Write(chunk)
		}
		seen := func(o *output) bool {
			select {
			case <-o.seen:
				return true
			default:
				return false
			}
		}
		if seen(whole) != seen(pieces) {
			t.Errorf("%q: whole %v, in pieces of %d %v", text, seen(whole), piece, seen(pieces))
		}
	})
}
