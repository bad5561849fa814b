package host

import (
	"strconv"
	"strings"
)

// field finds "key : value" lines, as in /proc/cpuinfo and /proc/meminfo.
func field(line, key string) (string, bool) {
	k, v, ok := strings.Cut(line, ":")
	if !ok || strings.TrimSpace(k) != key {
		return "", false
	}
	return strings.TrimSpace(v), true
}

func first(text string, keys ...string) string {
	for _, key := range keys {
		for line := range strings.Lines(text) {
			if v, ok := field(line, key); ok && v != "" {
				return v
			}
		}
	}
	return ""
}

// cpuModel returns the processor's name: "model name" on x86, "cpu model" on MIPS, "Model"
// of the board on others. arm64 has only numbers (MIDR_EL1), which stay numbers.
func cpuModel(cpuinfo string) string {
	if m := first(cpuinfo, "model name", "cpu model", "cpu"); m != "" {
		return strings.Join(strings.Fields(m), " ")
	}
	impl, part := first(cpuinfo, "CPU implementer"), first(cpuinfo, "CPU part")
	if impl != "" && part != "" {
		return "implementer " + impl + " part " + part
	}
	return ""
}

func cpuinfoTopology(cpuinfo string) (sockets, cores, threads int) {
	packages, distinct := map[string]bool{}, map[string]bool{}
	pkg := ""
	for line := range strings.Lines(cpuinfo) {
		if _, ok := field(line, "processor"); ok {
			threads++
			pkg = ""
		} else if v, ok := field(line, "physical id"); ok {
			pkg = v
			packages[v] = true
		} else if v, ok := field(line, "core id"); ok {
			distinct[pkg+"/"+v] = true
		}
	}
	return len(packages), len(distinct), threads
}

// meminfo reads one line of /proc/meminfo in bytes. Its "kB" means 1024 bytes.
func meminfo(text, key string) int64 {
	n := number(strings.TrimSuffix(first(text, key), "kB"))
	if n < 0 || n > 1<<52 {
		return 0
	}
	return n * 1024
}

// osName is PRETTY_NAME of os-release(5): shell-like assignments, perhaps quoted.
func osName(text string) string {
	for line := range strings.Lines(text) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if s, err := strconv.Unquote(v); err == nil {
			return s
		}
		return strings.Trim(v, `"'`)
	}
	return ""
}

// cgroupMode reads from mountinfo (proc_pid_mountinfo(5)) which versions are mounted. With a
// version 1 tree beside version 2 a host is hybrid, even if the tree has no controllers, such
// as systemd's.
func cgroupMode(mountinfo string) string {
	v1, v2 := false, false
	for line := range strings.Lines(mountinfo) {
		_, rest, ok := strings.Cut(line, " - ")
		if !ok {
			continue
		}
		switch kind, _, _ := strings.Cut(rest, " "); kind {
		case "cgroup":
			v1 = true
		case "cgroup2":
			v2 = true
		}
	}
	switch {
	case v1 && v2:
		return "hybrid"
	case v2:
		return "v2"
	case v1:
		return "v1"
	}
	return ""
}

// hints is the input of virtualization.
type hints struct {
	cpuinfo, hypervisor      string
	dmi                      []string
	deviceTree, clocksources string
}

// virtualization returns the hypervisor of this host, as systemd-detect-virt(1) does but
// without CPUID: "none" for hardware, "unknown" for an unknown hypervisor, "" without any
// hint.
func virtualization(h hints) string {
	vendors := []struct{ in, name string }{
		{"KVM", "kvm"},
		{"OpenStack", "kvm"},
		{"KubeVirt", "kvm"},
		{"Amazon EC2", "amazon"},
		{"Google Compute Engine", "google"},
		{"Google", "google"},
		{"QEMU", "qemu"},
		{"VMware", "vmware"},
		{"VMW", "vmware"},
		{"innotek GmbH", "virtualbox"},
		{"VirtualBox", "virtualbox"},
		{"Xen", "xen"},
		{"Bochs", "bochs"},
		{"Parallels", "parallels"},
		{"BHYVE", "bhyve"},
		{"Hyper-V", "microsoft"},
		{"Virtual Machine", "microsoft"},
		{"Firecracker", "firecracker"},
		{"Apple Virtualization", "apple"},
	}
	flag := false
	for f := range strings.FieldsSeq(first(h.cpuinfo, "flags")) {
		flag = flag || f == "hypervisor"
	}
	if h.hypervisor != "" {
		return h.hypervisor
	}
	// A bare machine of these vendors has the vendor in DMI too; on x86 the
	// processor's flag decides.
	x86 := first(h.cpuinfo, "flags") != ""
	if flag || !x86 {
		for _, d := range h.dmi {
			for _, v := range vendors {
				if strings.Contains(d, v.in) {
					return v.name
				}
			}
		}
	}
	switch {
	case h.deviceTree != "":
		return strings.TrimPrefix(h.deviceTree, "linux,")
	case strings.Contains(h.clocksources, "kvm-clock"):
		return "kvm"
	case strings.Contains(h.clocksources, "hyperv"):
		return "microsoft"
	case strings.Contains(h.clocksources, "xen"):
		return "xen"
	case flag:
		return "unknown"
	case x86:
		return "none"
	}
	return ""
}

// smt reports whether two online threads share a core.
func smt(cores, threads int) bool { return cores > 0 && threads > cores }

// swapUsed sums the used column of /proc/swaps, in bytes.
func swapUsed(swaps string) int64 {
	var sum int64
	for line := range strings.Lines(swaps) {
		f := strings.Fields(line)
		if len(f) >= 5 && f[0] != "Filename" {
			if n := number(f[3]); n > 0 && n < 1<<40 && sum < 1<<52 {
				sum += n * 1024
			}
		}
	}
	return sum
}

// load1 returns the first figure of /proc/loadavg.
func load1(loadavg string) float64 {
	s, _, _ := strings.Cut(loadavg, " ")
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e6 {
		return 0
	}
	return f
}

// stealShare returns the share of processor time since boot that the hypervisor gave to
// others while this host wanted to run.
func stealShare(stat string) float64 {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0
	}
	wanted := 0.0
	for i, s := range f[1:9] {
		if i != 3 && i != 4 { // idle, iowait
			wanted += float64(number(s))
		}
	}
	if wanted <= 0 {
		return 0
	}
	return max(float64(number(f[8]))/wanted, 0)
}
