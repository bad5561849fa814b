package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tare/analyse/cause"
)

// TestCauseQuota: half a core, for a loop that wants a whole one.
func TestCauseQuota(t *testing.T) {
	m := madeCause{
		study: `compare: cpu-limit
baseline: none
factors: {sandbox: [runc], cpu-limit: [none, "0.5"]}
workloads:
  loop: {kind: cpu, threads: 1, duration: 1s, warmup: 1s}`,
		wants: []wanted{
			{levels: map[string]string{"cpu-limit": "0.5"}, cause: cause.Quota},
			{levels: map[string]string{"cpu-limit": "none"}, cause: cause.GuestOne},
		},
	}
	m.run(t)
}

// TestCauseOfMachines: a quota around a machine, and one processor for eight threads.
func TestCauseOfMachines(t *testing.T) {
	machines(t)
	m := madeCause{
		study: `baseline: process
factors: {sandbox: [process, vm], cpu-limit: [none, "0.5"], default_vcpus: [1], default_memory: [256]}
workloads:
  many: {kind: cpu, threads: 8, max-prime: 2000, duration: 1s, warmup: 1s} # a busy host ends few longer events`,
		wants: []wanted{
			{levels: map[string]string{"sandbox": "vm", "workload": "many", "cpu-limit": "0.5"}, cause: cause.Quota},
			{levels: map[string]string{"sandbox": "vm", "workload": "many", "cpu-limit": "none"}, cause: cause.Guest},
		},
	}
	m.run(t)
}

// TestCauseIOThread: a disk that QEMU encrypts, read by large requests: the thread that
// serves it has most of the work.
func TestCauseIOThread(t *testing.T) {
	machines(t)
	m := madeCause{
		study: `compare: disk
baseline: raw
factors: {sandbox: [vm], disk: [raw, luks], io_threads: [1], rootfs: [block], default_memory: [256]}
workloads:
  read: {kind: fio, rw: randread, bs: 1MiB, size: 64MiB, engine: libaio, iodepth: 16, cache: direct, duration: 4s, warmup: 500ms} # fio takes half a second to start in an emulated machine`,
		wants: []wanted{{levels: map[string]string{"disk": "luks"}, cause: cause.Helper, role: "iothread"}},
	}
	m.run(t)
}

// TestCausePath: 2 ms more each way, whatever the size.
func TestCausePath(t *testing.T) {
	m := madeCause{
		study: `compare: link-delay
baseline: none
factors: {sandbox: [runc], link-delay: [none, 2ms]}
workloads:
  rr: {kind: net, mode: rr, size: [16B, 1KiB, 4KiB], duration: 500ms, warmup: 100ms}`,
		wants: []wanted{
			{levels: map[string]string{"link-delay": "2ms", "size": "16B"}, cause: cause.Path, check: addsFour},
			{levels: map[string]string{"link-delay": "2ms", "size": "4KiB"}, cause: cause.Path, check: addsFour},
		},
	}
	m.run(t)
}

// addsFour: a round trip takes two delays more. A busy host adds to it, and takes nothing away.
func addsFour(t *testing.T, f *cause.Finding) {
	t.Helper()
	if f.Added == nil {
		t.Errorf("%s: no time that is added", f.Cell)
	} else if f.Added.Hi < 0.004 {
		t.Errorf("%s: %v to %v s are added, want 0.004 or more", f.Cell, f.Added.Lo, f.Added.Hi)
	}
}

// TestCauseLink: streams into a link of 100 Mbit/s.
func TestCauseLink(t *testing.T) {
	m := madeCause{
		study: `compare: link-rate
baseline: none
factors: {sandbox: [runc], link-rate: [none, 100Mbit]}
workloads:
  stream: {kind: net, mode: stream, size: 64KiB, connections: 4, duration: 1s, warmup: 300ms}`,
		wants: []wanted{{levels: map[string]string{"link-rate": "100Mbit"}, cause: cause.Link}},
	}
	m.run(t)
}

// TestCauseInterception: a loop of system calls that each stop the program twice.
func TestCauseInterception(t *testing.T) {
	m := madeCause{
		study: `baseline: process
factors: {sandbox: [process, runsc-ptrace]}
workloads:
  calls: {kind: syscall, call: getpid, duration: 1s, warmup: 200ms}
calls: on`,
		wants: []wanted{{levels: map[string]string{"sandbox": "runsc-ptrace"}, cause: cause.Interception}},
	}
	m.run(t)
}

// TestCauseHost: others have work for every processor three times over.
func TestCauseHost(t *testing.T) {
	m := madeCause{
		before: contend,
		study: `compare: sandbox
baseline: process
factors: {sandbox: [process, runc]}
workloads:
  loop: {kind: cpu, threads: 2, duration: 1s, warmup: 1s}`,
		wants: []wanted{
			{levels: map[string]string{"sandbox": "process"}, cause: cause.Host},
			{levels: map[string]string{"sandbox": "runc"}, cause: cause.Host, or: cause.Untold}, // the host is as full natively
		},
	}
	m.run(t)
}

// contend starts busy loops, three a processor, that end with the test or a minute later.
func contend(t *testing.T) {
	t.Helper()
	cpus, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		t.Skip(err)
	}
	last := strings.TrimSpace(string(cpus[strings.LastIndexAny(string(cpus), "-,")+1:]))
	var n int
	if _, err := fmt.Sscan(last, &n); err != nil {
		t.Fatal(err)
	}
	for range 3 * (n + 1) {
		cmd := exec.Command("timeout", "90", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt) // timeout(1) passes it on
			_ = cmd.Wait()                       // it says that it was interrupted
		})
	}
}
