// Package startup is the workload startup: how long a sandbox takes from the
// call that makes it to the first instruction of a program in it, or a server's
// first answer, and to its end.
//
// The data path: 1. Roles asks run to make one program a sandbox's whole life,
// some times over, each time once whole (as a user's `runc run`) and once in
// phases; of a server the life is cut when it has answered run's Probe, which
// asks it from outside in steps of a fraction of a millisecond; 2. run writes a
// workload.LaunchLine each; 3. Parse takes medians over the launches of the trial.
//
// The median, since the first launch of a trial finds cold caches, and one
// number a trial is what the comparison between blocks needs; the smallest and
// the largest are kept as samples labelled stat=min and stat=max.
package startup

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
	"tare/workload/servers"
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
	// perServer is the same of a server with its interpreter and modules.
	perServer = 3 * time.Second
)

func (startup) Name() string { return "startup" }

func (startup) About() string {
	return "makes sandboxes and lets them end: from the call to the first instruction, or a service's first answer, to the end, in phases"
}

func (startup) Params() []param.Param {
	return []param.Param{
		{Name: "repeats", Type: param.Int, Default: "5", Min: 1, Max: 1000, Help: "launches in a trial, each once whole and once in phases; the trial's figures are their medians"},
		{Name: "program", Type: param.Enum, Default: "hello", Words: []string{"hello", "true", "node", "ruby"}, Help: "hello: the smallest program, whose first instructions print; true: the host's /bin/true with its libraries; node, ruby: a web service in that language, until it answers"},
	}
}

func (startup) Responses(v param.Values) []record.Response {
	r := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
	}
	step := func(of record.Step, name, help string) record.Response {
		x := r(name, help)
		x.Step = of
		return x
	}
	create, start := step(record.RuntimeStep, "create", "the runtime's create call"), step(record.RuntimeStep, "start", "the runtime's start call")
	if _, ok := servers.Find(v.Str("program")); ok {
		answer := r("answer", "from the call to the service's first good answer")
		answer.Operation = "run"
		return []record.Response{
			answer, create, start,
			step(record.ProgramStep, "ready", "from the return of the start call to the first good answer"),
			r("delete", "from the answer, when the sandbox is killed, to all of it gone"),
		}
	}
	total := r("total", "from the call to its return, all of the sandbox gone")
	total.Operation = "run"
	out := []record.Response{total, create, start, step(record.RuntimeStep, "delete", "from the program's end to all of the sandbox gone")}
	if v.Str("program") == "hello" {
		out = slices.Insert(out, 1, r("instruction", "from the call to the first byte that the program printed"))
		out = append(out, step(record.ProgramStep, "exit", "from the first byte to the program's end being seen"))
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
	if s, ok := servers.Find(v.Str("program")); ok {
		r.Args, r.Image, r.Probe = s.Args, s.Image, &s.Probe
		r.Expect = time.Duration(r.Count) * perServer
	}
	return []workload.Role{r}, nil
}

// Parse reads LaunchLines. A figure that the kind of sandbox does not have (a
// process has no create) is left out.
func (startup) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	_, serves := servers.Find(v.Str("program"))
	lines, err := output.Lines(out, "a launch", func(l workload.LaunchLine) error { return check(l, serves) })
	if err != nil {
		return rd, fmt.Errorf("startup: %w", err)
	}
	times := map[string][]float64{}
	ends, end := map[string][]time.Duration{}, time.Duration(0) // of the launches, if one followed the other at once
	whole, phased := 0, 0
	for _, l := range lines {
		if l.Mode == "whole" {
			whole++
		} else {
			phased++
		}
		end += time.Duration(l.Deleted * 1e9)
		found := lived(l, v.Str("program") == "hello")
		if serves {
			found = served(l)
		}
		for _, s := range found {
			times[s.name], ends[s.name] = append(times[s.name], s.seconds), append(ends[s.name], end)
		}
	}
	if want := v.Int("repeats"); whole != want || phased > want {
		return rd, fmt.Errorf("startup: %d whole and %d phased launches are reported, %d of each were asked for (repeats)", whole, phased, want)
	}
	for _, r := range (startup{}).Responses(v) {
		if ts := times[r.Name]; len(ts) > 0 {
			output.Repeats(&rd, r.Name, record.Second, ends[r.Name], ts)
		}
	}
	return rd, nil
}

// check refuses times that cannot be.
func check(l workload.LaunchLine, serves bool) error {
	if l.Mode != "whole" && l.Mode != "phased" {
		return fmt.Errorf("the mode %q is neither whole nor phased", l.Mode)
	}
	for _, t := range []float64{l.Created, l.Started, l.Instruction, l.Answered, l.Exited, l.Deleted} {
		if t < 0 || t > maxSeconds { // JSON knows no NaN
			return fmt.Errorf("the time %g s is out of range", t)
		}
	}
	if l.Deleted <= 0 {
		return errors.New("the end (deleted_s) is missing")
	}
	if serves && l.Answered <= 0 {
		return errors.New("the first answer (answered_s) is missing")
	}
	// The start call may return after the program has ended, so that these are
	// the only two orders that must hold.
	if l.Started > 0 && l.Started < l.Created || l.Deleted < max(l.Exited, l.Instruction, l.Answered) {
		return errors.New("the steps go back in time")
	}
	return nil
}

type step struct {
	name    string
	seconds float64
}

// served takes the launch of a server apart.
func served(l workload.LaunchLine) []step {
	if l.Mode == "whole" {
		return []step{{"answer", l.Answered}}
	}
	out := []step{{"delete", l.Deleted - l.Answered}}
	if l.Created > 0 {
		out = append(out, step{"create", l.Created})
	}
	if l.Started > 0 {
		out = append(out, step{"start", l.Started - l.Created})
		// A service can answer before the call that started it has returned.
		if l.Answered > l.Started {
			out = append(out, step{"ready", l.Answered - l.Started})
		}
	}
	return out
}

// lived takes one launch of a program that ends by itself apart. What is zero was
// not seen, and has no step.
func lived(l workload.LaunchLine, prints bool) []step {
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
