package vm

import (
	"tare/record"
	"tare/sandbox"
)

// ThreadRoles tells the threads of a machine apart. QEMU names its own with
// debug-threads=on: "CPU 0/KVM" or "CPU 0/TCG", "IO iothread0"; the main loop and the
// threads that read and write files for it are the VMM's. The kernel names vhost's
// threads after the process that they work for: vhost-1234. cloud-hypervisor names a thread
// of its own for each queue of a device: "_net0_qp0" (two queues: in and out), "_disk0_q0";
// "vcpu0" is a processor, "vmm" the main loop.
func ThreadRoles() sandbox.ThreadRoles {
	return sandbox.ThreadRoles{
		{Role: record.RoleVhost, Comm: "vhost-"},
		{Role: record.RoleVirtiofsd, Program: "virtiofsd"},
		{Role: record.RoleVCPU, Comm: "CPU "},
		{Role: record.RoleVCPU, Comm: "vcpu"},
		{Role: record.RoleIOThread, Comm: "IO "},
		{Role: record.RoleIOThread, Comm: "_net"},
		{Role: record.RoleIOThread, Comm: "_disk"},
		{Role: record.RoleVMM},
	}
}
