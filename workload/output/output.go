// Package output reads a role's output, with a bound. Every workload's Parse uses it, so that a
// sandbox cannot fill the harness's memory.
//
// The data path: 1. inside the sandbox, a driver keeps its child's output in a Tail, and quotes
// its end if the child failed; 2. Read reads a role's standard output up to Limit, and Lines
// parses the lines of JSON that run wrote; 3. the workload parses the bytes; 4. Repeats
// summarises what a trial did several times.
package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limit is the largest output, in bytes, that a workload parses. The largest real output, a
// minute of interval series of 64 connections, is under 1 MiB; fio's with full histograms is a
// few MiB.
const Limit = 64 << 20

// ErrEmpty means that a role printed only white space.
var ErrEmpty = errors.New("the output is empty: the program printed no report; its standard error says why")

// ErrTooLong means that a role printed more than Limit.
var ErrTooLong = fmt.Errorf("the output is longer than %d MiB, too long for a report; see the raw output that is kept with the trial", Limit>>20)

// Read returns all of r. It never holds more than Limit bytes and one read more. A longer output
// is ErrTooLong, one with only white space ErrEmpty.
func Read(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, Limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the output: %w", err)
	}
	if len(b) > Limit {
		return nil, ErrTooLong
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, ErrEmpty
	}
	return b, nil
}

// JSON reads a role's output that is one value of JSON.
func JSON[T any](r io.Reader) (out T, err error) {
	b, err := Read(r)
	if err == nil {
		if err = json.Unmarshal(b, &out); err != nil {
			err = fmt.Errorf("the output is not JSON, or is cut off: %w", err)
		}
	}
	return out, err
}
