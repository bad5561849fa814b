package trial

import (
	"context"
	"net/netip"
	"time"

	"tare/sandbox"
	"tare/volume"
	"tare/workload"
)

// Place does for trials what only the site can do: it makes room for sandboxes and
// reaches them from outside. It is safe for concurrent use.
type Place interface {
	// Check says why the place cannot meet a demand, in words that a user can act on; nil
	// if it can. It leaves nothing behind.
	Check(Demand) error
	// Image returns what a root file system is. The error says why the place does not have
	// the image.
	Image(name string) (Image, error)
	// Prepare makes the directories, volumes and network that a sandbox asks for. The
	// volumes of a role are the same for all its sandboxes.
	Prepare(context.Context, sandbox.Want) (sandbox.Spec, error)
	// Apart splits the processors into n lists of whole cores, as even as they come. The error
	// says why the place cannot.
	Apart(n int) ([]string, error)
	// Retire tells the place that nothing is left of a sandbox: the place may take its
	// network away before the trial ends.
	Retire(name string) error
	// Release takes away all that was prepared for a trial. Each error names one thing
	// that is left.
	Release(ctx context.Context, trial string) []error
	// Shape makes the links of started sandboxes slower and longer: the rate on each of
	// them, the delay on one, both in each direction.
	Shape(sandbox.Link, []sandbox.Network) error
	// Probe asks a server until it answers and returns when it did.
	Probe(context.Context, netip.Addr, workload.Probe) (time.Time, error)
	// Available is the available memory, in bytes, where the sandboxes run.
	Available(ctx context.Context, node string) (int64, error)
	// DropCaches writes back what trials wrote, and drops the page cache.
	DropCaches() error
}

// Filler is a Place whose nodes take a known number of sandboxes. A Place that is none refuses a Demand with Fill.
type Filler interface {
	// Fill has idle sandboxes take this share of a node, in percent, until the trial is released. They may stay
	// until another trial wants another share. It returns how many they are, in words.
	Fill(ctx context.Context, trial, node string, percent int) (string, error)
}

// Copier is a Place that has copies of images. The copies share no layer. A Place without copies refuses a Demand with Cold.
type Copier interface {
	// Copy returns the reference of a copy of an image that a node does not have. Each call returns a different copy. The image is
	// a role's; "" is the tree with the study's tools. The error says why there is no copy.
	Copy(ctx context.Context, image, node string) (reference string, err error)
}

// Setter is a Place that can change settings of its machine's kernel. A Place that is none refuses a Demand with Settings.
type Setter interface {
	// Set puts levels of settings in force, by factor, and the machine's own values of all others. It returns what
	// is in force for each factor, in words.
	Set(levels map[string]string) (map[string]string, error)
}

// Outsider is a Place that finds what a role's requests pass through outside of the study (workload.Role.Outside).
type Outsider interface {
	// Outside returns a scope for each pod, with its node, and names the pods. The error says why they cannot be read.
	Outside(context.Context, workload.Outside) (scopes []sandbox.LocalScope, names string, err error)
}

// Filer is a Place that knows how much of its disk a trial's files take.
type Filer interface {
	// Used counts the blocks of the files that the trial has on the disk for data, in bytes. What other programs write
	// does not count.
	Used(trial string) (int64, error)
}

// Describer is a Place that knows what it stores data on.
type Describer interface {
	// Storage describes a volume down to the hardware, in one line; "" if nothing is known.
	Storage(sandbox.Mount) string
}

// Image is a root file system as a place has it, and how its programs are to run.
type Image struct {
	Digest     string   // of the image's content; "" if it is not known
	Entrypoint []string // of its own command
	Command    []string // arguments of the entrypoint, or the whole command
	Env        []string // NAME=VALUE
	Dir        string   // working directory; "": /
	User       sandbox.User
	Problem    string // why its own command cannot run; "" if it can
}

// Demand is what a cell asks of a place beside its sandboxes.
type Demand struct {
	Tools     []string // programs in the root file system, of a role without an Image
	Image     string   // root file system; "" for the tree with the study's Tools
	Own       bool     // the image's own command is to run
	Volumes   []volume.Volume
	CPUs      string // processors to pin to, such as 0-1; "" for any
	Link      sandbox.Link
	Addresses int  // that a role is to have beside its own
	API       bool // a role's program uses the cluster's API
	Simulated int  // how many pods a role creates on the cluster's simulated nodes
	Claims    *workload.Claims
	Fill      int  // percent of what a node takes that idle sandboxes are to take
	Memory    bool // the trial reads how much memory the machine has free (Available)
	Saved     bool // the trial saves and restores a role's sandboxes
	Cold      int  // copies of the image that the trial needs, one for each cold sandbox; 0: none
	// Settings are levels of settings of the machine's kernel, by factor; record.SettingHost asks for nothing.
	Settings map[string]string
	Rooms    []Room // that the trial takes at once
	Beside   int    // of that: sandboxes that start at once there
}
