// Package workload is what runs inside a sandbox: the commands of its roles, their readiness, and
// the parsing of their output. A workload does not start anything; run does. The workloads are
// folders below this one, listed in all/.
//
// The data path: 1. the study's parameters are checked against Params; 2. run
// asks Roles for the commands, puts each role into its sandbox and runs them in
// order; 3. each role's standard output goes to Parse; 4. Parse returns
// samples, named by Responses, in base units.
package workload

import (
	"encoding/json"
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
	// Responses returns the figures that Parse returns with these parameters, the most important
	// first: the stopping rule uses that one.
	Responses(param.Values) []record.Response
	// Roles returns what to run. The values have passed param.Fill. Roles refuses what Fill
	// cannot check (two parameters that exclude each other) with an error that names the
	// parameters.
	Roles(param.Values) ([]Role, error)
	// Parse reads one role's standard output. It must not trust the output, which may have any
	// length and content. An error says what is wrong.
	//
	// A series that follows a response within the trial has the label response=NAME
	// (record.LabelResponse); a response has at most one. Its T are from the role's start;
	// a point is the response's mean since the last point, or one event that ended then, such
	// as a launch. Points up to the role's Warmup belong to the warm-up; there are no points
	// after the measured time. With the series run decides whether the trial was steady.
	Parse(role string, v param.Values, out io.Reader) (record.Reading, error)
}

// Unfit is an error of Parse about what a program of the user's own printed. Printed is its end: the
// role's output has it in Tare's own form, which is nothing to show.
type Unfit struct {
	Err     error
	Printed string
}

// Refused is an error of Parse about a load that a server refused as a whole, and refuses until somebody changes the study or the server.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

func (u *Unfit) Error() string { return u.Err.Error() }
func (u *Unfit) Unwrap() error { return u.Err }

// Counter is a workload whose counting trial (docs/structural-cost.md) needs other parameters,
// for example because the program makes other calls for a while before its load begins.
type Counter interface {
	// Counting returns the parameters of the counting trial for a cell's parameters, which it
	// does not change. An operation must make the same calls with both.
	Counting(param.Values) param.Values
}

// Noter is a workload with files of parameters that are valid, and may not mean what their author thinks.
type Noter interface {
	// Notes returns what the plan warns of, and its place in a file.
	Notes(param.Values) []param.FileError
}

// Mode says how a role uses its sandbox.
type Mode string

// Modes of a role.
const (
	// Exec runs the command in a started sandbox.
	Exec Mode = "exec"
	// Launch runs the command as the only program of a sandbox, Count times, each first Whole
	// and then Phased. run writes one LaunchLine for each as the role's output.
	Launch Mode = "launch"
	// Idle launches Count sandboxes, each with the command as its only program, and leaves them
	// idle. The command prints a line that starts with "x" when it runs. run writes one IdleLine
	// after each as the role's output.
	Idle Mode = "idle"
	// Checkpoint runs the command as the only program of a sandbox, waits for the role's Probe,
	// saves the sandbox, ends it, restores it and waits for the Probe again, Count times. run
	// writes one CheckpointLine for each as the role's output.
	Checkpoint Mode = "checkpoint"
)

// Probe checks from outside whether a server in a sandbox answers: with a TCP connection to Port
// and, if Path is not "", a GET of it over HTTP/1.1. The answer must have the status 200 and, if
// Size is not 0, a body of that many bytes. A role with a Probe has a network in every mode.
type Probe struct {
	Port int
	Path string
	Size int64
	// Send and Want are for servers without HTTP: what to write after connecting, and how the
	// answer must begin ("PING\r\n", "+PONG").
	Send, Want string
}

// Words of Role.Args that become words of the role's Image, or none: the entrypoint and the
// arguments that it names; the entrypoint alone, for a role that has arguments of its own. An image
// that cannot run its own command, because it names none or a program that it does not have, is a
// reason to skip the cell.
const (
	ImageCommand    = "{image}"
	ImageEntrypoint = "{entrypoint}"
)

// Role is the part of a workload that one sandbox runs.
type Role struct {
	Name    string // server, client, main
	Mode    Mode
	Args    []string        // "{server}" in a word becomes the address of the role of that name; see also ImageCommand
	Env     []string        // NAME=VALUE, over the image's
	Dir     string          // working directory; "": the image's, or /
	Ready   string          // the role is ready when a line of its output starts with this; "" at once
	Probe   *Probe          // or when this succeeds from outside
	Image   string          // its root file system: the name of an image, or where to find one (docs/images.md); "" the tree with the study's Needs
	Needs   []string        // host programs that must be in the root file system; of roles without an Image
	Volumes []volume.Volume // storage beside the root file system
	Count   int             // sandboxes, for Launch and Idle; times, for Checkpoint
	Burst   int             // how many of them Launch makes at once; 0: one
	Fill    int             // percent of what the node takes that idle sandboxes take meanwhile
	Cold    bool            // Launch starts each sandbox from an image that its node does not have

	// Writable gives the role a root file system that it can write to: an overlay
	// whose upper layer is on the disk to be measured and goes with the sandbox.
	Writable bool
	// Room is how many bytes the role's files take, in its volume or, without one, in the root file system or in memory; 0: unknown.
	Room int64
	// Lifecycle asks run to time the whole life of one more sandbox before the role's starts: the
	// sample record.SandboxLife. Its program is the smallest, and it has no volumes and no network.
	// Kinds that cannot launch one have no such sample. It is for Exec.
	Lifecycle bool
	// Before is a command that runs to its end in the role's sandbox before any role is measured,
	// for example to lay files out. That of a Background role runs before the role starts.
	Before []string
	// BeforeWithin is how long Before may take beyond two minutes.
	BeforeWithin time.Duration
	// DropCaches asks run to write the host's page cache back and drop it after
	// Before (proc(5), drop_caches). Where the host forbids it the trial has the
	// warning caches-kept.
	DropCaches bool

	// Until ends the measured window when a line of the role's output starts with it, although
	// the role goes on, for example to check what it made; "": the role's end does. It is for
	// roles that are not in the background.
	Until string

	// Background roles are started in order before the others, and get SIGTERM when all others
	// have ended. Output that they print then is parsed too.
	Background bool
	// Warmup is the time from the role's start to the start of measuring. Expect is the expected
	// measured time, for the plan and the timeout.
	Warmup, Expect time.Duration
	// Within is how long the role may take at most, if that is longer than what its Expect
	// suggests.
	Within time.Duration

	// Networked gives the role a place on the study's bridge though it is alone.
	Networked bool
	// Addresses asks for so many addresses beside the role's own. "{server/more}" in a word of another role becomes the
	// range that has those of the server. A sandbox with a kernel of its own cannot have them.
	Addresses int
	// API lets the role's program use the API of the cluster that it runs in (cluster/pod, EnvStudy). Other places
	// do not have one. It is for Exec.
	API bool
	// Simulated is how many pods the program creates on the cluster's simulated nodes. The nodes must have room for them.
	Simulated int
	// Claims are claims for volumes that the program creates itself; nil: none.
	Claims *Claims
	// Outside are pods of a cluster that the role's requests pass through and that are not the study's. Their figures are read beside
	// the role's, where somebody can.
	Outside []Outside
}

// Claims are claims for volumes of a cluster.
type Claims struct {
	Class     string // their StorageClass; "": the cluster's default
	Immediate bool   // no pod uses them, so the class must bind them without one
}

// Outside is a part of what a load uses: pods that somebody else has started. They are found by the first of the other fields that is
// set.
type Outside struct {
	Name      string   // of the part, the label record.LabelEndpoint of its figures: controller, backend
	Given     bool     // the study names the pods, so a cluster without them is an error
	Namespace string   // of the pods with
	Labels    string   // these labels, in kubectl's words for -l
	Services  []string // whose pods they are, as NAMESPACE/NAME
	Address   string   // of the Service whose pods they are, in any namespace
}

// Key is one word for it.
func (o Outside) Key() string {
	b, _ := json.Marshal(o) // it has strings alone
	return string(b)
}

// Launches is how many sandboxes the mode Launch makes: Count whole, and Count in phases.
func (r *Role) Launches() int { return 2 * r.Count }

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

// IdleLine is one line of JSON: the host's available memory (host/freemem) with this many idle
// sandboxes. Count rises from 0 to N, and is 0 again in the last line, which shows a leak.
type IdleLine struct {
	Count     int     `json:"count"`
	Available int64   `json:"available_bytes"`
	Disk      *int64  `json:"disk_bytes,omitempty"` // that their files take; nil: they have none, or it is not known
	Start     float64 `json:"start_s,omitempty"`    // of the last one: seconds from the call until its program runs, or has answered
}

// CheckpointLine is one line of JSON: one sandbox that was saved and restored.
// Times in seconds.
type CheckpointLine struct {
	Save    float64 `json:"save_s"`    // the runtime's checkpoint call
	Restore float64 `json:"restore_s"` // from the restore call to the first good answer of the Probe
	Cold    float64 `json:"cold_s"`    // from the first start to the first good answer, for comparison
	Bytes   int64   `json:"bytes"`     // of the image that was written
}

// Total returns the expected time of a set of roles: that of the slowest role that is not in the
// background.
func Total(roles []Role) time.Duration {
	var d time.Duration
	for _, r := range roles {
		if !r.Background {
			d = max(d, r.Warmup+r.Expect)
		}
	}
	return d
}

// EachRole shows the roles that a workload has with its defaults, and with each word of each parameter. A workload without
// defaults for all of its parameters has none.
func EachRole(w Workload, see func(*Role)) {
	with := func(levels param.Values) {
		v, err := param.Fill(w.Params(), levels)
		if err != nil {
			return
		}
		roles, err := w.Roles(v)
		if err != nil {
			return
		}
		for i := range roles {
			see(&roles[i])
		}
	}
	with(nil)
	for _, p := range w.Params() {
		for _, word := range p.Words {
			with(param.Values{p.Name: word})
		}
	}
}
