// Package fault is a workload that misbehaves on purpose, so that everyone can
// see what a study does when a sandbox dies, hangs, prints garbage, fills the
// disk or is killed for memory.
//
// The data path: 1. Roles runs `/tare internal fault --do=WORD` in the sandbox;
// 2. Main misbehaves as asked, within bounds: no fault lasts, writes or allocates
// without an end; 3. Parse reads the one line that only `none` prints, and calls
// everything else by its name.
package fault

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tare/param"
	"tare/record"
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
)

func words() []string {
	return []string{doNone, doExit, doSignal, doHang, doGarbage, doFill, doOOM, doSilent, doFlood}
}

const maxAfter = time.Minute

// report is the line of an honest end.
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
	return []record.Response{{Name: "elapsed", Unit: record.Second, Better: record.Lower, Help: "time until the end; only do: none gets there"}}
}

func (fault) Roles(v param.Values) ([]workload.Role, error) {
	return []workload.Role{{
		Name: "main", Mode: workload.Exec,
		Args:   []string{"/tare", "internal", "fault", "--do=" + v.Str("do"), "--after=" + v.Duration("after").String()},
		Data:   v.Str("do") == doFill,
		Expect: v.Duration("after"), // of a hang too: that it hangs is not to be expected
	}}, nil
}

func (fault) Parse(_ string, _ param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
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
	rd.Samples = []record.Sample{{Name: "elapsed", Unit: record.Second, Kind: record.Value, Value: float64(r.Elapsed) * 1e-9}}
	return rd, nil
}
