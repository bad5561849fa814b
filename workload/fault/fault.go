// Package fault is a workload that misbehaves on purpose, to show what a study does when a
// sandbox dies, hangs, prints garbage, fills the disk or is killed for lack of memory, and
// when a server does not start, crashes or does not answer.
//
// The data path: 1. Roles runs `/tare internal fault --do=WORD` in the sandbox, and
// for a server's faults also a client; 2. Main misbehaves as asked, within bounds of time,
// disk and memory; 3. Parse reads the line that only `none` and clients print, and returns
// an error for anything else.
package fault

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return fault{} }

type fault struct{}

// The words of the parameter do.
const (
	doNone    = "none"
	doExit    = "exit"
	doSignal  = "signal"
	doHang    = "hang"
	doGarbage = "garbage"
	doFill    = "fill"
	doOOM     = "oom"
	doSilent  = "silent"
	doFlood   = "flood"
	doCall    = "call"
	doMissing = "missing"

	// Of a server, with a client beside it.
	doServe = "serve"
	doPort  = "port"
	doMute  = "mute"
	doLost  = "lost"
	doStall = "stall"
	doCrash = "crash"
)

func words() []string {
	return append([]string{doNone, doExit, doSignal, doHang, doGarbage, doFill, doOOM, doSilent, doFlood, doCall, doMissing}, servers()...)
}

func servers() []string { return []string{doServe, doPort, doMute, doLost, doStall, doCrash} }

const maxAfter = time.Minute

// report is the line that a normal end prints.
type report struct {
	Elapsed int64 `json:"elapsed_ns"`
}

func (fault) Name() string { return "fault" }

func (fault) About() string {
	return "misbehaves on purpose: dies, hangs, prints garbage, fills the disk or the memory; to see what a study does then"
}

func (fault) Params() []param.Param {
	return []param.Param{
		{Name: "do", Type: param.Enum, Default: doExit, Words: words(), Help: "what to do; none is to end well"},
		{Name: "after", Type: param.Duration, Default: "0s", Min: 0, Max: maxAfter.Seconds(), Help: "how long to behave before"},
	}
}

func (fault) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "elapsed", Unit: record.Second, Better: record.Lower, Help: "time until the end; only do: none and serve get there"}}
}

func (fault) Roles(v param.Values) ([]workload.Role, error) {
	do := v.Str("do")
	args := []string{"/tare", "internal", "fault", "--do=" + do, "--after=" + v.Duration("after").String()}
	if slices.Contains(servers(), do) {
		return serverRoles(do, args, v.Duration("after")), nil
	}
	r := workload.Role{
		Name: "main", Mode: workload.Exec, Args: args,
		Expect: v.Duration("after"), // of a hang too: that it hangs is not to be expected
	}
	if do == doFill {
		r.Volumes = volume.AtData(volume.Disk)
	}
	if do == doMissing {
		r.Needs = []string{noProgram}
		r.Args = []string{noProgram}
	}
	return []workload.Role{r}, nil
}

// noProgram is the name of a program that no distribution has.
const noProgram = "tare-no-such-program"

// serverRoles are a server, ready when it answers, and its client.
func serverRoles(do string, args []string, after time.Duration) []workload.Role {
	probe := &workload.Probe{Port: port, Path: "/", Size: int64(len(body))}
	if do == doStall {
		probe = &workload.Probe{Port: port} // it only accepts connections
	}
	client := append(slices.Clone(args), "--ask={server}:"+strconv.Itoa(port))
	return []workload.Role{
		{Name: "server", Mode: workload.Exec, Background: true, Args: args, Probe: probe},
		{Name: "client", Mode: workload.Exec, Args: client, Expect: after + asking},
	}
}

func (fault) Parse(role string, _ param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	if role == "server" {
		return rd, nil // it prints nothing
	}
	b, err := output.Read(out)
	if err != nil {
		return rd, fmt.Errorf("fault: %w", err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return rd, fmt.Errorf("fault: the output is garbage, not its line of JSON: %w", err)
	}
	if r.Elapsed <= 0 || r.Elapsed > int64(time.Hour) {
		return rd, fmt.Errorf("fault: elapsed = %d ns is out of range", r.Elapsed)
	}
	rd.Value("elapsed", record.Second, float64(r.Elapsed)*1e-9)
	return rd, nil
}
