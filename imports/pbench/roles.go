package pbench

import (
	"path"
	"regexp"
	"strings"

	"tare/record"
)

// process is a column of pidstat's CSV: PID-COMMAND, or with threads PID:TID-COMMAND.
// Of the command there are 40 characters, blanks as _; Pbench writes a QEMU's as
// KVMguest--NAME.
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

// program is the command's first word, without its folder.
func (p process) program() string {
	word, _, _ := strings.Cut(p.command, "_-")
	word, _, _ = strings.Cut(word, " ")
	return path.Base(word)
}

var vhostName = regexp.MustCompile(`^vhost-(\d+)`)

// role says whose thread or process it is; "" for one that is no part of a sandbox.
// benchmark is the program of the workload.
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

// vmm tells a virtual machine monitor.
func (p process) vmm() bool {
	name := p.program()
	return strings.HasPrefix(p.command, "KVMguest--") || strings.HasPrefix(name, "qemu") ||
		strings.HasPrefix(name, "cloud-hypervis") || strings.HasPrefix(name, "firecracker")
}

// owner is the process that a vhost thread works for, "" for others.
func (p process) owner() string {
	if g := vhostName.FindStringSubmatch(p.command); g != nil {
		return g[1]
	}
	return ""
}

// single reports whether it is one thread: vhost's are kernel threads of their own.
func (p process) single(role record.ThreadRole) bool { return p.tid != "" || role == record.RoleVhost }
