package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"tare/site/claim"
)

// TestInterrupted: what the checks of the host say when Ctrl-C has cut them short is
// no failure of theirs.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tried := (&app{}).newTries(ctx, false)
	broken := errors.New("broken")
	if got := tried.interrupted(broken); !errors.Is(got, broken) {
		t.Error(got)
	}
	if got := tried.interrupted(nil); got != nil {
		t.Error(got)
	}
	cancel()
	for _, err := range []error{nil, ctx.Err(), broken} {
		var said strings.Builder
		if code := exitCode(tried.interrupted(err), &said); code != exitInterrupted || !strings.Contains(said.String(), "starts again") {
			t.Errorf("%v: %d, %s", err, code, &said)
		}
	}
}

// TestCleanStays: clean fails for what it cannot remove, not for what somebody may need.
func TestCleanStays(t *testing.T) {
	no := errors.New("no")
	gone, kept, stuck := claim.Leftover{}, claim.Leftover{Err: no, Kept: true}, claim.Leftover{Err: no}
	if err := stays([]claim.Leftover{gone, kept}); err != nil {
		t.Error(err)
	}
	if err := stays([]claim.Leftover{gone, kept, stuck}); exitCode(err, io.Discard) != exitHost || err.Error() != "1 of 3 cannot be removed; the reasons are above" {
		t.Error(err)
	}
}

// TestLeftBehind: a verb fails if something of its study stays on the cluster, and names the command that removes it.
func TestLeftBehind(t *testing.T) {
	a := &app{}
	if err := a.leftBehind(); err != nil {
		t.Error(err)
	}
	for command, want := range map[string]int{"": exitOK, "tare clean --on k8s --study t1": exitHost} {
		a.left.Store(&command)
		var said strings.Builder
		if code := exitCode(a.leftBehind(), &said); code != want || !strings.Contains(said.String(), command) {
			t.Errorf("%q: %d, %s", command, code, &said)
		}
	}
}
