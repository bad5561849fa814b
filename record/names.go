package record

// Names of samples and labels that package run, or an analysis, looks for. What
// gives them uses these constants, so that none can be renamed at one end alone.
const (
	LabelEnd  = "end"  // the role of a workload whose sandbox it is
	LabelCall = "call" // a system call's name
	LabelRole = "role" // whose thread it is: a ThreadRole
	// LabelSandbox is the kind of sandbox that an end is in.
	LabelSandbox = "sandbox"

	SystemCalls     = "system_calls"      // counter of the collector calls; labels LabelCall and LabelEnd
	SystemCallsLost = "system_calls_lost" // and of those without a name; label LabelEnd
	CPUTime         = "cpu_time"          // counter of the collector proc; labels LabelEnd and LabelRole
	CgroupCPU       = "cgroup_cpu"        // counter of the collector cgroup; label LabelEnd

	// ThreadBusiest is a sample of the measured time: the CPU, in cores, of the thread of
	// a role that used most; ThreadBusiestWait the time that it waited for a processor,
	// seconds a second. LabelEnd and LabelRole.
	ThreadBusiest     = "thread_busiest"
	ThreadBusiestWait = "thread_busiest_wait"

	// LabelCPU is a processor's number in a guest, LabelMode what it did: user, system,
	// iowait, irq, softirq, steal, idle.
	LabelCPU  = "cpu"
	LabelMode = "mode"
	// Series of the collector guest, each with LabelEnd.
	GuestCPU      = "guest_cpu"              // counter, seconds; LabelCPU, LabelMode
	GuestSoftIRQs = "guest_softirqs"         // counter; LabelCPU, and LabelMode: net_rx, net_tx, block
	GuestRunnable = "guest_runnable"         // gauge: threads on a run queue or running
	GuestMemory   = "guest_memory_available" // gauge, bytes
	AgentCPU      = "agent_cpu"              // counter, seconds: of the agent in the guest
	// GuestCores and GuestBusiest are samples of the measured time: what a guest's
	// processors did together, LabelEnd and LabelMode, in cores; and of the one that was
	// idle least the part of its time that it was not idle, LabelEnd.
	GuestCores   = "guest_cores"
	GuestBusiest = "guest_busiest"
	// Series of the collector link, each with LabelEnd: of a sandbox's port on the study's
	// bridge, or of the link that a modelled one has.
	LinkReceived = "link_received" // counter, bytes towards the sandbox
	LinkSent     = "link_sent"     // counter, bytes from it
	LinkRate     = "link_rate"     // gauge, bytes a second that each way can carry; missing where nothing says
	LinkBacklog  = "link_backlog"  // gauge, bytes that wait in the port's queues
	LinkDrops    = "link_drops"    // counter, packets that found them full
	// Series of the collector disk, each with LabelDevice: of the host's block devices.
	LabelDevice = "device"
	DeviceBusy  = "device_busy"  // counter, seconds in which it had a request at least (io_ticks)
	DeviceQueue = "device_queue" // counter, seconds that its requests waited and were served, summed up
	DeviceRead  = "device_read"  // counter, bytes
	DeviceWrote = "device_wrote" // counter, bytes
	// CollectorCPU is a series of every collector: counter, seconds that its readings took,
	// up to the reading before. The label collector is its name.
	CollectorCPU = "collector_cpu"
	// How the CPU limit of a group was met, series of the collector cgroup with LabelEnd:
	// its periods of enforcement, those in which it was reached, and the seconds that
	// threads were held back, summed over processors. Counters.
	CgroupPeriods          = "cgroup_periods"
	CgroupThrottledPeriods = "cgroup_throttled_periods"
	CgroupThrottledTime    = "cgroup_throttled_time"
	// CPUQuota is a gauge of the collector cgroup: the cores that a limited group may use.
	CPUQuota = "cpu_quota"

	// SandboxBoot is a sample: seconds of one step of a sandbox's start; LabelEnd,
	// LabelSandbox and LabelPhase.
	SandboxBoot = "sandbox_boot"
	LabelPhase  = "phase"
	// ClockOffset and ClockUncertainty are samples: what to add to a time in a sandbox
	// of its own kernel, seconds; LabelEnd, and LabelPhase start or stop.
	ClockOffset      = "clock_offset"
	ClockUncertainty = "clock_uncertainty"
	// ClockDrift is the code of a warning: those two looks do not agree.
	ClockDrift = "clock-drift"
	// StartSkew is a sample without labels: seconds from the first to the last start of
	// the roles that were to start together.
	StartSkew = "start_skew"
	// StartUncertainty is a sample: seconds by which the start of a role, as StartSkew takes
	// it, may be off; LabelEnd.
	StartUncertainty = "start_uncertainty"

	// FactAccelerator ends the name of a trial's fact ROLE.accelerator: what ran the
	// processors of the role's sandbox.
	FactAccelerator = "accelerator"
	// Values of that fact: the host's processors, QEMU's emulation of some, and the model.
	AcceleratorKVM   = "kvm"
	AcceleratorTCG   = "tcg"
	AcceleratorModel = "model"

	// RateSuffix ends the name of the sample that a counter's series is reduced to: its
	// rate over the measured window.
	RateSuffix = "_rate"

	// Runs is a sample, without labels, of how many runs the measured window of a
	// trial holds, where a response's Operation is "run"; one, if it is not there.
	Runs = "runs"
)
