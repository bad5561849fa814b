// Package overhead says what a sandbox costs beyond the workload in it, in the guest and on
// the host apart, and what to reserve for it in Kubernetes and in Kata.
//
// The data path: 1. Observe reads a trial in which nothing works, in the second half of its
// time: what its start cost is over then; 2. Of takes the same trial natively off it, block by
// block, and makes a Row of each sandbox and size of machine, with intervals; 3. Row.Patches
// writes what the upper ends of the intervals come to as a RuntimeClass's overhead.podFixed
// and as Kata's overhead_*.
//
// The parts are those of Kata's docs/how-to/how-to-size-sandbox-overhead-runtime-rs.md: in the
// guest, the size of the machine less what a program can get (MemAvailable); on the host, what
// the cgroup of the sandbox has beside the memory of the guest. QEMU shares that memory with
// virtiofsd, so that the kernel counts it as shmem. podFixed is both, overhead_* the guest's.
//
// A pod is seen from its node only. What its control group has beside the same program's in a pod of
// the default class is the overhead. Of a virtual machine with shared memory, shmem is the guest's part.
package overhead

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/param"
	"tare/record"
	"tare/study"
)

// FactorMemory is the size of a machine in MiB, a parameter of the sandbox vm.
const FactorMemory = "default_memory"

// Floors of what is reported: a page, and less CPU than the readings can tell.
const (
	leastBytes = 4096
	leastCores = 1e-4
)

// pagePart is what of its memory a process needs for the page table of it: 8 bytes of 4 KiB.
const pagePart = 512

// Observation is what one trial took while it did nothing: bytes, and cores.
type Observation struct {
	Sandbox  string
	Family   record.Family
	Size     int64 // of the machine; 0: no machine
	Emulated bool
	Block    int

	Pod   bool   // on a cluster
	Class string // its RuntimeClass; "" for the default
	Kata  string // which of Kata's runtimes made it, as in package sizing; "" for neither, or not known
	Limit int64  // of its memory; 0: none

	Available    float64 // in the guest; NaN unknown
	Anon, Kernel float64 // of the cgroup
	Shared       float64 // of the cgroup: a guest's memory, or a sentry's
	Guest, Host  float64 // cores: of vCPUs or the workload, and of what helps it
}

// Observe reads a trial. False means that it cannot be used: it failed, or readings are missing.
func Observe(t *record.Trial, e record.Evidence) (Observation, bool) {
	o := Observation{Block: t.Block, Available: math.NaN()}
	o.Sandbox, _ = t.Cell.Get(study.FactorSandbox)
	o.Class, o.Pod = t.Facts["main."+record.FactRuntimeClass]
	if limit, ok := t.Cell.Get(study.FactorMemoryLimit); ok && o.Pod {
		o.Limit, _ = param.ParseSize(limit)
	}
	for name, v := range t.Facts {
		switch {
		case len(name) > len(record.FactFamily) && name[len(name)-len(record.FactFamily):] == record.FactFamily:
			o.Family = record.Family(v)
		case name == "main."+record.FactSizing && o.Pod:
			o.Kata = v
		case name == "main.memory":
			o.Size, _ = param.ParseSize(v)
		case name == "main."+record.FactAccelerator:
			o.Emulated = v == record.AcceleratorTCG
		}
	}
	if t.Status != record.OK {
		return o, false
	}
	found := map[string]bool{}
	for _, s := range e.Series {
		if s.Labels.Get(record.LabelEndpoint) == "" {
			continue
		}
		v, ok := late(s)
		if !ok {
			continue
		}
		found[s.Name] = true
		switch role := record.ThreadRole(s.Labels.Get(record.LabelRole)); s.Name {
		case record.GuestMemory:
			o.Available = v
		case record.CgroupAnon:
			o.Anon = v
		case record.CgroupShmem:
			o.Shared = v
		case record.CgroupKernel:
			o.Kernel = v
		case record.CPUTime:
			if role == record.RoleVCPU || role == record.RoleWorkload {
				o.Guest += v
			} else {
				o.Host += v
			}
		}
	}
	return o, found[record.CgroupAnon] && found[record.CPUTime] && (o.Family != record.FamilyVM || o.Pod || o.Size > 0 && found[record.GuestMemory])
}

// late is the median of a gauge, or the rate of a counter, over the second half of a series.
func late(s record.Series) (float64, bool) {
	n := len(s.T)
	if n < 4 || len(s.V) != n {
		return 0, false
	}
	from, _ := slices.BinarySearch(s.T, s.T[0]+(s.T[n-1]-s.T[0])/2)
	from = min(from, n-2)
	if s.Kind != record.Counter {
		return stat.Median(slices.Clone(s.V[from:])), true
	}
	took := s.T[n-1] - s.T[from]
	return (s.V[n-1] - s.V[from]) / max(took, time.Millisecond).Seconds(), took > 0
}

// Least is how many blocks an interval needs.
const Least = stat.MinN

// Figure is a mean over blocks, and its interval; Lo and Hi are zero with fewer than three blocks. It is
// the geometric mean, or the arithmetic one if a block shows no cost, as with a class of runc.
type Figure struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo,omitempty"`
	Hi    float64 `json:"hi,omitempty"`
	N     int     `json:"n"`
}

// upper is what to reserve.
func (f Figure) upper() float64 { return max(f.Value, f.Hi, 0) }

// Row is a sandbox of one size.
type Row struct {
	Sandbox  string        `json:"sandbox"`
	Family   record.Family `json:"family"`
	Size     int64         `json:"size_bytes,omitempty"` // of the machine
	Emulated bool          `json:"emulated,omitempty"`
	Class    string        `json:"runtime_class,omitempty"`
	Kata     string        `json:"kata_runtime,omitempty"` // go or rs, as the node's observer found
	Limit    int64         `json:"memory_limit_bytes,omitempty"`

	GuestMemory *Figure `json:"guest_memory_bytes,omitempty"` // of a machine
	HostMemory  Figure  `json:"host_memory_bytes"`
	GuestCPU    *Figure `json:"guest_cpu_cores,omitempty"`
	HostCPU     Figure  `json:"host_cpu_cores"`
	// PageTables is what the host needs in addition once the guest has touched all its memory: arithmetic.
	PageTables int64 `json:"page_tables_bytes,omitempty"`

	Reserve Reserve `json:"reserve"`
	Patches []Patch `json:"patches"`
}

// pair is a block of one memory limit: in it, what runs natively belongs to the rest.
type pair struct {
	block int
	limit int64
}

// Of makes the rows, in the order of names and sizes.
func Of(all []Observation) []Row {
	native := map[pair]Observation{}
	type key struct {
		sandbox     string
		size, limit int64
	}
	by := map[key][]Observation{}
	for _, o := range all {
		if o.Family == record.FamilyNative {
			native[pair{o.Block, o.Limit}] = o
			continue
		}
		k := key{o.Sandbox, o.Size, o.Limit}
		by[k] = append(by[k], o)
	}
	var out []Row
	for _, k := range slices.SortedFunc(maps.Keys(by), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.sandbox, b.sandbox), cmp.Compare(a.size, b.size), cmp.Compare(a.limit, b.limit))
	}) {
		r := row(by[k], native)
		r.Reserve = r.reserve()
		r.Patches = r.patches()
		out = append(out, r)
	}
	return out
}

// row is one sandbox's. What the same program took natively in the block is its own.
func row(list []Observation, native map[pair]Observation) Row {
	first := list[0]
	r := Row{Sandbox: first.Sandbox, Family: first.Family, Size: first.Size, Emulated: first.Emulated, Class: first.Class, Kata: first.Kata, Limit: first.Limit}
	figure := func(least float64, of func(o, native Observation) float64) Figure {
		own, ones := map[int]float64{}, map[int]float64{}
		var plain []float64
		none := false
		for _, o := range list {
			if n, ok := native[pair{o.Block, o.Limit}]; ok {
				v := of(o, n)
				own[o.Block], ones[o.Block] = max(least, v), 1
				plain, none = append(plain, v), none || v < least
			}
		}
		if none { // a difference about zero has no logarithm
			return mean(plain)
		}
		e := stat.Compare(stat.Pairs(ones, own), 0.95)
		return Figure{e.Ratio, e.Lo, e.Hi, e.N}
	}
	if !apart(list) {
		r.HostMemory = figure(leastBytes, func(o, n Observation) float64 {
			return o.Anon + o.Shared + o.Kernel - n.Anon - n.Shared - n.Kernel
		})
		r.HostCPU = figure(leastCores, func(o, n Observation) float64 { return o.Guest + o.Host - n.Guest - n.Host })
		return r
	}
	memory := figure(leastBytes, func(o, n Observation) float64 {
		if o.Pod { // what the guest has touched
			return o.Shared - n.Anon - n.Shared
		}
		return float64(o.Size) - o.Available - n.Anon
	})
	cpu := figure(leastCores, func(o, n Observation) float64 { return o.Guest - n.Guest })
	r.GuestMemory, r.GuestCPU = &memory, &cpu
	r.HostMemory = figure(leastBytes, func(o, _ Observation) float64 { return o.Anon + o.Kernel })
	r.HostCPU = figure(leastCores, func(o, _ Observation) float64 { return o.Host })
	r.PageTables = max(r.Size, r.Limit) / pagePart
	return r
}

// mean is the arithmetic one, with Student's interval.
func mean(v []float64) Figure {
	f := Figure{N: len(v)}
	for _, x := range v {
		f.Value += x / float64(len(v))
	}
	if f.N < 3 {
		return f
	}
	var squares float64
	for _, x := range v {
		squares += (x - f.Value) * (x - f.Value)
	}
	n := float64(f.N)
	half := stat.Student(n-1).Quantile(0.975) * math.Sqrt(squares/(n-1)/n)
	f.Lo, f.Hi = f.Value-half, f.Value+half
	return f
}

// apart reports whether the guest's memory can be told from the host's. A pod's can if the machine's
// memory is shared: then it is most of what the group has.
func apart(list []Observation) bool {
	return !slices.ContainsFunc(list, func(o Observation) bool { return o.Family != record.FamilyVM || o.Pod && o.Shared <= o.Anon })
}
