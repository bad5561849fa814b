package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTriesTellOfWhatTakesLong: a quick trial is silent, a long one is told once with its
// bound, and what an interrupt cuts short is named.
func TestTriesTellOfWhatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		a := newApp(io.Discard, &said)
		ctx, cancel := context.WithCancel(t.Context())
		quiet, told := a.newTries(ctx, true), a.newTries(ctx, false)
		try := func(what string, within, takes time.Duration) {
			a, b := quiet.begin(what, within), told.begin(what, within)
			time.Sleep(takes)
			synctest.Wait()
			a()
			b()
		}
		try("runc", 0, trySoon-time.Millisecond)
		if said.Len() > 0 {
			t.Errorf("of a quick one: %q", said.String())
		}
		try("vm-hang", 90*time.Second, time.Minute)
		try("runsc-kvm", 0, time.Minute)
		if got, want := said.String(), "tare: trying vm-hang, at most 1 min 30 s\ntare: trying runsc-kvm\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if err := told.interrupted(nil); err != nil {
			t.Error(err)
		}
		done := told.begin("vm-hang", 0)
		cancel()
		done()
		told.begin("runc", 0)()
		time.Sleep(time.Minute)
		synctest.Wait()
		if strings.Count(said.String(), "\n") > 2 {
			t.Errorf("after the interrupt: %q", said.String())
		}
		want := "interrupted while trying vm-hang, before anything was measured; the same command starts again"
		if err := told.interrupted(errors.New("vm-hang: context canceled")); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	})
}
