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
	"tare/volume"
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
	//
	// A series that follows a response within the trial has the label response=NAME
	// (record.LabelResponse); a response has at most one. Its T are from the role's start;
	// a point is the response's mean since the point before, or one event, such as
	// a launch, that ended then. Points up to the role's Warmup are of the
	// warm-up; after the measured time there are none. run tells by it whether the
	// trial was steady.
	Parse(role string, v param.Values, out io.Reader) (record.Reading, error)
}

// Counter is a workload whose counting trial (docs/structural-cost.md) has parameters
// of its own, as where the program makes other calls for a while before its load begins.
type Counter interface {
	// Counting returns the parameters of the counting trial of a cell that has these;
	// these stay as they are. An operation must make the same calls under both.
	Counting(param.Values) param.Values
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
	// Checkpoint makes the command a sandbox's life, waits for the role's Probe,
	// saves the sandbox, ends it, restores it and waits for the Probe again, Count
	// times. run writes one CheckpointLine each as the role's output.
	Checkpoint Mode = "checkpoint"
)

// Probe asks a server in a sandbox, from outside and without any process
// between, whether it answers yet: a TCP connection to Port, and where Path is
// not "" a GET of it over HTTP/1.1 whose answer must have the status 200 and, if Size is
// not 0, a body of that many bytes. A role with a Probe has a network, whatever its mode.
type Probe struct {
	Port int
	Path string
	Size int64
	// Send and Want are for servers that do not speak HTTP: what is written after
	// connecting, and how the answer must begin ("PING\r\n", "+PONG").
	Send, Want string
}

// Role is one end of a workload.
type Role struct {
	Name    string // server, client, main
	Mode    Mode
	Args    []string // "{server}" in a word becomes the address of the role of that name
	Env     []string
	Ready   string          // the role is ready when a line of its output starts with this; "" at once
	Probe   *Probe          // or when this succeeds from outside
	Image   string          // the image (`tare image list`) that is its root file system; "" the tree with the study's Needs
	Needs   []string        // host programs that must be in the root file system; of roles without an Image
	Volumes []volume.Volume // storage beside the root file system
	Count   int             // sandboxes, for Launch and Idle; times, for Checkpoint

	// Writable gives the role a root file system that it can write to: an overlay
	// whose upper layer is on the disk to be measured and goes with the sandbox.
	Writable bool
	// Before is a command that runs to its end in the role's sandbox before any
	// role is measured, as for laying files out; "" none. A Background role's runs before
	// that role starts.
	Before []string
	// DropCaches asks run to write the host's page cache back and drop it after
	// Before (proc(5), drop_caches). Where the host forbids it the trial has the
	// warning caches-kept.
	DropCaches bool

	// Until ends the measured window when a line of the role's output starts with
	// it, though the role goes on, as with a check of what it made; "" its end does. Of
	// a role that is not in the background.
	Until string

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
	Answered    float64 `json:"answered_s,omitempty"` // the role's Probe had its first good answer; the sandbox was killed then
	Exited      float64 `json:"exited_s"`
	Deleted     float64 `json:"deleted_s"`
}

// IdleLine is one line of JSON: the host's available memory (host/freemem)
// with this many sandboxes idle. Count rises from 0 to N, and comes back to 0 for
// the last line, which shows a leak.
type IdleLine struct {
	Count     int   `json:"count"`
	Available int64 `json:"available_bytes"`
}

// CheckpointLine is one line of JSON: one sandbox that was saved and restored.
// Times in seconds.
type CheckpointLine struct {
	Save    float64 `json:"save_s"`    // the runtime's checkpoint call
	Restore float64 `json:"restore_s"` // from the restore call to the first good answer of the Probe
	Cold    float64 `json:"cold_s"`    // from the first start to the first good answer, for comparison
	Bytes   int64   `json:"bytes"`     // of the image that was written
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
