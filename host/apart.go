package host

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/host/spawn"
	"tare/param"
	"tare/sandbox"
)

// Apart is of trial.Place. It splits the processors that this process may use.
func (p *Place) Apart(n int) ([]string, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return nil, fmt.Errorf("cannot read which processors tare may use: %w", err)
	}
	var usable []int
	for cpu := range len(mask) * 64 {
		if mask.IsSet(cpu) {
			usable = append(usable, cpu)
		}
	}
	lists, err := split(usable, siblings, n)
	if err == nil {
		err = spawn.CheckLimits(sandbox.Spec{Want: sandbox.Want{CPUs: lists[0]}})
	}
	if err != nil {
		return nil, err
	}
	return lists, nil
}

// split shares out processors, in rising order, in n lists. The threads of a core stay together,
// because they slow each other down; of tells them.
func split(cpus []int, of func(cpu int) []int, n int) ([]string, error) {
	var cores [][]int
	for len(cpus) > 0 {
		core := of(cpus[0])
		mine := func(c int) bool { return slices.Contains(core, c) }
		cores = append(cores, slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return !mine(c) }))
		cpus = slices.DeleteFunc(slices.Clone(cpus), mine)
	}
	if len(cores) < n {
		return nil, fmt.Errorf("tare may use only %d of this host's cores, and the workload has %d ends", len(cores), n)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = list(slices.Concat(cores[i*len(cores)/n : (i+1)*len(cores)/n]...))
	}
	return out, nil
}

// siblings are the threads of a processor's core, itself among them
// (Documentation/admin-guide/cputopology.rst).
func siblings(cpu int) []int {
	dir := "/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/topology/"
	for _, name := range []string{"core_cpus_list", "thread_siblings_list"} { // the second before Linux 5.3
		text, err := os.ReadFile(dir + name) //nolint:gosec // of sysfs
		if err != nil {
			continue
		}
		if cpus, err := param.ParseCPUs(strings.TrimSpace(string(text))); err == nil && slices.Contains(cpus, cpu) {
			return cpus
		}
	}
	return []int{cpu}
}

// list writes processors as a cpuset list.
func list(cpus []int) string {
	slices.Sort(cpus)
	words := make([]string, len(cpus))
	for i, c := range cpus {
		words[i] = strconv.Itoa(c)
	}
	return strings.Join(words, ",")
}
