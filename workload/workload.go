// Package workload is what runs inside a sandbox: the commands of its roles,
// their readiness, and the parsing of what they print. A workload starts
// nothing itself; run does. The workloads are folders below this one, listed in
// all/.
//
// The data path: 1. the study's parameters are checked against Params; 2. run
// asks Roles for the commands, puts each role into its sandbox and runs them in
// order; 3. each role's standard output goes to Parse; 4. Parse returns
// samples, named by Responses, in base units.
package workload

import (
	"io"
	"time"

	"tare/param"
	"tare/record"
)

// Workload is one kind of load. Implementations are stateless and safe for
// concurrent use.
type Workload interface {
	// Name is the word in a study file: net, fio, cpu.
	Name() string
	// About is one sentence for `tare list`.
	About() string
	// Params are its parameters; each can be a factor of a study.
	Params() []param.Param
	// Responses are the figures that Parse will return under these parameters,
	// the most telling first: it is the one that stopping rules look at.
	Responses(param.Values) []record.Response
	// Roles says what to run. The values have passed param.Fill; what Fill
	// cannot see (two parameters that exclude each other) is refused here, in
	// words that name the parameters.
	Roles(param.Values) ([]Role, error)
	// Parse reads one role's standard output. It never trusts it: input may be
	// of any length and content, and an error says what is wrong with it.
	Parse(role string, v param.Values, out io.Reader) (record.Reading, error)
}

// Mode says how a role uses its sandbox.
type Mode string

// Modes of a role.
const (
	// Exec runs the command in a started sandbox.
	Exec Mode = "exec"
	// Launch makes the command the whole life of a sandbox, Count times, each
	// first Whole and then Phased. run writes one LaunchLine each as the
	// role's output.
	Launch Mode = "launch"
	// Idle launches Count sandboxes with the command as the life of each and
	// leaves them alone; the command says that it runs by a line that starts with
	// "x". run writes one IdleLine after each as the role's output.
	Idle Mode = "idle"
)

// Role is one end of a workload.
type Role struct {
	Name  string // server, client, main
	Mode  Mode
	Args  []string // "{server}" in a word becomes the address of the role of that name
	Env   []string
	Ready string   // the role is ready when a line of its output starts with this; "" at once
	Needs []string // host programs that must be in the root file system
	Data  bool     // the role writes to /data
	Count int      // sandboxes, for Launch and Idle

	// Background roles are started in order before the others, and get SIGTERM
	// when all others have ended; what they print then is parsed as well.
	Background bool
	// Warmup is how long after its start the role's measuring begins, Expect
	// how long it then measures (an estimate, for the plan and the timeout).
	Warmup, Expect time.Duration
}

// LaunchLine is one line of JSON: one launched sandbox. Times in seconds from
// the moment before the first process was started; zero where unknown.
type LaunchLine struct {
	Mode        string  `json:"mode"` // whole or phased
	Created     float64 `json:"created_s"`
	Started     float64 `json:"started_s"`
	Instruction float64 `json:"instruction_s"`
	Exited      float64 `json:"exited_s"`
	Deleted     float64 `json:"deleted_s"`
}

// IdleLine is one line of JSON: the host's available memory (MemAvailable of
// proc_meminfo(5)) with this many sandboxes idle. Count rises from 0 to N, and
// comes back to 0 for the last line, which shows a leak.
type IdleLine struct {
	Count     int   `json:"count"`
	Available int64 `json:"available_bytes"`
}

// Total is the time a set of roles is expected to take: the slowest role that
// is not in the background.
func Total(roles []Role) time.Duration {
	var d time.Duration
	for _, r := range roles {
		if !r.Background {
			d = max(d, r.Warmup+r.Expect)
		}
	}
	return d
}
