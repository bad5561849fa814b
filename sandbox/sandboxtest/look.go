package sandboxtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tare/host/cgroup"
	"tare/sandbox"
)

// hostCPU is the CPU time that the host charged to a sandbox, in seconds:
// cpuacct.usage (version 1, nanoseconds) or usage_usec of cpu.stat (version 2).
func hostCPU(t testing.TB, h *cgroup.Hierarchy, s sandbox.LocalScope) float64 {
	t.Helper()
	if dir, ok := h.Path("cpuacct", s.Cgroups[0]); ok {
		b, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage")) //nolint:gosec // a cgroup file
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n / 1e9
	}
	dir, _ := h.Path("", s.Cgroups[0])
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat")) //nolint:gosec // a cgroup file
	if err != nil {
		t.Fatal(err)
	}
	var n float64
	if _, err := fmt.Sscanf(string(b), "usage_usec %f", &n); err != nil {
		t.Fatal(err)
	}
	return n / 1e6
}

// threadsOf lists the threads of a sandbox's control groups.
func threadsOf(t testing.TB, s sandbox.LocalScope) []sandbox.Thread {
	t.Helper()
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	pids, err := h.Open(s.Cgroups[0]).Procs()
	if err != nil {
		t.Fatal(err)
	}
	var out []sandbox.Thread
	for _, pid := range append(pids, s.Pids...) {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // it has ended
		}
		var args []string
		if len(cmdline) > 0 {
			args = strings.Split(string(bytes.TrimRight(cmdline, "\x00")), "\x00")
		}
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				continue
			}
			comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
			if err != nil {
				continue
			}
			out = append(out, sandbox.Thread{Pid: pid, Tid: tid, Comm: strings.TrimSpace(string(comm)), Args: args})
		}
	}
	return out
}
