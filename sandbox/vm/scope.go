package vm

import (
	"path/filepath"
	"strings"

	"tare/record"
	"tare/sandbox"
)

// roleOf tells the threads of a machine apart. QEMU names its own with
// debug-threads=on: "CPU 0/KVM" or "CPU 0/TCG", "IO iothread0"; the main loop and the
// threads that read and write files for it are the VMM's. The kernel names vhost's
// threads after the process that they work for: vhost-1234. cloud-hypervisor names a thread
// of its own for each queue of a device: "_net0_qp0" (two queues: in and out), "_disk0_q0";
// "vcpu0" is a processor, "vmm" the main loop.
func roleOf(t sandbox.Thread) record.ThreadRole {
	switch {
	case strings.HasPrefix(t.Comm, "vhost-"):
		return record.RoleVhost
	case len(t.Args) > 0 && filepath.Base(t.Args[0]) == "virtiofsd":
		return record.RoleVirtiofsd
	case strings.HasPrefix(t.Comm, "CPU "), strings.HasPrefix(t.Comm, "vcpu"):
		return record.RoleVCPU
	case strings.HasPrefix(t.Comm, "IO "), strings.HasPrefix(t.Comm, "_net"), strings.HasPrefix(t.Comm, "_disk"):
		return record.RoleIOThread
	}
	return record.RoleVMM
}
