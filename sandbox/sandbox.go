// Package sandbox is where a workload runs. It holds the contract that every
// kind of isolation fulfils; the kinds are folders below it, listed in all/.
//
// The data path of one trial: 1. run asks the Kind for an Instance (Start);
// 2. the workload's commands run inside it (Exec), or, for workloads that measure
// the start of sandboxes, each sandbox starts and ends with one command (Launch);
// 3. collectors read the processes and cgroups of its LocalScope; 4. Stop removes
// everything.
package sandbox

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
)

// Native is the name of the kind that isolates nothing: record.Traits.Native of the kinds
// that run on this host.
const Native = "process"

// Kind makes sandboxes of one kind of isolation. It is safe for concurrent use.
type Kind interface {
	// Name is the level's name in a study: process, runc, runsc-systrap.
	Name() string
	// About is one sentence for `tare list`.
	About() string
	// Params are the settings that only this kind has, each usable as a factor.
	Params() []param.Param
	// Traits are what a sandbox with these options is; the options are those of Spec,
	// and nil means the defaults.
	Traits(options map[string]string) Traits
	// Check says what this host lacks, in words a user can act on; nil when the
	// kind works here. It tries the real thing rather than looking at versions,
	// and leaves nothing behind.
	Check(context.Context) error
	// Start returns when commands can be run in the new sandbox. On an error
	// nothing of it is left.
	Start(context.Context, Spec) (Instance, error)
}

// Launcher is a Kind that can start a sandbox for one command and end it with that
// command, which the workloads startup and density measure. When ctx ends, so does the
// sandbox; then the error says nothing else, unless something is left behind.
type Launcher interface {
	Kind
	Launch(context.Context, Spec, Command, LaunchMode) (Launch, error)
}

// Checkpointer is a Launcher whose sandboxes can be saved to files and restored
// from them.
type Checkpointer interface {
	Launcher
	// CheckCheckpoint says what this host lacks for it; nil when it works here, found by trying.
	CheckCheckpoint(context.Context) error
	// Checkpoint launches the command, calls ready, saves the sandbox, ends it,
	// restores it in the same place (name, network, limits), calls ready again
	// and ends it. ready returns when the command does its work.
	Checkpoint(ctx context.Context, spec Spec, cmd Command, ready func(context.Context) error) (Saved, error)
}

// Saved is what Checkpoint took.
type Saved struct {
	Cold    time.Duration // from the launch to the first ready
	Save    time.Duration // the runtime's checkpoint call
	Restore time.Duration // from the restore call to the second ready
	Bytes   int64         // of the files written
}

// Traits say what a kind is. They are data: nothing is tried out for them. The zero value
// of a duration means: not worth a word.
type Traits struct {
	record.Traits
	// Settle is the age at which a sandbox is as it then stays. Nothing is measured earlier,
	// except in launched sandboxes, where the first moments are the question.
	Settle time.Duration
	// Takes is about how long it takes to start and stop a sandbox. Estimates of a study's
	// time use it.
	Takes time.Duration
	// CheckWithin bounds Check, where that may take long.
	CheckWithin time.Duration
	// OwnRoot: the sandbox has a root file system that it can write to, whether its role asks for one or not.
	// CopiesRoot: this root is a copy of the whole tree, and takes as much disk space.
	OwnRoot, CopiesRoot bool
}

// Definable is a Kind that a study may define others like, in its section sandboxes.
type Definable interface {
	Kind
	// Base is the word for it in the key kind of a definition, and one sentence about what
	// it defines. Kinds with the same word define the same.
	Base() (word, about string)
	// Keys are what a definition says beside its kind.
	Keys() []param.Param
	// Define makes the kind of a definition, whose values have passed param.Fill. It looks
	// up nothing. The error says what to write.
	Define(name string, keys param.Values) (Kind, error)
}

// Keys of a definition that names a program, as RuntimeKeys describes them.
const (
	KeyRuntime = "runtime"
	KeyArgs    = "args"
)

// RuntimeKeys are Definable.Keys of a kind that is made by a program: its name or path, and
// arguments of it.
func RuntimeKeys(runtime, args string) []param.Param {
	return []param.Param{{Name: KeyRuntime, Type: param.String, Help: runtime}, {Name: KeyArgs, Type: param.List, Help: args}}
}

// Flags are a runtime's arguments as record.Traits has them: without their leading dashes.
func Flags(args []string) []string {
	var out []string
	for _, a := range args {
		out = append(out, strings.TrimLeft(a, "-"))
	}
	return out
}

// Preparer is a Kind that makes things which many sandboxes use, each when it is first needed.
type Preparer interface {
	Kind
	// Prepare makes or finds those that a Start of the Spec needs, so that no
	// sandbox's figures include that work. It is idempotent.
	Prepare(context.Context, Spec) error
}

// Manifester is a Kind whose sandboxes are written down before they are made.
type Manifester interface {
	Kind
	// Manifest is what a sandbox is made from: YAML, with no secret in it.
	Manifest(Want) ([]byte, error)
}

// Chooser is a Kind that cannot start with every choice of its Params. Both are asked
// before a study runs; the options are those of Spec, each within its Param.
type Chooser interface {
	Kind
	// CheckOptions says why a sandbox with these options starts on no host. Nothing is tried out.
	CheckOptions(options map[string]string) error
	// CheckHere says why one with these options and limits does not start on this
	// host, where Check found that others do.
	CheckHere(context.Context, Spec) error
}

// Noter is a Kind with choices of its Params that are possible, and may not be meant.
type Noter interface {
	Kind
	// NoteOptions says what is doubtful about options that CheckOptions passes, and what to write; "" for nothing.
	NoteOptions(options map[string]string) string
}

// LaunchMode chooses how Launch goes through a sandbox's lifecycle.
type LaunchMode string

// Whole is one call, as a user's `runc run`; Phased takes its steps
// apart (create, start, delete) where the runtime has them.
const (
	Whole  LaunchMode = "whole"
	Phased LaunchMode = "phased"
)

// Launch tells when each step of a launched sandbox's lifecycle ended, as offsets
// from the moment before the first process was started. Steps that the mode or
// the kind does not have are zero.
type Launch struct {
	Begun       time.Time // that moment; known once a process was started, even if Launch then fails
	Exit        Exit
	Created     time.Duration // the runtime's create returned (Phased)
	Started     time.Duration // the runtime's start returned (Phased)
	Instruction time.Duration // the first byte the command printed arrived here
	Exited      time.Duration // the command's end was seen
	Deleted     time.Duration // all of the sandbox is gone
	Boot        []BootPhase   // the steps of its start (Phased), of kinds that tell them
	Pulled      int64         // bytes of the image that the node pulled for the sandbox, as the node reports them; 0: none, or not known
	// Facts are those of Instance, after its end; nil: of a kind that tells none of its launches. They are known of a launch that was cut too.
	Facts map[string]string
}

// Spec is a sandbox that this host has made room for.
type Spec struct {
	Want
	Dir     string   // an existing, empty directory for the sandbox's own files; the place removes it
	Root    string   // root file system tree, used read-only; /tare in it is this binary
	Upper   string   // existing, empty directory for what is written to the root (overlayfs); "": the root is read-only
	Shown   []string // directories of this host that the root shows, read-only, at the same paths; Root has folders for them
	Mounts  []Mount  // of the Volumes
	Network Network  // where the sandbox sits on the study's bridge
	// Located is called by Launch with the address of a sandbox that the Network does not give one, as soon as it
	// is known and before the command runs; nil: nobody waits for it.
	Located func(netip.Addr)
}

// RunOptions are the mount options of the tmpfs at /run (Spec.OwnRun). Files of process IDs, locks and sockets need little memory.
const RunOptions = "mode=755,size=65536k"

// OwnRun reports whether the sandbox has an empty, writable /run in memory, as a machine that has just
// started. The host's root has none, because the host's own is not shown. An image keeps the
// directories that are in its /run.
func (s *Spec) OwnRun() bool { return len(s.Shown) > 0 }

// Mount is a volume that this host has made room for.
type Mount struct {
	volume.Volume
	Source string // on this host: an existing directory
}

// Want is what a trial asks of a sandbox. It means the same at every site; Spec says
// where this host puts it. Zero values mean: none, or no limit.
type Want struct {
	Trial       string            // the trial's name, unique at the site
	Node        string            // of the site, to run on; "" where there is one
	Role        string            // of the workload: server, client
	Name        string            // unique at the site; cgroups, containers, pods and directories bear it
	Image       string            // root file system; "" for the tree with the study's tools
	Copy        string            // reference of a copy of the image that the node must pull for this sandbox; "": the node may have the image
	Writable    bool              // the root file system can be written to
	Networked   bool              // the sandbox has an address that others reach
	Addresses   int               // more addresses that the sandbox is to have beside it, if it is networked
	API         bool              // its program may use the cluster's API
	Volumes     []volume.Volume   // the role's, shared by all its sandboxes
	CPULimit    float64           // cores
	MemoryLimit int64             // bytes
	CPUs        string            // cpuset list, such as 0-1
	Options     map[string]string // the kind's own Params
	Beside      int               // how many more of it the trial has at the same time; of CheckHere alone
}

// Network is a prepared network namespace. Path "" means: none is wanted, and
// the sandbox gets an empty namespace of its own.
type Network struct {
	Path string       `json:"path,omitempty"` // of the namespace, such as /run/netns/tare-x
	Addr netip.Prefix `json:"addr,omitzero"`  // of the interface in it
	// Further is a range of addresses that the namespace has beside it.
	Further netip.Prefix `json:"further,omitzero"`
}

// Link is what the network between the endpoints of a workload is to be like. Zero values mean:
// as fast as the bridge.
type Link struct {
	Delay time.Duration // that every packet takes longer, each way
	Rate  int64         // bytes a second that each way carries, headers of Ethernet included
	Path  string        // what joins the endpoints: a Path of record; "": one bridge, or one node
}

// User is who a command runs as, by number: setuid(2), setgid(2), setgroups(2). The zero value
// is root without further groups.
type User struct {
	UID    uint32   `json:"uid,omitempty"`
	GID    uint32   `json:"gid,omitempty"`
	Groups []uint32 `json:"groups,omitempty"` // beside GID
}

// Root reports whether the user has root's numbers.
func (u User) Root() bool { return u.UID == 0 && u.GID == 0 && len(u.Groups) == 0 }

// Command is a program to run in a sandbox.
type Command struct {
	Args   []string // a name without a slash is looked up in the PATH of Env, or in the sandbox's own
	Env    []string // NAME=VALUE; of two values the last counts, and each counts before the sandbox's own
	Dir    string   // working directory, absolute; "": /
	User   User
	Stdout io.Writer // nil discards
	Stderr io.Writer
	Gate   *Gate // nil: it starts at once; else together with the gate's other commands
}

// Exit is how a command ended. A command that ran and failed is an Exit with a
// Code, not an error.
type Exit struct {
	Code   int    // 128+n for signal n, as a shell says
	Signal string // the signal's name when one ended it
	OOM    bool   // the kernel killed for memory in this sandbox
	User   time.Duration
	System time.Duration
	// Start is when a gated command was let go, on this host's clock, and StartWithin
	// how far that may be off: zero where the clock is this host's own.
	Start       time.Time
	StartWithin time.Duration
}

// ErrNodeLost says that an Instance is gone because its node is.
var ErrNodeLost = errors.New("the cluster does not reach the node any more")

// ErrNoImage says that a sandbox cannot start because its image cannot be had, now or later.
var ErrNoImage = errors.New("the image cannot be had")

// RefusedError says that a site refuses a sandbox until somebody changes the study, or what the site admits.
type RefusedError struct {
	Why string // a sentence for the user
	Raw string // what the site said
}

func (e *RefusedError) Error() string { return e.Why }

// Limited is an Instance that knows whether its memory, caches included, was at its limit
// at some time: what runs in it may then crawl, and not be killed.
type Limited interface {
	Instance
	LimitReached() bool
}

// Instance is one running sandbox. Exec may be called concurrently.
type Instance interface {
	// Exec runs a command to its end. When ctx ends the command gets SIGTERM,
	// and SIGKILL two seconds later; the Exit is still returned, with a nil
	// error, if the sandbox answered. An error means that the sandbox itself
	// failed, and says how.
	Exec(context.Context, Command) (Exit, error)
	// Addr is the sandbox's address on the bridge; the zero Addr when it has no
	// network.
	Addr() netip.Addr
	// Scope tells collectors on the sandbox's node what belongs to it there. The caller fills
	// in the Scope that it embeds, and Network.
	Scope() LocalScope
	// Facts are what this instance really was: runtime version, platform,
	// accelerator.
	Facts() map[string]string
	// Stop ends the sandbox and everything in it. It is idempotent, works in any
	// state, and leaves nothing behind; ctx bounds it.
	Stop(context.Context) error
}

// Scope names a sandbox whose figures are read. It means the same at every site.
type Scope struct {
	Node     string `json:"node,omitempty"`    // of the site; "" where there is one
	Sandbox  string `json:"sandbox,omitempty"` // its name, unique at the site: Want.Name
	Kind     string `json:"kind,omitempty"`    // the kind's name
	Endpoint string `json:"end,omitempty"`     // the workload's role that runs in it: server, client
}

// LocalScope is a Scope with what belongs to the sandbox on its node. It means something on
// that node alone: in this process and, sent as JSON without the Guest, in another one.
type LocalScope struct {
	Scope
	Cgroups []string    `json:"cgroups,omitempty"` // paths relative to the cgroup root, the outermost first; each includes its descendants
	Limited string      `json:"limited,omitempty"` // the one of Cgroups (or a child) that carries the limits and so the throttling; "" for none
	Pids    []int       `json:"pids,omitempty"`    // processes that belong to it and may be in no cgroup of its own; descendants included
	Alone   []int       `json:"alone,omitempty"`   // processes that belong to it, whose descendants belong to it only if they are in one of Cgroups
	Roles   ThreadRoles `json:"roles,omitempty"`   // nil: every thread is Workload
	Network Network     `json:"network,omitzero"`  // its place on the study's bridge
	Outside bool        `json:"outside,omitempty"` // it is a pod that somebody else has started, and that the load passes through
	Guest   Guest       `json:"-"`                 // nil unless the sandbox has a kernel of its own whose figures can be read
}

// Guest reads the kernel inside a sandbox, through its agent. It is safe for
// concurrent use.
type Guest interface {
	// Ask asks for a reading and returns at once: a guest that is slow to answer
	// must not hold up the other collectors. It does nothing while the last
	// question is unanswered.
	Ask()
	// Take returns the readings that have come since it was last called, oldest first. The
	// error is why the last answer that failed since then did; readings may have come
	// before and after it.
	Take() ([]GuestReading, error)
	// Clock takes a new estimate, which is a few round trips.
	Clock(context.Context) (Clock, error)
}

// GuestReading is one look at a guest's kernel: proc_stat(5), proc_meminfo(5) and
// /proc/softirqs.
type GuestReading struct {
	At       time.Time // on this host's clock
	CPUs     []GuestCPU
	Runnable int           // procs_running: threads on a run queue, or running
	Memory   int64         // MemTotal, bytes
	Free     int64         // MemAvailable, bytes
	Spent    time.Duration // CPU that the agent itself has used
}

// GuestCPU is one processor of a guest: seconds since the guest's boot, counts of softirqs.
type GuestCPU struct {
	Number                                          int
	User, System, Idle, IOWait, IRQ, SoftIRQ, Steal float64 // user includes nice
	NetRx, NetTx, Block                             float64
}

// Clock relates a sandbox's clock to this host's: CLOCK_MONOTONIC of both, which
// nobody sets (clock_gettime(2)).
type Clock struct {
	Offset      time.Duration // to add to a time in the sandbox to have it on the host
	Uncertainty time.Duration // half of the shortest round trip: Cristian, Probabilistic clock synchronization, 1989
}

// Booter is an Instance that came up in steps worth telling.
type Booter interface {
	Instance
	// Boot lists them in order. Their sum is the time from the call of Start, without
	// what was made for other sandboxes too (see Preparer).
	Boot() []BootPhase
}

// Doubter is an Instance that may be less than was asked for, which a reader of its
// figures has to know.
type Doubter interface {
	Instance
	// Doubts become warnings of the trial.
	Doubts() []record.Warning
}

// BootPhase is one step of a sandbox's start.
type BootPhase struct {
	Name string // process, kernel, agent, plug
	Took time.Duration
}
