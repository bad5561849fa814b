// Package host describes the machine of the results, once a study.
//
// The data path: 1. Describe reads small files of /proc, /sys and /etc under a
// root that tests replace; 2. pure functions (parse.go) take the facts out of
// them; 3. KVM is tried (kvm.go); 4. every tool is asked for its version, with bounds on
// time and output (tools.go); 5. reasons to doubt figures of this host become warnings
// (warnings.go).
//
// A fact that cannot be found is "" or zero, never a guess or an error: a study also runs on
// hosts that hide most of this.
package host

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tare/record"
)

// maxFile bounds what is read of one file: /proc/cpuinfo of a host with
// thousands of processors stays below it.
const maxFile = 8 << 20

// Describe reads the host under root ("/", or a test's tree) and asks tools for
// their versions. ctx bounds the tools; each has five seconds. Sources:
// Documentation/filesystems/proc.rst, Documentation/ABI/testing/sysfs-devices-system-cpu,
// os-release(5), Documentation/virt/kvm/api.rst.
func Describe(ctx context.Context, root string, tools []Tool) record.Host {
	t := tree(root)
	h := record.Host{
		Hostname:    t.line("proc/sys/kernel/hostname"),
		OS:          osName(t.text("etc/os-release")),
		Kernel:      t.line("proc/sys/kernel/osrelease"),
		Arch:        t.arch(),
		Governor:    t.governor(),
		Clocksource: t.line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		KVM:         tryKVM(t.path("dev/kvm")),
		Cgroups:     cgroupMode(t.text("proc/self/mountinfo")),
		MemoryBytes: meminfo(t.text("proc/meminfo"), "MemTotal"),
		Mitigations: t.mitigations(),
	}
	if h.OS == "" {
		h.OS = osName(t.text("usr/lib/os-release")) // os-release(5) names both
	}
	info := t.text("proc/cpuinfo")
	h.CPUModel = cpuModel(info)
	h.Sockets, h.Cores, h.Threads = t.topology(info)
	h.Virtualization = virtualization(hints{
		cpuinfo:      info,
		hypervisor:   t.line("sys/hypervisor/type"),
		dmi:          []string{t.line("sys/class/dmi/id/sys_vendor"), t.line("sys/class/dmi/id/product_name"), t.line("sys/class/dmi/id/board_vendor"), t.line("sys/class/dmi/id/bios_vendor")},
		deviceTree:   strings.Trim(t.line("proc/device-tree/hypervisor/compatible"), "\x00"),
		clocksources: t.line("sys/devices/system/clocksource/clocksource0/available_clocksource"),
	})
	var doubts []record.Warning
	h.Tools, doubts = versions(ctx, tools)
	h.Warnings = append(t.warnings(&h), doubts...)
	return h
}

// tree is the root that all files are read under.
type tree string

func (t tree) path(name string) string { return filepath.Join(string(t), name) }

// text returns a file's content, "" if it cannot be read.
func (t tree) text(name string) string {
	f, err := os.Open(t.path(name))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read from
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "?")
}

// line returns a file's first line.
func (t tree) line(name string) string {
	s, _, _ := strings.Cut(t.text(name), "\n")
	return strings.TrimSpace(s)
}

func (t tree) glob(pattern string) []string {
	m, _ := filepath.Glob(t.path(pattern)) // only a malformed pattern fails
	return m
}

// rel makes a path of glob relative, for text and line.
func (t tree) rel(path string) string {
	r, err := filepath.Rel(string(t), path)
	if err != nil {
		return path
	}
	return r
}

// arch is the machine's name in uname(2)'s spelling.
func (t tree) arch() string {
	if a := t.line("proc/sys/kernel/arch"); a != "" { // since Linux 6.1
		return a
	}
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// governor returns the frequency governor, several with commas if processors differ; "" if
// the host shows no frequency scaling, as in most virtual machines.
func (t tree) governor() string {
	var seen []string
	for _, f := range t.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") {
		if g := t.line(t.rel(f)); g != "" && !slices.Contains(seen, g) {
			seen = append(seen, g)
		}
	}
	slices.Sort(seen)
	return strings.Join(seen, ",")
}

func (t tree) mitigations() map[string]string {
	files := t.glob("sys/devices/system/cpu/vulnerabilities/*")
	if len(files) == 0 {
		return nil
	}
	out := make(map[string]string, len(files))
	for _, f := range files {
		out[filepath.Base(f)] = t.line(t.rel(f))
	}
	return out
}

// topology counts sockets, cores and threads that are online, by sysfs
// (Documentation/admin-guide/cputopology.rst), or by cpuinfo where that is
// missing.
func (t tree) topology(cpuinfo string) (sockets, cores, threads int) {
	packages, distinct := map[string]bool{}, map[string]bool{}
	for _, dir := range t.glob("sys/devices/system/cpu/cpu[0-9]*/topology") {
		name := t.rel(dir)
		pkg, core := t.line(name+"/physical_package_id"), t.line(name+"/core_cpus_list")
		if core == "" {
			core = t.line(name + "/thread_siblings_list") // before Linux 5.3
		}
		if pkg == "" || core == "" {
			continue
		}
		packages[pkg], distinct[pkg+"/"+core] = true, true
		threads++
	}
	if threads > 0 {
		return len(packages), len(distinct), threads
	}
	return cpuinfoTopology(cpuinfo)
}

// number reads a whole number; zero if s is not one.
func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n
}
