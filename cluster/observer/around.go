package observer

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tare/host/cgroup"
	"tare/sizing"
)

// HostNetwork is Around.Network of a pod in its node's network namespace.
const HostNetwork = "host network"

// Around describes the environment of a pod's container. What the node does not tell is "".
type Around struct {
	Kernel  string `json:"kernel,omitempty"`  // the node's, as uname -r prints it
	Root    string `json:"root,omitempty"`    // file system of the container's root, and the snapshotter that made it
	Network string `json:"network,omitempty"` // interfaces of the pod, without a runtime's own, or HostNetwork
	Device  string `json:"device,omitempty"`  // kind of the first of them: veth, macvlan, or a driver's name
	Runtime string `json:"runtime,omitempty"` // the program that containerd's shim for OCI runtimes calls, and the shim's options
	Sizing  string `json:"sizing,omitempty"`  // of a pod of Kata's: which of its runtimes made it (sizing.Flavour)
}

// containerID matches the ID that containerd and CRI-O give a container.
var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// around describes a container by the processes in its group.
func around(container *cgroup.Group) Around {
	a := Around{}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		a.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	pids, err := container.Procs()
	if err != nil || len(pids) == 0 {
		return a
	}
	var all []process
	for _, pid := range pids {
		all = append(all, process(fmt.Sprintf("/proc/%d", pid)))
	}
	p, outside := all[0], all[0].parent()
	for slices.Contains(all, outside) {
		p, outside = outside, outside.parent()
	}
	// A runtime may hide the container's root from the processes that run it, but whoever mounted
	// it still sees it: their parent, containerd's shim.
	id := containerID.FindString(container.Rel() + " " + p.text("cmdline"))
	a.Runtime = calledBy(append(slices.Clone(all), outside))
	a.Sizing = madeBy(append(slices.Clone(all), outside), id)
	for _, from := range []process{outside, "/proc/1"} {
		if a.Root == "" && id != "" {
			a.Root = from.root(id)
		}
	}
	if a.Root == "" && !p.shares("mnt", outside) {
		a.Root = p.root("")
	}
	for _, p := range all { // one of gVisor's has a network namespace of its own, without interfaces
		if p.shares("net", outside) {
			a.Network = HostNetwork
		} else if own := interfaces(p.text("net/dev")); own != "" {
			a.Network = own
			if first, _, _ := strings.Cut(own, " "); !p.shares("mnt", outside) {
				a.Device = p.device(first)
			}
			break
		}
	}
	return a
}

// ociShim is containerd's program that calls runc, or another OCI runtime.
const ociShim = "containerd-shim-runc-v2"

// calledBy returns the runtime that a container's shim calls, and the shim's options. The shim's working directory is the bundle
// of the pod, where it keeps both (containerd's cmd/containerd-shim-runc-v2/runc/container.go). It returns "" for other shims,
// and if the files are missing.
func calledBy(near []process) string {
	for _, p := range near {
		if p.program() != ociShim {
			continue
		}
		options := strings.TrimSpace(p.text("cwd/options.json"))
		program, err := os.ReadFile(filepath.Join(string(p), "cwd/runtime"))
		const most = 1000 // bytes
		if err != nil || options == "" || len(options)+len(program) > most {
			return ""
		}
		return cmp.Or(strings.TrimSpace(string(program)), "runc") + " " + options
	}
	return ""
}

// kataShim is the program of both of Kata's runtimes.
const kataShim = "containerd-shim-kata-v2"

// madeBy tells which of Kata's runtimes made the sandbox with the ID: "" if neither did, or nobody tells. Its shim is
// near the container, or in a control group of its own (sandbox_cgroup_only = false); then its arguments have the ID.
func madeBy(near []process, id string) string {
	for _, p := range near {
		switch name := p.program(); {
		case name == kataShim:
			return p.flavour()
		case strings.HasPrefix(name, "containerd-shim"), name == "conmon":
			return "" // another runtime's
		}
	}
	if id == "" {
		return ""
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if p := process(dir); p.program() == kataShim && strings.Contains(p.text("cmdline"), id) {
			return p.flavour()
		}
	}
	return ""
}

// program is the name of a process's program; "" if that cannot be read.
func (p process) program() string {
	exe, _ := os.Readlink(filepath.Join(string(p), "exe"))
	return strings.TrimSuffix(filepath.Base(exe), " (deleted)")
}

// flavour tells runtime-rs from the runtime in Go by the program itself: who installs it may put it anywhere, but Go's
// linker leaves a note in each program.
func (p process) flavour() string {
	f, err := os.Open(filepath.Join(string(p), "exe"))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if _, err := buildinfo.Read(f); err == nil {
		return string(sizing.Go)
	}
	return string(sizing.RS)
}

// process is the directory of a process in /proc.
type process string

func (p process) text(file string) string {
	b, _ := os.ReadFile(filepath.Join(string(p), file)) //nolint:gosec // in /proc
	return string(b)
}

func (p process) parent() process {
	stat := p.text("stat")
	if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) > 1 {
		return process("/proc/" + f[1])
	}
	return ""
}

// root describes the root file system of the container with the ID; without an ID, the process's.
func (p process) root(id string) string {
	f, err := os.Open(filepath.Join(string(p), "mountinfo"))
	if p == "" || err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return rootIn(f, id)
}

func rootIn(table io.Reader, id string) string {
	mounts, err := mountinfo.GetMountsFromReader(table, func(m *mountinfo.Info) (skip, stop bool) {
		if id == "" {
			return m.Mountpoint != "/", false
		}
		return filepath.Base(m.Mountpoint) != "rootfs" || !strings.Contains(m.Mountpoint, id), false
	})
	if err != nil || len(mounts) == 0 {
		return ""
	}
	m := mounts[len(mounts)-1] // what is mounted last hides the others
	by := regexp.MustCompile(`\.snapshotter\.v1\.([\w-]+)`).FindStringSubmatch(m.Root + " " + m.VFSOptions)
	switch {
	case by != nil:
		return m.FSType + ", snapshotter " + by[1]
	case strings.HasPrefix(m.Source, "/dev/"):
		return m.FSType + " on a block device"
	}
	return m.FSType
}

// shares reports whether two processes are in one namespace of the kind.
func (p process) shares(kind string, with process) bool {
	own, err := os.Stat(filepath.Join(string(p), "ns", kind))
	other, oerr := os.Stat(filepath.Join(string(with), "ns", kind))
	return err == nil && oerr == nil && os.SameFile(own, other)
}

// interfaces lists those of a network namespace. A virtual machine's runtime adds a tap to it.
func interfaces(table string) string {
	var names []string
	for line := range strings.Lines(table) {
		name, _, found := strings.Cut(strings.TrimSpace(line), ":")
		if found && name != "lo" && !strings.HasPrefix(name, "tap") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// device reads an interface's kind in the sysfs that the process's container has; "" if it has none, as in gVisor.
func (p process) device(name string) string {
	dir := process(filepath.Join(string(p), "root/sys/class/net", name))
	for line := range strings.Lines(dir.text("uevent")) {
		if kind, is := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); is {
			return kind
		}
	}
	if driver, err := os.Readlink(filepath.Join(string(dir), "device/driver")); err == nil {
		return filepath.Base(driver)
	}
	index, err := strconv.Atoi(strings.TrimSpace(dir.text("ifindex")))
	if link, lerr := strconv.Atoi(strings.TrimSpace(dir.text("iflink"))); err == nil && lerr == nil && link != index {
		return "veth"
	}
	return ""
}
