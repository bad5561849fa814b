package overhead

import (
	"fmt"
	"math"
	"strconv"

	"tare/record"
	"tare/sizing"
)

// Reserve is what the figures come to: the upper ends of the intervals, rounded up.
type Reserve struct {
	PodMemoryMiB   int     `json:"pod_memory_mib"` // overhead.podFixed: guest, host and page tables
	PodCPU         float64 `json:"pod_cpu_cores"`
	GuestMemoryMiB int     `json:"overhead_memory_mib,omitempty"` // Kata's overhead_*: the guest's
	GuestVCPUs     float64 `json:"overhead_vcpus,omitempty"`
}

// Patch is a text that is ready to be used.
type Patch struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// reserve is never less for the pod than for the guest in it.
func (r *Row) reserve() Reserve {
	var out Reserve
	memory, cpu := r.HostMemory.upper()+float64(r.PageTables), r.HostCPU.upper()
	if r.GuestMemory != nil {
		memory, cpu = memory+r.GuestMemory.upper(), cpu+r.GuestCPU.upper()
		out.GuestMemoryMiB, out.GuestVCPUs = mebibytes(r.GuestMemory.upper()), hundredths(r.GuestCPU.upper())
	}
	out.PodMemoryMiB, out.PodCPU = mebibytes(memory), hundredths(cpu)
	return out
}

// mebibytes rounds up to an even number, as runtime-rs has memory in pages of 2 MiB.
// A mean of logarithms is off by rounding, which is not to count.
func mebibytes(b float64) int { return 2 * int(math.Ceil(b/(2<<20)-1e-6)) }

// hundredths rounds up to 10m.
func hundredths(cores float64) float64 { return math.Ceil(cores*100-1e-6) / 100 }

// patches are the texts; the name of the class and its handler are the user's.
func (r *Row) patches() []Patch {
	if r.Class != "" {
		return r.podPatches()
	}
	class, at := "gvisor", ""
	if r.Family == record.FamilyVM {
		class, at = "kata", fmt.Sprintf(" # for machines of up to %d MiB", r.Size>>20)
	}
	out := []Patch{{"RuntimeClass, by kubectl apply (name and handler: those of your class)", fmt.Sprintf(`apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata:
  name: %[1]s
handler: %[1]s
overhead:
  podFixed:%s
    memory: "%dMi"
    cpu: "%dm"
`, class, at, r.Reserve.PodMemoryMiB, int(math.Round(r.Reserve.PodCPU*1000)))}}
	if r.Family == record.FamilyVM {
		out = append(out, Patch{"Kata's configuration.toml, of runtime-rs", "[hypervisor.qemu]\n" + r.kata()})
	}
	return out
}

// podPatches are those of a class that exists. overhead_* are settings of runtime-rs only. There are none if
// the memory cannot be told from none.
func (r *Row) podPatches() []Patch {
	if r.GuestMemory == nil && r.HostMemory.N >= 3 && r.HostMemory.Lo <= 0 {
		return []Patch{}
	}
	out := []Patch{{"RuntimeClass " + r.Class + ", in a shell", fmt.Sprintf(`kubectl patch runtimeclass %s --type merge -p '{"overhead":{"podFixed":{"memory":"%dMi","cpu":"%dm"}}}'
`, r.Class, r.Reserve.PodMemoryMiB, int(math.Round(r.Reserve.PodCPU*1000)))}}
	if r.Kata == string(sizing.RS) && r.GuestMemory != nil {
		out = append(out, Patch{"configuration.toml of RuntimeClass " + r.Class + " (runtime-rs), in the section of its hypervisor", r.kata()})
	}
	return out
}

// kata are the settings of Kata's runtime-rs.
func (r *Row) kata() string {
	return fmt.Sprintf("overhead_vcpus = %s\noverhead_memory = %d\n", strconv.FormatFloat(r.Reserve.GuestVCPUs, 'f', 2, 64), r.Reserve.GuestMemoryMiB)
}
