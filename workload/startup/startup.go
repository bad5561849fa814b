// Package startup is the workload startup: how long a sandbox takes from the
// call that makes it to the first instruction of a program in it, and to its
// end.
//
// The data path: 1. Roles asks run to make one short program a sandbox's whole
// life, some times over, each time once whole (as a user's `runc run`) and once
// in phases; 2. run writes a workload.LaunchLine each; 3. Parse takes medians
// over the launches of the trial.
//
// The median, since the first launch of a trial finds cold caches, and one
// number a trial is what the comparison between blocks needs; the smallest and
// the largest are kept as samples labelled stat=min and stat=max.
package startup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return startup{} }

type startup struct{}

const (
	// maxSeconds bounds a time of one launch: more than a day is no measurement.
	maxSeconds = 86400
	// perLaunch is a guess of one whole and one phased launch together, for the
	// plan: gVisor takes about a quarter of a second each.
	perLaunch = 500 * time.Millisecond
	maxLine   = 4 << 10
)

func (startup) Name() string { return "startup" }

func (startup) About() string {
	return "makes sandboxes and lets them end: from the call to the first instruction to the end, in phases"
}

func (startup) Params() []param.Param {
	return []param.Param{
		{Name: "repeats", Type: param.Int, Default: "5", Min: 1, Max: 1000, Help: "launches in a trial, each once whole and once in phases; the trial's figures are their medians"},
		{Name: "program", Type: param.Enum, Default: "hello", Words: []string{"hello", "true"}, Help: "hello: the smallest program, whose first instructions print; true: the host's /bin/true with its libraries"},
	}
}

func (startup) Responses(v param.Values) []record.Response {
	r := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
	}
	out := []record.Response{
		r("total", "from the call to its return, all of the sandbox gone"),
		r("create", "the runtime's create call"),
		r("start", "the runtime's start call"),
		r("delete", "from the program's end to all of the sandbox gone"),
	}
	if v.Str("program") == "hello" {
		out = slices.Insert(out, 1, r("instruction", "from the call to the first byte that the program printed"))
		out = append(out, r("exit", "from the first byte to the program's end being seen"))
	}
	return out
}

func (startup) Roles(v param.Values) ([]workload.Role, error) {
	r := workload.Role{
		Name: "main", Mode: workload.Launch, Count: v.Int("repeats"), Args: []string{"/tare-hello"},
		Expect: time.Duration(v.Int("repeats")) * perLaunch,
	}
	if v.Str("program") == "true" {
		// The path, not the word: a runtime looks a word up in the sandbox's PATH,
		// which is work that other programs of a bundle rarely ask for.
		r.Args, r.Needs = []string{"/bin/true"}, []string{"true"}
	}
	return []workload.Role{r}, nil
}

// Parse reads LaunchLines. A figure that the kind of sandbox does not have (a
// process has no create) is left out.
func (startup) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	b, err := output.Read(out)
	if err != nil {
		return rd, fmt.Errorf("startup: %w", err)
	}
	times := map[string][]float64{}
	whole, phased := 0, 0
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var l workload.LaunchLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return rd, fmt.Errorf("startup: line %d is not the JSON of a launch: %w", n, err)
		}
		if err := check(l); err != nil {
			return rd, fmt.Errorf("startup: line %d: %w", n, err)
		}
		if l.Mode == "whole" {
			whole++
		} else {
			phased++
		}
		for _, s := range steps(l, v.Str("program") == "hello") {
			times[s.name] = append(times[s.name], s.seconds)
		}
	}
	if err := sc.Err(); err != nil {
		return rd, fmt.Errorf("startup: reading the launches: %w", err)
	}
	if want := v.Int("repeats"); whole != want || phased > want {
		return rd, fmt.Errorf("startup: %d whole and %d phased launches are reported, %d of each were asked for (repeats)", whole, phased, want)
	}
	for _, r := range (startup{}).Responses(v) {
		ts := times[r.Name]
		if len(ts) == 0 {
			continue
		}
		slices.Sort(ts)
		add := func(labels record.Labels, x float64) {
			rd.Samples = append(rd.Samples, record.Sample{Name: r.Name, Labels: labels, Unit: record.Second, Kind: record.Value, Value: x})
		}
		add("", median(ts))
		add(record.MakeLabels("stat", "min"), ts[0])
		add(record.MakeLabels("stat", "max"), ts[len(ts)-1])
	}
	return rd, nil
}

// check refuses times that cannot be.
func check(l workload.LaunchLine) error {
	if l.Mode != "whole" && l.Mode != "phased" {
		return fmt.Errorf("the mode %q is neither whole nor phased", l.Mode)
	}
	for _, t := range []float64{l.Created, l.Started, l.Instruction, l.Exited, l.Deleted} {
		if t < 0 || t > maxSeconds { // JSON knows no NaN
			return fmt.Errorf("the time %g s is out of range", t)
		}
	}
	if l.Deleted <= 0 {
		return errors.New("the end (deleted_s) is missing")
	}
	// The start call may return after the program has ended, so that these are
	// the only two orders that must hold.
	if l.Started > 0 && l.Started < l.Created || l.Deleted < l.Exited || l.Deleted < l.Instruction {
		return errors.New("the steps go back in time")
	}
	return nil
}

type step struct {
	name    string
	seconds float64
}

// steps takes one launch apart. What is zero was not seen, and has no step.
func steps(l workload.LaunchLine, prints bool) []step {
	var out []step
	if l.Mode == "whole" {
		out = append(out, step{"total", l.Deleted})
		if prints && l.Instruction > 0 {
			out = append(out, step{"instruction", l.Instruction})
		}
		return out
	}
	if l.Created > 0 {
		out = append(out, step{"create", l.Created})
	}
	if l.Started > 0 {
		out = append(out, step{"start", l.Started - l.Created})
	}
	// The byte and the end arrive by two ways; when the end came first in a
	// photo finish, this launch has no figure.
	if prints && l.Instruction > 0 && l.Exited > l.Instruction {
		out = append(out, step{"exit", l.Exited - l.Instruction})
	}
	if l.Exited > 0 {
		out = append(out, step{"delete", l.Deleted - l.Exited})
	}
	return out
}

// median of sorted, non-empty values.
func median(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
