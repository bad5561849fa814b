package pbench

import (
	"path"
	"regexp"
	"strings"

	"tare/record"
)

// process is a column of pidstat's CSV: PID-COMMAND, or with threads PID:TID-COMMAND.
// The command has 40 characters, with _ for blanks. Pbench writes a QEMU's as KVMguest--NAME.
type process struct {
	pid, tid string // tid is "" for a whole process
	command  string
}

var processName = regexp.MustCompile(`^(\d+)(?::(\d+))?-(.+)$`)

func parseProcess(column string) (process, bool) {
	g := processName.FindStringSubmatch(column)
	if g == nil {
		return process{}, false
	}
	return process{g[1], g[2], g[3]}, true
}

// program returns the command's first word, without its folder.
func (p process) program() string {
	word, _, _ := strings.Cut(p.command, "_-")
	word, _, _ = strings.Cut(word, " ")
	return path.Base(word)
}

var vhostName = regexp.MustCompile(`^vhost-(\d+)`)

// role returns the thread role; "" for a process outside of sandboxes. benchmark is the
// program of the workload.
func (p process) role(benchmark string) record.ThreadRole {
	name := p.program()
	switch {
	case vhostName.MatchString(p.command):
		return record.RoleVhost
	case strings.HasPrefix(name, "virtiofsd"):
		return record.RoleVirtiofsd
	case p.tid != "" && strings.HasPrefix(p.command, "CPU_"):
		return record.RoleVCPU
	case p.tid != "" && strings.HasPrefix(p.command, "IO_"):
		return record.RoleIOThread
	case p.vmm():
		return record.RoleVMM
	case strings.HasPrefix(name, "runsc-gofer"):
		return record.RoleGofer
	case strings.HasPrefix(name, "runsc-sandbox"):
		return record.RoleSentry
	case strings.HasPrefix(name, "containerd-shim"), strings.HasPrefix(name, "conmon"), strings.HasPrefix(name, "kata-shim"):
		return record.RoleShim
	case benchmark != "" && (name == benchmark || strings.HasPrefix(name, benchmark+"_")):
		return record.RoleWorkload
	}
	return ""
}

// vmm reports whether it is a virtual machine monitor.
func (p process) vmm() bool {
	name := p.program()
	return strings.HasPrefix(p.command, "KVMguest--") || strings.HasPrefix(name, "qemu") ||
		strings.HasPrefix(name, "cloud-hypervis") || strings.HasPrefix(name, "firecracker")
}

// owner returns the process that a vhost thread works for, "" for other threads.
func (p process) owner() string {
	if g := vhostName.FindStringSubmatch(p.command); g != nil {
		return g[1]
	}
	return ""
}

// single reports whether it is one thread. vhost's threads are separate kernel threads.
func (p process) single(role record.ThreadRole) bool { return p.tid != "" || role == record.RoleVhost }
