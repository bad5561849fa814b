package record

// ThreadRole is the part that a thread plays on the host: the value of LabelRole. It is
// not a workload's role (server, client), which is the value of LabelEndpoint.
type ThreadRole string

// Roles of threads.
const (
	RoleWorkload  ThreadRole = "workload"
	RoleHarness   ThreadRole = "harness" // this program's own, including its agent in a sandbox
	RoleSentry    ThreadRole = "sentry"  // gVisor's kernel
	RoleGofer     ThreadRole = "gofer"   // gVisor's file server
	RoleShim      ThreadRole = "shim"    // between a container manager and a runtime
	RoleVCPU      ThreadRole = "vcpu"
	RoleIOThread  ThreadRole = "iothread"
	RoleVhost     ThreadRole = "vhost"
	RoleVirtiofsd ThreadRole = "virtiofsd"
	RoleVMM       ThreadRole = "vmm" // the other threads of a VMM, such as QEMU's main loop
	// RoleUnattributed is CPU time that a sandbox's cgroups were charged and that the
	// sampler saw no thread use: of threads that began and ended between two searches,
	// and the last moments of those that ended.
	RoleUnattributed ThreadRole = "unattributed"
)
