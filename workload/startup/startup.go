// Package startup is the workload startup: the time of a sandbox from the call that makes it to
// the first instruction of its program, or a server's first answer, and to its end.
//
// The data path: 1. Roles asks run to launch a sandbox with one program, several times, each
// time once whole (as a user's `runc run`) and once in phases; a server is ended when it has
// answered run's Probe, which asks it from outside in steps of a fraction of a millisecond;
// 2. run writes a workload.LaunchLine for each; 3. Parse takes the medians over the launches.
//
// It takes the median because the first launch of a trial finds cold caches, and a comparison
// needs one number for each trial. The smallest and the largest are samples with the labels
// stat=min and stat=max.
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
	// maxSeconds bounds the time of one launch: more than a day cannot be a measurement.
	maxSeconds = 86400
	// perLaunch is a guess of the time of one whole and one phased launch, for the plan: gVisor
	// takes about a quarter of a second for each.
	perLaunch = 500 * time.Millisecond
	// perServer is the same of a server with its interpreter and modules.
	perServer = 3 * time.Second
	// perPull estimates the time of one image pull.
	perPull = 4 * time.Second
)

// Values of the parameter image.
const (
	imageWarm = "warm"
	imageCold = "cold"
)

func (startup) Name() string { return "startup" }

func (startup) About() string {
	return "makes sandboxes and lets them end: from the call to the first instruction, or a service's first answer, to the end, in phases"
}

func (startup) Params() []param.Param {
	return []param.Param{
		{Name: "repeats", Type: param.Int, Default: "5", Min: 1, Max: 1000, Help: "launches in a trial, each once whole and once in phases; the trial's figures are their medians"},
		{Name: "burst", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "sandboxes that each launch makes at once"},
		{Name: "node-fill", Type: param.Int, Default: "0", Max: 95, Help: "percent of the pods that the node takes which wait there meanwhile, as small as pods are; on a cluster"},
		{Name: "image", Type: param.Enum, Default: imageWarm, Words: []string{imageWarm, imageCold}, Help: "warm: the node has the image; cold: the node pulls the image for each launch; on a cluster"},
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
		Name: "main", Mode: workload.Launch, Count: v.Int("repeats") * v.Int("burst"), Burst: v.Int("burst"), Fill: v.Int("node-fill"), Cold: v.Str("image") == imageCold, Args: []string{"/tare-hello"},
	}
	r.Expect = time.Duration(r.Count) * perLaunch
	if v.Str("program") == "true" {
		// Give the path: a runtime would search a name in the sandbox's PATH, which costs time that
		// most programs of a bundle do not need.
		r.Args, r.Needs = []string{"/bin/true"}, []string{"true"}
	}
	if s, ok := servers.Find(v.Str("program")); ok {
		r.Args, r.Image, r.Probe = s.Args, s.Image, &s.Probe
		r.Expect = time.Duration(r.Count) * perServer
	}
	if r.Cold {
		r.Expect += time.Duration(r.Launches()) * perPull
	}
	return []workload.Role{r}, nil
}

// Parse reads LaunchLines. It leaves out figures that the kind of sandbox lacks (a process has no
// create).
func (startup) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	_, serves := servers.Find(v.Str("program"))
	lines, err := output.Lines(out, "a launch", func(l workload.LaunchLine) error { return check(l, serves) })
	if err != nil {
		return rd, fmt.Errorf("startup: %w", err)
	}
	times := map[string][]float64{}
	ends, end := map[string][]time.Duration{}, time.Duration(0) // of the launches, as if they followed each other without a pause
	whole, phased := 0, 0
	for _, l := range lines {
		if l.Mode == "whole" {
			whole++
		} else {
			phased++
		}
		end += time.Duration(l.Deleted * 1e9)
		for _, s := range steps(l, v.Str("program") == "hello", serves) {
			times[s.name], ends[s.name] = append(times[s.name], s.seconds), append(ends[s.name], end)
		}
	}
	if want := v.Int("repeats") * v.Int("burst"); whole != want || phased > want {
		return rd, fmt.Errorf("startup: the report has %d whole and %d phased launches, but %d of each were requested (repeats, burst)", whole, phased, want)
	}
	for _, r := range (startup{}).Responses(v) {
		if ts := times[r.Name]; len(ts) > 0 {
			output.Repeats(&rd, r.Name, record.Second, ends[r.Name], ts)
		}
	}
	return rd, nil
}

// check refuses impossible times.
func check(l workload.LaunchLine, serves bool) error {
	if l.Mode != "whole" && l.Mode != "phased" {
		return fmt.Errorf("unknown mode %q; expected whole or phased", l.Mode)
	}
	for _, t := range []float64{l.Created, l.Started, l.Instruction, l.Answered, l.Exited, l.Deleted} {
		if t < 0 || t > maxSeconds { // JSON has no NaN
			return fmt.Errorf("the time %g s is out of range", t)
		}
	}
	if l.Deleted <= 0 {
		return errors.New("the end (deleted_s) is missing")
	}
	if serves && l.Answered <= 0 {
		return errors.New("the first answer (answered_s) is missing")
	}
	// The start call may return after the program has ended, so only these two orders must hold.
	if l.Started > 0 && l.Started < l.Created || l.Deleted < max(l.Exited, l.Instruction, l.Answered) {
		return errors.New("the times of the steps are not in order")
	}
	return nil
}

type step struct {
	name    string
	seconds float64
}

// steps returns the steps of a launch: of a server, or of a program that ends by itself. A time of
// zero was not seen, and has no step.
func steps(l workload.LaunchLine, prints, serves bool) []step {
	out := []step{{"create", l.Created}, {"start", l.Started - l.Created}}
	switch {
	case l.Mode == "whole" && serves:
		return []step{{"answer", l.Answered}}
	case l.Mode == "whole":
		out = []step{{"total", l.Deleted}}
		if prints {
			out = append(out, step{"instruction", l.Instruction})
		}
	case serves:
		out = append(out, step{"delete", l.Deleted - l.Answered})
		if l.Started > 0 { // a service can answer before the call that started it has returned
			out = append(out, step{"ready", l.Answered - l.Started})
		}
	default:
		// The first byte and the end arrive by two ways. If the end was seen first, this launch has
		// no figure.
		if prints && l.Instruction > 0 {
			out = append(out, step{"exit", l.Exited - l.Instruction})
		}
		if l.Exited > 0 {
			out = append(out, step{"delete", l.Deleted - l.Exited})
		}
	}
	return slices.DeleteFunc(out, func(s step) bool { return s.seconds <= 0 })
}
