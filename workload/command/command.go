// Package command is the workload command: a program of the user's own, run to its end in a
// sandbox several times.
//
// The data path: 1. Roles splits the command into words and asks for its files: the host's own
// root file system, or an image, and the directories that the user mounts; 2. package timed, in
// the sandbox, runs the program, reads the clock before and after, and asks the kernel what it
// used; 3. Parse makes the trial's figures of the runs: wall, user, system, peak_memory.
package command

import (
	"fmt"
	"io"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/figures"
	"tare/workload/output"
	"tare/workload/timed"
)

// New returns the workload.
func New() workload.Workload { return command{} }

type command struct{}

const operation = "run"

// kept is how much of a run's standard output figures are looked for in, in bytes: its end.
const kept = 1 << 20

func (command) Name() string { return "command" }

func (command) About() string {
	return "your own program, run to its end: its time, its processor time and its memory"
}

func (command) Params() []param.Param {
	return append([]param.Param{
		{Name: "command", Type: param.String, Default: "true", Help: "program and arguments, split into words as a shell does it: quotes work, nothing is expanded"},
		{Name: "prepare", Type: param.String, Help: "command before each run; it is not timed"},
		{Name: "input", Type: param.String, Help: "file of the host for standard input, an absolute path; empty: nothing"},
		{Name: "warmup", Type: param.Int, Default: "0", Min: 0, Max: timed.MaxRuns, Help: "runs before the first timed one"},
		{Name: "repeats", Type: param.Int, Default: "1", Min: 1, Max: timed.MaxRuns, Help: "timed runs in a trial, at least; the trial's figures are their medians"},
		{Name: "fill", Type: param.Duration, Default: "0s", Min: 0, Max: 3600, Help: "more runs are made until they have taken this long together"},
		{Name: "expect", Type: param.Duration, Default: "1s", Min: 0, Max: 86400, Help: "about how long one run takes, for the plan"},
		{Name: "timeout", Type: param.Duration, Default: "1m", Min: 0.01, Max: 86400, Help: "a run that takes longer fails the trial"},
		{Name: "exit", Type: param.String, Default: "0", Help: "exit codes that count as success, joined by commas, or any"},
	}, append(surroundings(), figures.Params()...)...)
}

func (command) Responses(v param.Values) []record.Response {
	f, err := figures.Parse(v, taken()...)
	if err != nil {
		return own() // Roles says what is wrong
	}
	return append(own(), f.Responses()...)
}

// taken are the names that a figure must not have.
func taken() []string {
	var out []string
	for _, r := range own() {
		out = append(out, r.Name)
	}
	return append(out, record.Runs)
}

// own are the responses of every command.
func own() []record.Response {
	return []record.Response{
		{Name: "wall", Unit: record.Second, Better: record.Lower, Operation: operation, Help: "time of a run, from before its start to after its end; the start of the sandbox is not in it"},
		{Name: "user", Unit: record.Second, Better: record.Lower, Help: "processor time of a run in its own code, as the kernel that it runs on counts it"},
		{Name: "system", Unit: record.Second, Better: record.Lower, Help: "processor time of a run in that kernel"},
		{Name: "peak_memory", Unit: record.Byte, Better: record.Lower, Help: "most memory that the largest process of a run held at a time"},
	}
}

func (command) Roles(v param.Values) ([]workload.Role, error) {
	r := workload.Role{Name: "main", Mode: workload.Exec, Lifecycle: true}
	args, err := words(v, "command")
	if err != nil {
		return nil, err
	}
	p := timed.Runs{Command: args, Limit: v.Duration("timeout"), Repeats: v.Int("repeats"), Fill: v.Duration("fill")}
	if p.Prepare, err = words(v, "prepare"); err != nil {
		return nil, err
	}
	if p.Exit, err = exits(v.Str("exit")); err != nil {
		return nil, err
	}
	if err := surround(v, &r, &p); err != nil {
		return nil, err
	}
	f, err := figures.Parse(v, taken()...)
	if err != nil {
		return nil, err
	}
	if !f.Empty() {
		p.Keep = kept
	}
	if r.Args, err = p.Args(); err != nil {
		return nil, err
	}
	one := v.Duration("expect")
	r.Expect = max(time.Duration(p.Repeats)*one, p.Fill)
	runs := p.Repeats
	if n := v.Int("warmup"); n > 0 {
		p.Repeats, p.Fill, p.Quiet = n, 0, true
		if r.Before, err = p.Args(); err != nil {
			return nil, err
		}
		runs += n
	}
	r.Within = min(time.Duration(runs)*p.Limit+v.Duration("fill"), timed.MaxTime)
	return []workload.Role{r}, nil
}

// tick is how finely some sandboxes count processor time: gVisor, and kernels without
// CONFIG_VIRT_CPU_ACCOUNTING.
const tick = 10 * time.Millisecond

func (command) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	runs, err := timed.ReadRuns(out)
	if err != nil {
		return rd, fmt.Errorf("command: %w", err)
	}
	var memory []float64
	var user, system []time.Duration
	for _, r := range runs {
		user, system = append(user, time.Duration(r.User)), append(system, time.Duration(r.System))
		if r.Memory > 0 {
			memory = append(memory, float64(r.Memory))
		}
	}
	ends := wall(&rd, runs)
	processor(&rd, "user", user)
	processor(&rd, "system", system)
	if len(memory) > 0 {
		rd.Value("peak_memory", record.Byte, output.Median(memory))
	}
	rd.Value(record.Runs, record.Count, float64(len(runs)))
	return rd, find(&rd, v, runs, ends)
}

// wall adds the times of the runs, and returns when they ended.
func wall(rd *record.Reading, runs []timed.Run) (ends []time.Duration) {
	var times []float64
	for _, r := range runs {
		ends, times = append(ends, time.Duration(r.End)), append(times, r.Seconds())
	}
	output.Repeats(rd, "wall", record.Second, ends, times)
	return ends
}

// find adds the user's figures.
func find(rd *record.Reading, v param.Values, runs []timed.Run, ends []time.Duration) error {
	f, err := figures.Parse(v, taken()...)
	if err != nil || f.Empty() {
		return err
	}
	var found []figures.Found
	for i, r := range runs {
		one, err := f.Read(r.Stdout)
		if err != nil && r.Cut {
			err = fmt.Errorf("%w; only the last %d KiB of the output are looked at", err, kept>>10)
		}
		if err != nil {
			return &workload.Unfit{Err: fmt.Errorf("run %d: %w", i+1, err), Printed: r.Stdout}
		}
		found = append(found, one)
	}
	f.Add(rd, ends, found)
	return nil
}

// processor adds the mean of processor times: their median would be one of few multiples of the
// tick. A mean of a few ticks says nothing.
func processor(rd *record.Reading, name string, times []time.Duration) {
	var sum time.Duration
	ticks := true
	for _, t := range times {
		sum += t
		ticks = ticks && t%tick == 0
	}
	rd.Value(name, record.Second, sum.Seconds()/float64(len(times)))
	if sum == 0 || ticks && sum < 10*tick {
		rd.Warn(record.BelowNoise+name, "%s time is too short to measure here (clock ticks of %d ms)", name, tick.Milliseconds())
	}
}

// surroundings are the parameters of where a program runs.
func surroundings() []param.Param {
	return []param.Param{
		{Name: "shell", Type: param.String, Default: "none", Help: "true: /bin/sh runs the command, or the shell of that name; none: there is no shell"},
		{Name: "env", Type: param.String, Help: "environment: words NAME=VALUE, quoted as in a shell"},
		{Name: "cwd", Type: param.String, Help: "working directory, an absolute path in the sandbox; empty: the image's, or /"},
		{Name: "image", Type: param.String, Default: volume.HostRoot, Help: "root file system: host, this machine's own, read-only; or an image's name"},
		{Name: "writable", Type: param.Bool, Default: "false", Help: "the program may write to the root file system of an image; what it writes goes with the trial"},
		{Name: "mounts", Type: param.String, Help: "directories of the host: words HOST:GUEST or HOST:GUEST:ro, absolute paths, quoted as in a shell"},
		{Name: "network", Type: param.Bool, Default: "false", Help: "the sandbox gets an interface on the study's bridge; without it there is only lo"},
	}
}
