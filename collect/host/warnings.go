package host

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/rootless"
	"tare/record"
)

// maxSteal is the share of stolen time from which a warning is given: the
// margin within which ratios count as equivalent is 3 %, so a third of it.
const maxSteal = 0.01

// warnings lists reasons to doubt figures of this host. Each text ends with what to do.
func (t tree) warnings(h *record.Host) []record.Warning {
	var out []record.Warning
	add := func(code, format string, args ...any) {
		out = append(out, record.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if h.Governor != "" && h.Governor != "performance" {
		add("governor", "the frequency governor is %s, so speed changes with load; write performance to /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", h.Governor)
	}
	if t.line("sys/devices/system/cpu/intel_pstate/no_turbo") == "0" || t.line("sys/devices/system/cpu/cpufreq/boost") == "1" {
		add("turbo", "turbo frequencies are on, so speed depends on heat and on neighbours; switch them off for absolute figures")
	}
	if smt(h.Cores, h.Threads) {
		add("smt", "%d threads share %d cores, so a busy sibling slows a thread; pin with the factor cpus, or write off to /sys/devices/system/cpu/smt/control", h.Threads, h.Cores)
	}
	if h.Threads == 1 {
		add("one-core", "this host has one processor, which client, server and this program share; use a host with two or more")
	}
	if n := swapUsed(t.text("proc/swaps")); n > 0 {
		add("swap", "%d MiB of swap are in use, so memory may come from disk; swapoff -a, or free memory", n>>20)
	}
	if l := load1(t.line("proc/loadavg")); h.Threads > 0 && l > 0.5*float64(h.Threads) {
		add("load", "the load average is %.2f on %d processors before anything was started; stop the other work", l, h.Threads)
	}
	switch h.Clocksource {
	case "", "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page":
		// Read without a system call.
	default:
		add("clock", "the clock source is %s, which takes a system call to read and so adds to every latency; use tsc if the hardware has it", h.Clocksource)
	}
	if t.throttled() {
		add("throttled", "a processor was throttled because of heat since boot; cool it, or lower the frequency for steady figures")
	}
	if s := stealShare(t.text("proc/stat")); s > maxSteal {
		add("steal", "since boot, the hypervisor gave %.1f %% of the processor time that this host wanted to others; figures will scatter; use a dedicated host", 100*s)
	}
	if v := h.Virtualization; v != "" && v != "none" {
		add("virtual", "this host is itself a virtual machine (%s): ratios can be trusted, absolute times less, and VMs in it are slower than on hardware", v)
	}
	if rootless.Single(t.text("proc/self/uid_map")) {
		add("rootless", "tare ran without root, so sandboxes were in a user namespace and had no limits; run as root for figures to compare with those of other hosts")
	}
	for _, m := range h.Mitigations {
		if strings.HasPrefix(m, "Vulnerable") {
			add("mitigations", "some mitigations of processor faults are off or missing, so system calls cost less than on a patched host; compare hosts only with equal mitigations")
			break
		}
	}
	return out
}

// throttled reports whether any processor counted thermal throttling.
func (t tree) throttled() bool {
	counts := t.glob("sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count")
	return slices.ContainsFunc(counts, func(f string) bool { return number(t.line(t.rel(f))) > 0 })
}
