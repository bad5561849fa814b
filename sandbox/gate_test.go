package sandbox_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tare/sandbox"
)

// TestGateAsks lets a hundred commands ask for their clocks at once. Few may do so at the same time, and all of them in the end.
func TestGateAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := sandbox.NewGate(100)
		var now, most, asked atomic.Int32
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				err := g.Ask(t.Context(), func() error {
					n := now.Add(1)
					time.Sleep(time.Millisecond)
					most.Store(max(most.Load(), n))
					asked.Add(1)
					now.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if asked.Load() != 100 || most.Load() < 2 || most.Load() > 16 {
			t.Errorf("%d asked, at most %d at the same time", asked.Load(), most.Load())
		}
	})
}

// TestGateAskEnds: whoever waits for a turn goes when the command ends.
func TestGateAskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := sandbox.NewGate(2)
		held := make(chan struct{})
		for range 100 {
			go func() { _ = g.Ask(t.Context(), func() error { <-held; return nil }) }()
		}
		synctest.Wait()
		ended, end := context.WithCancelCause(t.Context())
		why := errors.New("the command ended")
		end(why)
		if err := g.Ask(ended, func() error { return nil }); !errors.Is(err, why) {
			t.Errorf("it said %v", err)
		}
		close(held)
	})
}
