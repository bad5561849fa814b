// Package output reads what a role printed, with a bound. Every workload's Parse
// begins here, so that no sandbox can fill the harness's memory.
//
// The data path: 1. inside the sandbox, a driver keeps what its own child prints in a
// Tail, and quotes the end of it when it failed; 2. Read takes a role's standard
// output up to Limit, and Lines takes the lines of JSON that run wrote apart;
// 3. the workload parses the bytes; 4. Repeats sums up what a trial did several
// times.
package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limit is the largest output, in bytes, that a workload parses. The largest
// honest output seen, a minute of interval series of 64 connections, is under
// 1 MiB; fio with full histograms a few MiB.
const Limit = 64 << 20

// ErrEmpty says that a role printed nothing but white space.
var ErrEmpty = errors.New("the output is empty: the program printed no report; its standard error says why")

// ErrTooLong says that a role printed more than Limit.
var ErrTooLong = fmt.Errorf("the output is longer than %d MiB: that is no report; read the raw output kept beside the trial", Limit>>20)

// Read returns all of r. It never holds more than Limit bytes and one read
// beyond; a longer output is ErrTooLong, one without a visible byte ErrEmpty.
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
