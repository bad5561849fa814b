package main

import (
	"fmt"
	"io"
	"sync"
)

// journal records what a step did, to show it if the step fails. It is safe for concurrent
// use.
type journal struct {
	mu   sync.Mutex
	text []byte
	cut  bool
	live io.Writer // gets everything immediately; nil: nobody does
}

// kept bounds a journal, in bytes. The end of a log is the most useful part.
const kept = 64 << 10

// Write never fails.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text = append(j.text, p...)
	if over := len(j.text) - kept; over > 0 {
		j.text = append(j.text[:0], j.text[over:]...)
		j.cut = true
	}
	if j.live != nil {
		_, _ = j.live.Write(p)
	}
	return len(p), nil
}

func (j *journal) printf(format string, args ...any) { fmt.Fprintf(j, format, args...) }

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cut {
		return "[...]" + string(j.text)
	}
	return string(j.text)
}
