// Package checkpoint is the workload checkpoint: the time to save a sandbox to files and to
// restore it until its server answers again, compared with a cold start of the server.
//
// The data path: 1. Roles asks run to launch a sandbox with one server, to save it when the
// server answers run's Probe, to end it, to restore it and to wait for its answer, several
// times; 2. run writes a workload.CheckpointLine for each; 3. Parse takes their medians.
//
// The smallest server is /tare itself (server.go): it holds memory of a given size
// that cannot be compressed, and answers with an error if the memory was not restored intact.
package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
	"tare/workload/servers"
)

// New returns the workload.
func New() workload.Workload { return checkpoint{} }

type checkpoint struct{}

const (
	// maxSeconds bounds a time: more than a day cannot be a measurement.
	maxSeconds = 86400
	// saveRate, in bytes a second, and perSave are low guesses for one save and restore.
	// They are used only for the expected time of a trial.
	saveRate  = 200 << 20
	perSave   = time.Second
	perServer = 3 * time.Second // of an interpreter and its modules
)

func (checkpoint) Name() string { return "checkpoint" }

func (checkpoint) About() string {
	return "saves sandboxes with a server in them to files and restores them, against starting the server cold"
}

func (checkpoint) Params() []param.Param {
	return []param.Param{
		{Name: "program", Type: param.Enum, Default: "tare", Words: []string{"tare", "redis", "node", "ruby"}, Help: "tare: a small web server of tare's own; redis: an empty redis-server; node, ruby: a web service in that language"},
		{Name: "memory", Type: param.Size, Default: "0B", Min: 0, Max: 64 << 30, Help: "memory that the server holds (program: tare)"},
		{Name: "repeats", Type: param.Int, Default: "3", Min: 1, Max: 1000, Help: "times in a trial; the medians count"},
	}
}

func (checkpoint) Responses(param.Values) []record.Response {
	second := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Operation: "run", Help: help}
	}
	return []record.Response{
		second("restore", "from the runtime's restore call to the server's first answer"),
		second("save", "the runtime's checkpoint call, which ends the sandbox too"),
		second("cold", "from the launch of a new sandbox to the server's first answer"),
		{Name: "bytes", Unit: record.Byte, Better: record.Lower, Help: "size of the files that a sandbox was saved to"},
		{Name: "ratio", Unit: record.Fraction, Better: record.Lower, Help: "restore over cold, of the same sandbox; below 1 restoring is faster"},
	}
}

func (checkpoint) Roles(v param.Values) ([]workload.Role, error) {
	program, memory, repeats := v.Str("program"), v.Size("memory"), v.Int("repeats")
	r := workload.Role{Name: "main", Mode: workload.Checkpoint, Count: repeats}
	each := perServer
	if s, ok := servers.Find(program); ok {
		r.Args, r.Image, r.Probe = s.Args, s.Image, &s.Probe
	} else {
		r.Args = []string{"/tare", "internal", "checkpoint", strconv.Itoa(servers.HTTPPort), strconv.FormatInt(memory, 10)}
		r.Probe = &workload.Probe{Port: servers.HTTPPort, Path: "/", Size: answerSize}
		each = perSave + time.Duration(float64(memory)/saveRate*float64(time.Second))
	}
	if memory > 0 && program != "tare" {
		return nil, fmt.Errorf("memory = %s has no effect with program = %s; write program: tare", v.Str("memory"), program)
	}
	r.Expect = time.Duration(min(float64(repeats)*float64(each), float64(24*time.Hour)))
	return []workload.Role{r}, nil
}

func (checkpoint) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	lines, err := output.Lines(out, "a checkpoint", check)
	if err != nil {
		return rd, fmt.Errorf("checkpoint: %w", err)
	}
	values := map[string][]float64{}
	var ends []time.Duration // as if they followed each other without a pause
	var end float64
	for _, l := range lines {
		end += l.Cold + l.Save + l.Restore
		ends = append(ends, time.Duration(min(end*1e9, math.MaxInt64/2)))
		for name, x := range map[string]float64{
			"restore": l.Restore, "save": l.Save, "cold": l.Cold, "bytes": float64(l.Bytes), "ratio": l.Restore / l.Cold,
		} {
			values[name] = append(values[name], x)
		}
	}
	if want := v.Int("repeats"); len(ends) != want {
		return rd, fmt.Errorf("checkpoint: the report has %d checkpoints, but %d were requested (repeats)", len(ends), want)
	}
	for _, r := range (checkpoint{}).Responses(v) {
		output.Repeats(&rd, r.Name, r.Unit, ends, values[r.Name])
	}
	return rd, nil
}

// check refuses impossible values. JSON has no NaN.
func check(l workload.CheckpointLine) error {
	for name, t := range map[string]float64{"save_s": l.Save, "restore_s": l.Restore, "cold_s": l.Cold} {
		// run writes whole nanoseconds.
		if t < 1e-9 || t > maxSeconds {
			return fmt.Errorf("the time %s = %g is out of range", name, t)
		}
	}
	if l.Bytes <= 0 || l.Bytes > 1<<50 {
		return errors.New("the size of what was saved is out of range")
	}
	return nil
}
