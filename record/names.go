package record

// Names of samples and labels that package run, or an analysis, looks for. What
// gives them uses these constants, so that none can be renamed at one end alone.
const (
	LabelEnd  = "end"  // the role of a workload whose sandbox it is
	LabelCall = "call" // a system call's name
	LabelRole = "role" // whose thread in an end: sandbox.Role
	// LabelSandbox is the kind of sandbox that an end is in.
	LabelSandbox = "sandbox"

	SystemCalls     = "system_calls"      // counter of the collector calls; labels LabelCall and LabelEnd
	SystemCallsLost = "system_calls_lost" // and of those without a name; label LabelEnd
	CPUTime         = "cpu_time"          // counter of the collector proc; labels LabelEnd and LabelRole
	// RoleUnattributed is the LabelRole of CPU time that an end's cgroups were charged,
	// and that no thread's is known to be.
	RoleUnattributed = "unattributed"

	// RateSuffix ends the name of the sample that a counter's series is reduced to: its
	// rate over the measured window.
	RateSuffix = "_rate"

	// Runs is a sample, without labels, of how many runs the measured window of a
	// trial holds, where a response's Operation is "run"; one, if it is not there.
	Runs = "runs"
)
