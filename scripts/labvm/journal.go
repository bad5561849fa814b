package main

import (
	"fmt"
	"io"

	"tare/workload/output"
)

// journal records what a step did, to show it if the step fails. It is safe for concurrent
// use. The end of a log is the most useful part.
type journal struct {
	output.Tail
	live io.Writer // gets everything immediately; nil: nobody does
}

// Write never fails.
func (j *journal) Write(p []byte) (int, error) {
	if j.live != nil {
		_, _ = j.live.Write(p)
	}
	return j.Tail.Write(p)
}

func (j *journal) printf(format string, args ...any) { fmt.Fprintf(j, format, args...) }
