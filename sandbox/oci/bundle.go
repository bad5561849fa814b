package oci

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"tare/host/spawn"
	"tare/sandbox"
)

// writeBundle makes the bundle directory with its config.json:
// https://github.com/opencontainers/runtime-spec/blob/main/config.md
func (c *container) writeBundle(cmd sandbox.Command) error {
	if c.spec.Dir == "" || c.spec.Root == "" {
		return errors.New("a container needs a directory and a root file system")
	}
	root, err := filepath.Abs(c.spec.Root)
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.bundle, 0o700); err != nil {
		return fmt.Errorf("cannot make the bundle: %w", err)
	}
	conf := config(c.spec, root, c.hierarchy.Absolute(c.cgroup()), cmd)
	if err := c.addVolumes(conf); err != nil {
		return err
	}
	b, err := json.MarshalIndent(conf, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.bundle, "config.json"), b, 0o600)
}

// config is what `runc spec` proposes, with the capabilities that container
// engines give by default, and without raised limits and OOM scores: a host may
// refuse these (CAP_SYS_RESOURCE). There is no seccomp filter, as in `runc
// spec`; engines add theirs.
func config(s sandbox.Spec, root, group string, cmd sandbox.Command) *specs.Spec {
	return &specs.Spec{
		Version:  "1.0.2", // what the oldest runtimes in distributions know
		Hostname: "tare",
		Root:     &specs.Root{Path: root, Readonly: s.Upper == ""},
		Process: &specs.Process{
			Args: cmd.Args, Cwd: cmp.Or(cmd.Dir, "/"), NoNewPrivileges: true,
			User:         specs.User{UID: cmd.User.UID, GID: cmd.User.GID, AdditionalGids: cmd.User.Groups},
			Env:          spawn.Environment(s, cmd.Env...),
			Capabilities: capabilitiesOf(cmd.User),
		},
		Mounts: mounts(),
		Linux: &specs.Linux{
			CgroupsPath: group,
			Resources:   resources(s),
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace, Path: s.Network.Path},
			},
			MaskedPaths: []string{
				"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
				"/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi",
			},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
}

// capabilities are those that Docker and containerd leave to a container's root.
func capabilities() []string {
	return []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
		"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
	}
}

// capabilitiesOf leaves other users none but the bound, as execve(2) does in a sandbox whose
// agent changes the user, and as Docker does.
func capabilitiesOf(u sandbox.User) *specs.LinuxCapabilities {
	caps := capabilities()
	if u.UID != 0 {
		return &specs.LinuxCapabilities{Bounding: caps}
	}
	return &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps}
}

func mounts() []specs.Mount {
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=1777"}},
	}
}

// period is the CPU quota's, in microseconds: the kernel's default.
const period = 100_000

func resources(s sandbox.Spec) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if s.CPULimit > 0 || s.CPUs != "" {
		r.CPU = &specs.LinuxCPU{Cpus: s.CPUs}
	}
	if s.CPULimit > 0 {
		p, q := uint64(period), int64(s.CPULimit*period)
		r.CPU.Period, r.CPU.Quota = &p, &q
	}
	if s.MemoryLimit > 0 {
		limit := s.MemoryLimit
		r.Memory = &specs.LinuxMemory{Limit: &limit}
	}
	return r
}
