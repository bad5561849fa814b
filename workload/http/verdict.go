package httpload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// summary is the JSON that wrk.lua prints after "TARE ".
type summary struct {
	Duration int64 `json:"duration_us"`
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
	Errors   struct {
		Connect int64 `json:"connect"`
		Read    int64 `json:"read"`
		Write   int64 `json:"write"`
		Status  int64 `json:"status"`
		Timeout int64 `json:"timeout"`
	} `json:"errors"`
	Wrong       int64      `json:"wrong"`
	WrongStatus int64      `json:"wrong_status"`
	WrongLength int64      `json:"wrong_length"`
	Latency     [][2]int64 `json:"latency_us"`

	merged string // the histogram of several, in the place of Latency
}

const marker = "\nTARE "

// readSummary finds the script's line after wrk's own output.
func readSummary(out []byte) (summary, error) {
	var s summary
	i := bytes.LastIndex(out, []byte(marker))
	if i < 0 {
		return s, errors.New("wrk printed no summary")
	}
	line, _, whole := bytes.Cut(out[i+len(marker):], []byte("\n"))
	if !whole {
		return s, errors.New("the summary of wrk is cut off")
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return s, fmt.Errorf("the summary of wrk: %w", err)
	}
	return s, nil
}

// judge returns an error if some of wrk's answers were wrong. answer is the length of each, in
// bytes.
func (s *summary) judge(t target, answer int64, connections int) error {
	e := s.Errors
	path := t.url.RequestURI()
	switch {
	case s.Wrong > 0:
		return fmt.Errorf("%d of %d answers to GET %s were wrong: one had status %d and a body of %d B, want 200 and %d",
			s.Wrong, s.Requests, path, s.WrongStatus, s.WrongLength, t.body)
	case e.Status > 0:
		return fmt.Errorf("%d of %d answers to GET %s had a status of 400 or above, want 200", e.Status, s.Requests, path)
	case e.Timeout > 0:
		return fmt.Errorf("%d of %d answers to GET %s took longer than the timeout %s; ask for fewer connections, or raise timeout",
			e.Timeout, s.Requests, path, t.timeout)
	case e.Connect > 0:
		return fmt.Errorf("%d connections to the server were refused: it ended, or cannot serve %d connections", e.Connect, connections)
	case e.Read > 0 || e.Write > 0:
		return fmt.Errorf("%d times a connection broke while an answer was read, %d times while a request was written: the server closed it or crashed",
			e.Read, e.Write)
	case s.Requests == 0:
		return fmt.Errorf("no answer to GET %s within %s: the server hangs, or duration is too short", path,
			time.Duration(s.Duration)*time.Microsecond)
	}
	// At the end each connection has at most one answer in progress, whose bytes count
	// although the answer does not.
	if answer == 0 { // not known, or not the same for all
		return nil
	}
	rest := s.Bytes - s.Requests*answer
	if rest < 0 || rest > int64(connections)*answer {
		return fmt.Errorf("%d answers to GET %s had %d B, which is not %d B each: some had a different length", s.Requests, path, s.Bytes, answer)
	}
	return nil
}
