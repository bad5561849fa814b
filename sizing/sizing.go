// Package sizing says how large a virtual machine around a pod becomes, and what
// bounds it on the host, as Kata Containers does it. `tare size` shows it.
//
// The data path: 1. a Pod is what the user asked for (FromManifest reads a
// Kubernetes manifest), a Runtime what the runtime's configuration adds; 2. Of
// turns both into a Size; 3. Rules explains where each figure comes from.
//
// Kata Containers has two runtimes, and each has a rule of its own (Flavour). The runtime in
// Go boots default_vcpus and default_memory and plugs the limits in: its design document
// docs/design/vcpu-handling-runtime-go.md ("the number of vCPUs at boot plus the ceiling of
// the containers' CPU limits"). runtime-rs, which kata-deploy installs by default since Kata 4, boots what the limits
// and a fixed overhead come to, and default_* count only without limits:
// docs/how-to/how-to-size-sandbox-overhead-runtime-rs.md, and InitialSizeManager in
// src/runtime-rs/crates/resource/src/cpu_mem/initial_size.rs. The sandbox cgroup of both is
// that of docs/design/host-cgroups.md with the pod overhead of its RuntimeClass.
package sizing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/param"
)

// Kata's defaults: vCPUs and MiB at boot, and the cores that its RuntimeClass adds to the CPU
// quota of a pod with a limit.
const (
	DefaultVCPUs     = 1
	DefaultMemoryMiB = 2048
	Overhead         = 0.25
)

// Flavour is a runtime of Kata's, by which rule it sizes a machine.
type Flavour string

// Flavours. "" is Go.
const (
	Go Flavour = "go" // boots the default and plugs the limits in
	RS Flavour = "rs" // runtime-rs: boots limits and overhead, and plugs nothing in
)

// IsKata tells Kata's RuntimeClasses and their handlers by name: kata, kata-qemu, kata-clh, ...
func IsKata(name string) bool { return strings.HasPrefix(name, "kata") }

// FlavourOf tells which of Kata's runtimes a handler of a RuntimeClass stands for, by the names that kata-deploy gives
// them: kata-SHIM, with a suffix for a further installation (RUST_SHIMS in
// tools/packaging/kata-deploy/binary/src/utils/system.rs of 4.1). "": the name does not tell. Plain kata does not: it
// may be either, by Kata's version and by who installed it.
func FlavourOf(handler string) Flavour {
	shim, is := strings.CutPrefix(handler, "kata-")
	name, _, _ := strings.Cut(shim, "-")
	switch {
	case !is:
		return ""
	case strings.Contains(shim, "runtime-rs"), name == "dragonball":
		return RS
	case slices.Contains([]string{"qemu", "clh", "fc", "firecracker", "stratovirt"}, name):
		return Go
	}
	return ""
}

// runtime-rs's overheads in a guest with QEMU (src/runtime-rs/Makefile, DEFOVERHEADVCPUS_QEMU
// and DEFOVERHEADMEMSZ_QEMU of 4.1), and the queues of its network card (DEFNETQUEUES).
const (
	DefaultOverheadVCPUs = 0.2
	DefaultOverheadMiB   = 32
	queuesRS             = 1
)

const (
	maxVCPUs     = 4096
	maxMemoryMiB = 64 << 20 // of a pod's memory limit

	// LeastMemoryMiB is the least memory for a boot with a distribution's kernel and the guest's
	// first program.
	LeastMemoryMiB = 192

	// MostMemoryMiB bounds the memory at boot: more than 1 TiB is taken for a mistake.
	MostMemoryMiB = 1 << 20
)

// Pod is what a pod requests. Zero means that it requests nothing.
type Pod struct {
	CPULimit    float64 // cores, the sum over the containers that have one, or an init container's if that is more
	CPURequest  float64 // cores; Kata ignores it
	MemoryLimit int64   // bytes, as CPULimit
	Unbounded   bool    // another container has no CPU limit, so the pod has no quota
}

// Runtime is the runtime's configuration.
type Runtime struct {
	Flavour   Flavour
	VCPUs     int // at boot; 0 for DefaultVCPUs, negative for all of the host's
	MemoryMiB int // at boot; 0 for DefaultMemoryMiB
	HostCPUs  int // the host's processors bound the vCPUs, but not those that RS gives for a limit; 0 for no bound

	// overhead_vcpus and overhead_memory: what RS adds to the limits in the guest. 0 adds nothing.
	OverheadVCPUs float64
	OverheadMiB   int

	// Overhead is what the pod's RuntimeClass adds to the CPU quota of its sandbox, in cores
	// (spec.overhead), if OverheadGiven. Otherwise the constant Overhead is added.
	Overhead      float64
	OverheadGiven bool

	VCPUsAnnotated, MemoryAnnotated bool // the figure comes from an annotation of the pod; for Rules
}

// Size is a machine and its bounds.
type Size struct {
	VCPUsBoot       int     `json:"vcpus_boot"`
	VCPUsHotplugged int     `json:"vcpus_hotplugged"`
	VCPUsTotal      int     `json:"vcpus_total"`
	MemoryBoot      int64   `json:"memory_boot_bytes"`
	MemoryBytes     int64   `json:"memory_bytes"`
	CPUQuotaCores   float64 `json:"cpu_quota_cores"` // of the cgroup that holds every process of the sandbox; 0 for no quota
	NetworkThreads  int     `json:"network_threads"`
}

// Of computes the size of a pod's machine. The error names a figure that is out of range.
func Of(p Pod, r Runtime) (Size, error) {
	for _, c := range []struct {
		name  string
		cores float64
	}{{"CPU limit", p.CPULimit}, {"CPU request", p.CPURequest}} {
		if math.IsNaN(c.cores) || c.cores < 0 || c.cores > param.MostCPULimit {
			return Size{}, fmt.Errorf("a %s of %g cores is not possible; write %g to %d, or none", c.name, c.cores, param.LeastCPULimit, param.MostCPULimit)
		}
	}
	if p.CPULimit > 0 && p.CPULimit < param.LeastCPULimit-1e-9 { // a request may be smaller: it has no effect
		return Size{}, fmt.Errorf("a CPU limit of %g cores is not possible; write %g to %d, or none", p.CPULimit, param.LeastCPULimit, param.MostCPULimit)
	}
	if math.IsNaN(r.Overhead) || r.Overhead < 0 || r.Overhead > param.MostCPULimit {
		return Size{}, fmt.Errorf("an overhead of %g cores is not possible; write 250m", r.Overhead)
	}
	if p.MemoryLimit < 0 || p.MemoryLimit>>20 > maxMemoryMiB {
		return Size{}, fmt.Errorf("a memory limit of %d bytes is not possible", p.MemoryLimit)
	}
	if r.VCPUs > maxVCPUs {
		return Size{}, fmt.Errorf("default_vcpus %d is not possible; write 1 to %d, or -1 for all of the host's", r.VCPUs, maxVCPUs)
	}
	if r.MemoryMiB != 0 && (r.MemoryMiB < LeastMemoryMiB || r.MemoryMiB > MostMemoryMiB) {
		return Size{}, fmt.Errorf("default_memory %d is not possible; write MiB, %d to %d", r.MemoryMiB, LeastMemoryMiB, MostMemoryMiB)
	}
	if r.HostCPUs < 0 {
		return Size{}, fmt.Errorf("a host of %d processors is not possible; write how many it has, or 0 for no limit", r.HostCPUs)
	}
	if r.VCPUs < 0 && r.HostCPUs == 0 {
		return Size{}, errors.New("default_vcpus below zero means all of the host's processors; give their number")
	}
	if err := r.checkFlavour(); err != nil {
		return Size{}, err
	}
	s := Size{VCPUsBoot: r.VCPUs, MemoryBoot: int64(r.MemoryMiB) << 20}
	switch {
	case r.VCPUs == 0:
		s.VCPUsBoot = DefaultVCPUs
	case r.VCPUs < 0:
		s.VCPUsBoot = r.HostCPUs
	}
	if r.MemoryMiB == 0 {
		s.MemoryBoot = DefaultMemoryMiB << 20
	}
	if r.HostCPUs > 0 {
		s.VCPUsBoot = min(s.VCPUsBoot, r.HostCPUs)
	}
	if r.Flavour == RS {
		return r.booted(p, s)
	}
	s.VCPUsHotplugged = int(math.Ceil(p.CPULimit - 1e-9)) // a sum of floats of 2.0000000001 means 2
	if r.HostCPUs > 0 {
		s.VCPUsHotplugged = min(s.VCPUsHotplugged, r.HostCPUs-s.VCPUsBoot)
	}
	s.VCPUsTotal = s.VCPUsBoot + s.VCPUsHotplugged
	s.MemoryBytes = s.MemoryBoot + p.MemoryLimit
	s.CPUQuotaCores = r.quota(p)
	s.NetworkThreads = s.VCPUsBoot
	return s, nil
}

// booted is the machine of runtime-rs, which boots with all that it gets. s has the defaults.
func (r Runtime) booted(p Pod, s Size) (Size, error) {
	if p.Limited() {
		// In 32 bits, as runtime-rs adds: 1.8 and 0.2 are 2 there.
		s.VCPUsBoot = max(1, int(math.Ceil(float64(float32(r.OverheadVCPUs)+float32(p.CPULimit)))))
		s.MemoryBoot = (p.MemoryLimit>>20 + p.MemoryLimit>>20&1 + int64(r.OverheadMiB)) << 20 // of a limit, whole pages of 2 MiB
	}
	if s.MemoryBoot == 0 {
		return Size{}, errors.New("a CPU limit without a memory limit and overhead_memory 0 make a machine without memory; set a memory limit")
	}
	s.VCPUsTotal, s.MemoryBytes = s.VCPUsBoot, s.MemoryBoot
	s.CPUQuotaCores, s.NetworkThreads = r.quota(p), queuesRS
	return s, nil
}

// Limited reports whether the pod has a limit: RS takes the defaults only where it has none.
func (p Pod) Limited() bool { return p.CPULimit > 0 || p.MemoryLimit > 0 }

// checkFlavour refuses what no runtime has.
func (r Runtime) checkFlavour() error {
	switch {
	case r.Flavour != "" && r.Flavour != Go && r.Flavour != RS:
		return fmt.Errorf("there is no runtime %q; write %s or %s", r.Flavour, Go, RS)
	case math.IsNaN(r.OverheadVCPUs) || r.OverheadVCPUs < 0 || r.OverheadVCPUs > maxVCPUs:
		return fmt.Errorf("overhead_vcpus %g is not possible; write 0 to %d", r.OverheadVCPUs, maxVCPUs)
	case r.OverheadMiB < 0 || r.OverheadMiB > MostMemoryMiB:
		return fmt.Errorf("overhead_memory %d is not possible; write MiB, 0 to %d", r.OverheadMiB, MostMemoryMiB)
	}
	return nil
}

// quota is that of the cgroup around the sandbox: both runtimes leave it to the kubelet.
func (r Runtime) quota(p Pod) float64 {
	if p.CPULimit == 0 || p.Unbounded {
		return 0
	}
	return p.CPULimit + r.overhead()
}

// overhead returns the cores that are added to a CPU limit.
func (r Runtime) overhead() float64 {
	if r.OverheadGiven {
		return r.Overhead
	}
	return Overhead
}

// Rule is one figure and where it comes from.
type Rule struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Rule  string `json:"rule"`
}

// Rules explains a size, figure by figure, in the order of Size's fields.
func Rules(p Pod, r Runtime, s Size) []Rule {
	first, hot, memory, network := r.why(p, s)
	quota, quotaRule := "none", "no CPU limit, so no quota"
	switch {
	case s.CPUQuotaCores > 0:
		quota = cores(s.CPUQuotaCores)
		of := ""
		if r.OverheadGiven {
			of = " of the pod's overhead"
		}
		quotaRule = fmt.Sprintf("CPU limit and %g%s; all of the VM's threads share it", r.overhead(), of)
	case p.CPULimit > 0:
		quotaRule = "a container has no CPU limit, so no quota"
	}
	return []Rule{
		{"vCPUs at boot", strconv.Itoa(s.VCPUsBoot), first},
		{"vCPUs plugged in", strconv.Itoa(s.VCPUsHotplugged), hot},
		{"vCPUs in all", strconv.Itoa(s.VCPUsTotal), "at boot and plugged in"},
		{"memory", amount(s.MemoryBytes), memory},
		{"CPU quota", quota, quotaRule},
		{"network threads", strconv.Itoa(s.NetworkThreads), network},
	}
}

// why explains the machine: its vCPUs at boot and plugged in, its memory, its network threads.
func (r Runtime) why(p Pod, s Size) (first, hot, memory, network string) {
	if r.Flavour == RS {
		return r.whyBooted(p, s)
	}
	hot = "no CPU limit, so none"
	switch {
	case p.CPULimit > 0 && float64(s.VCPUsHotplugged) < p.CPULimit:
		hot = fmt.Sprintf("CPU limit %s rounded up, but at most the host's %d", cores(p.CPULimit), r.HostCPUs)
	case p.CPULimit > 0:
		hot = fmt.Sprintf("CPU limit %s, rounded up", cores(p.CPULimit))
	}
	if p.CPURequest > 0 {
		hot += "; CPU requests do not count"
	}
	memory = named("default_memory", r.MemoryAnnotated)
	if p.MemoryLimit > 0 {
		memory += fmt.Sprintf(" %s and memory limit %s", amount(s.MemoryBoot), amount(p.MemoryLimit))
	} else {
		memory += "; the pod has no memory limit to add"
	}
	return boot(r), hot, memory, "a vhost thread for each vCPU at boot only"
}

// whyBooted is why for runtime-rs.
func (r Runtime) whyBooted(p Pod, s Size) (first, hot, memory, network string) {
	hot, network = "runtime-rs plugs in none", "network_queues, independent of the vCPUs"
	if !p.Limited() {
		return boot(r) + ", because the pod has no limit", hot, named("default_memory", r.MemoryAnnotated) + ", because the pod has no limit", network
	}
	first = fmt.Sprintf("CPU limit %s and overhead_vcpus %g, rounded up", cores(p.CPULimit), r.OverheadVCPUs)
	if p.CPULimit == 0 {
		first = fmt.Sprintf("no CPU limit: overhead_vcpus %g, rounded up, at least 1", r.OverheadVCPUs)
	}
	if p.CPURequest > 0 {
		first += "; CPU requests do not count"
	}
	over := amount(int64(r.OverheadMiB) << 20)
	memory = fmt.Sprintf("memory limit %s and overhead_memory %s", amount(p.MemoryLimit), over)
	if p.MemoryLimit == 0 {
		memory = "no memory limit: overhead_memory alone"
	}
	if s.MemoryBytes < LeastMemoryMiB<<20 {
		memory += fmt.Sprintf(". Few kernels boot with so little: set a memory limit, so that the machine has at least %d MiB", LeastMemoryMiB)
	}
	return first, hot, memory, network
}

// boot explains where the vCPUs at boot come from, and what bounds them.
func boot(r Runtime) string {
	name := named("default_vcpus", r.VCPUsAnnotated)
	switch {
	case r.VCPUs < 0:
		return fmt.Sprintf("%s %d: all of the host's %d", name, r.VCPUs, r.HostCPUs)
	case r.HostCPUs > 0 && r.VCPUs > r.HostCPUs:
		return fmt.Sprintf("%s %d, but at most the host's %d", name, r.VCPUs, r.HostCPUs)
	}
	return name
}

func named(setting string, annotated bool) string {
	if annotated {
		return "annotation " + setting
	}
	return setting
}

// amount formats bytes for people: exactly if four digits are enough, else rounded.
func amount(n int64) string {
	text := param.FormatSize(n)
	if len(strings.TrimRight(text, "KMGTiB")) <= 4 {
		return text
	}
	x, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; x >= 1024 && i < len(units)-1; i++ {
		x /= 1024
	}
	return "about " + strconv.FormatFloat(x, 'g', 4, 64) + units[i]
}

func cores(x float64) string {
	if x == 1 {
		return "1 core"
	}
	return strconv.FormatFloat(x, 'g', 6, 64) + " cores"
}
