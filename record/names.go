package record

// Names of samples and labels that package run or an analysis reads. Their writers use the
// same constants, so that a name cannot change on one side only.
const (
	LabelEndpoint = "end"  // the workload's role whose sandbox it is: server, client
	LabelCall     = "call" // a system call's name
	LabelRole     = "role" // whose thread it is: a ThreadRole
	// LabelSandbox is the kind of sandbox that an endpoint is in.
	LabelSandbox = "sandbox"

	// SystemCPU is a counter of the collector system. With LabelEndpoint it is of that end's machine, which is then not the trial's.
	// QueuedConnections is a gauge of the collector proc, with LabelEndpoint: connections that a server's program has not accepted yet.
	SystemCPU         = "system_cpu"
	QueuedConnections = "queued_connections"

	SystemCalls     = "system_calls"         // counter of the collector calls; labels LabelCall and LabelEndpoint
	SystemCallsLost = "system_calls_lost"    // counter of calls without a name; label LabelEndpoint
	CPUTime         = "cpu_time"             // counter of the collector proc; labels LabelEndpoint and LabelRole
	CgroupCPU       = "cgroup_cpu"           // counter of the collector cgroup; label LabelEndpoint
	CgroupAnon      = "cgroup_memory_anon"   // gauges of the collector cgroup; label LabelEndpoint
	CgroupShmem     = "cgroup_memory_shmem"  //
	CgroupKernel    = "cgroup_memory_kernel" //
	IdleCPU         = "idle_cpu"             // sample, cores: what a sandbox used between the turns of a trial; label LabelEndpoint

	// ThreadBusiest is a sample of the measured time: the CPU, in cores, of the busiest thread
	// of a role. ThreadBusiestWait is the time that it waited for a processor, in seconds a
	// second. LabelEndpoint and LabelRole.
	ThreadBusiest     = "thread_busiest"
	ThreadBusiestWait = "thread_busiest_wait"

	// LabelCPU is a processor's number in a guest, LabelMode its mode: user, system, iowait,
	// irq, softirq, steal, idle.
	LabelCPU  = "cpu"
	LabelMode = "mode"
	// Series of the collector guest, each with LabelEndpoint.
	GuestCPU      = "guest_cpu"              // counter, seconds; LabelCPU, LabelMode
	GuestSoftIRQs = "guest_softirqs"         // counter; LabelCPU, and LabelMode: net_rx, net_tx, block
	GuestRunnable = "guest_runnable"         // gauge: threads on a run queue or running
	GuestMemory   = "guest_memory_available" // gauge, bytes
	AgentCPU      = "agent_cpu"              // counter, seconds: of the agent in the guest
	// GuestCores and GuestBusiest are samples of the measured time: the sum over a guest's
	// processors by mode, in cores, LabelEndpoint and LabelMode; and the part of the time that the
	// busiest one was not idle, LabelEndpoint.
	GuestCores   = "guest_cores"
	GuestBusiest = "guest_busiest"
	// Series of the collector link, each with LabelEndpoint: of a sandbox's port on the study's
	// bridge, or of a modelled link.
	LinkReceived = "link_received" // counter, bytes towards the sandbox
	LinkSent     = "link_sent"     // counter, bytes from it
	LinkRate     = "link_rate"     // gauge, bytes a second that each way can carry; missing if unknown
	LinkBacklog  = "link_backlog"  // gauge, bytes that wait in the port's queues
	LinkDrops    = "link_drops"    // counter, packets dropped because a queue was full
	// Paths between the endpoints of a workload, beside the study's bridge alone: two bridges that a
	// veth pair joins, or a tunnel, of which two are encrypted; or two nodes of a cluster and what is between them.
	PathWire      = "wire"
	PathVXLAN     = "vxlan"
	PathGeneve    = "geneve"
	PathWireGuard = "vxlan-wireguard"
	PathIPsec     = "geneve-ipsec"
	PathNodes     = "nodes"
	// Settings of a host's kernel that a study can change, as factors, and the level that leaves one as it is.
	SettingMigrationCost = "sched-migration-cost"
	SettingARPLimit      = "arp-limit"
	SettingHost          = "host"
	// Series of the collector disk, each with LabelDevice: of the host's block devices.
	LabelDevice     = "device"
	DeviceBusy      = "device_busy"       // counter, seconds in which it had at least one request (io_ticks)
	DeviceQueue     = "device_queue"      // counter, seconds that its requests waited and were served, summed over requests
	DeviceRead      = "device_read"       // counter, bytes
	DeviceWrote     = "device_wrote"      // counter, bytes
	DeviceRequests  = "device_requests"   // counter, reads and writes that it completed
	DeviceFlushes   = "device_flushes"    // counter, flushes of its cache that it completed
	DeviceFlushTime = "device_flush_time" // counter, seconds that these took
	// CollectorCPU is a series of every collector: counter, CPU seconds of its readings, up to
	// the last reading. The label collector is the collector's name.
	CollectorCPU = "collector_cpu"
	// Series of the collector cgroup for the CPU limit of a group, with LabelEndpoint: enforcement
	// periods, those in which the limit was reached, and the seconds that threads were held
	// back, summed over processors. Counters.
	CgroupPeriods          = "cgroup_periods"
	CgroupThrottledPeriods = "cgroup_throttled_periods"
	CgroupThrottledTime    = "cgroup_throttled_time"
	// Series of the collector cgroup for disks, with LabelEndpoint: bytes and requests that reached a disk,
	// counters; and what a limit lets the group do a second, gauges.
	CgroupIORead        = "cgroup_io_read"
	CgroupIOWritten     = "cgroup_io_written"
	CgroupIOReads       = "cgroup_io_reads"
	CgroupIOWrites      = "cgroup_io_writes"
	CgroupIOLimitRead   = "cgroup_io_limit_read"   // B/s
	CgroupIOLimitWrite  = "cgroup_io_limit_write"  // B/s
	CgroupIOLimitReads  = "cgroup_io_limit_reads"  // 1/s
	CgroupIOLimitWrites = "cgroup_io_limit_writes" // 1/s
	CgroupIOPressure    = "cgroup_io_pressure"     // counter, seconds in which some thread waited for a disk
	// CPUQuota is a gauge of the collector cgroup: the cores that a limited group may use.
	CPUQuota = "cpu_quota"

	// SandboxLife is a sample: seconds from the call that makes a sandbox until nothing is left of it, if
	// its program does nothing. Its labels are those of sandbox_start.
	SandboxLife = "sandbox_life"
	// SandboxBoot is a sample: seconds of one step of a sandbox's start; LabelEndpoint,
	// LabelSandbox and LabelPhase.
	SandboxBoot = "sandbox_boot"
	LabelPhase  = "phase"
	// SandboxLaunch is a sample: seconds of all steps of the start of a sandbox that a trial only starts and
	// ends, beside the SandboxBoot of each. Its labels are those of sandbox_start.
	SandboxLaunch = "sandbox_launch"
	// SandboxPulled is a sample: the size in bytes of the image that a node pulled for a sandbox that a trial only starts and
	// ends, as the node reports it. containerd reports the compressed size. Its labels are those of sandbox_start.
	SandboxPulled = "sandbox_pulled"
	// ClockOffset and ClockUncertainty are samples, in seconds: what to add to a time in a
	// sandbox with its own kernel, and its uncertainty; LabelEndpoint, and LabelPhase start or stop.
	ClockOffset      = "clock_offset"
	ClockUncertainty = "clock_uncertainty"
	// ClockDrift is the code of a warning: the estimates at start and stop do not agree.
	ClockDrift = "clock-drift"
	// StartSkew is a sample without labels: seconds from the first to the last start of the
	// roles that should start together.
	StartSkew = "start_skew"
	// StartUncertainty is a sample: the uncertainty of the start of a role in StartSkew, in
	// seconds; LabelEndpoint.
	StartUncertainty = "start_uncertainty"

	// FactAccelerator ends the name of a trial's fact ROLE.accelerator: what ran the
	// processors of the role's sandbox.
	FactAccelerator = "accelerator"
	// FactNode, FactCPULimit and FactMemoryLimit end the names of a trial's facts: the node that a
	// role's sandbox was on, and the limits that were in force there, in cores and bytes, or "none".
	FactNode        = "node"
	FactPod         = "pod" // its UID
	FactCPULimit    = "cpu_limit_in_force"
	FactMemoryLimit = "memory_limit_in_force"
	// Further facts of what a role's sandbox stood on. FactHandler is what the container runtime
	// calls the kind of sandbox, FactRoot the file system of its root, FactNetwork its interfaces,
	// and FactDevice the kind of the first.
	FactKernel = "node_kernel"
	// FactMachine is the machine that the node is or shares with others: its boot ID.
	FactMachine = "node_machine"
	FactOS      = "node_os"
	FactRuntime = "container_runtime"
	FactHandler = "runtime_handler"
	// FactPriorityLevel is the priority level that the API server gave the request that created a pod: its name, or its UID.
	FactPriorityLevel = "api_priority_level"
	// FactProgram is the runtime that created the containers, with its settings, as a node's observer finds them.
	FactProgram = "runtime_program"
	FactRoot    = "root_file_system"
	FactNetwork = "network"
	FactDevice  = "network_device"
	// ToolKubelet is the tool that only a cluster's node has (Host.Tools).
	ToolKubelet = "kubelet"
	// FactRuntimeClass is a pod's RuntimeClass. Only pods have it; it is empty for the cluster's default.
	FactRuntimeClass = "runtime_class"
	// FactStorage begins the end of the names ROLE.storage.VOLUME: what a volume is stored on.
	FactStorage = "storage."
	// FactStorageClass is the StorageClass of the claims of a pod that has volumes on disk, as the study names it, or "none".
	FactStorageClass = "storage_class"
	FactQOS          = "qos_class"
	FactPriority     = "priority"
	// LimitNotInForce is the code of the warning that a limit that was asked for did not hold.
	LimitNotInForce = "limit-not-in-force"
	// FactImageDigest ends the name of the fact with the digest of the image that a role's sandbox ran.
	FactImageDigest = "image_digest"
	// Values of that fact: the host's processors, QEMU's emulation of some, and the model.
	AcceleratorKVM   = "kvm"
	AcceleratorTCG   = "tcg"
	AcceleratorModel = "model"

	// RateSuffix ends the name of the sample that is a counter's rate over the measured window.
	RateSuffix = "_rate"

	// Runs is a sample without labels: the number of runs in the measured window of a trial, if
	// a response's Operation is "run". Without it, the number is one.
	Runs = "runs"
	// LoadTime is a sample without labels: for how long the workload's load ran, as the workload itself tells, in seconds.
	LoadTime = "load_time"
	// PhaseRun is the phase of a trial that is its measured window.
	PhaseRun = "run"
)

// IdleMost is how much of a processor a sandbox may use between its turns before the report mentions it.
const IdleMost = 0.02

// Ends of a trial that are not the study's, as LabelEndpoint has them: what a load passes through outside of the study.
const (
	EndController = "controller"
	EndBackend    = "backend" // the servers behind the controller
)
