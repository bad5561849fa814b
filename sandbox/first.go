package sandbox

import (
	"io"
	"sync"
	"time"
)

// FirstWrite notes when it was first written to. It is safe for concurrent use.
type FirstWrite struct {
	To io.Writer // gets what is written; nil discards. Its errors are dropped

	mu sync.Mutex
	at time.Time
}

// Write never fails.
func (f *FirstWrite) Write(p []byte) (int, error) {
	f.mu.Lock()
	if f.at.IsZero() && len(p) > 0 {
		f.at = time.Now()
	}
	f.mu.Unlock()
	if f.To != nil {
		_, _ = f.To.Write(p)
	}
	return len(p), nil
}

// Since is the time from a moment to the first byte; zero if none came.
func (f *FirstWrite) Since(begun time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() {
		return 0
	}
	return f.at.Sub(begun)
}
