package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tare/analyse/cause"
)

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

// addsFour: a round trip takes two delays more. A busy host adds to it, and takes nothing away.
func addsFour(t *testing.T, f *cause.Finding) {
	t.Helper()
	if f.Added == nil {
		t.Errorf("%s: no time that is added", f.Cell)
	} else if f.Added.Hi < 0.004 {
		t.Errorf("%s: %v to %v s are added, want 0.004 or more", f.Cell, f.Added.Lo, f.Added.Hi)
	}
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
