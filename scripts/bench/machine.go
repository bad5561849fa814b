package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	about "tare/collect/host"
	"tare/host/rootfs"
)

// machine says where and when, in lines: figures without it mean nothing.
func machine(tare string) []string {
	load, _ := os.ReadFile("/proc/loadavg")
	h := about.Describe(context.Background(), "/", nil)
	lines := []string{
		fmt.Sprintf("Measured %s on %s, %d CPUs, Linux %s, %s; load average at the end %.4s.",
			time.Now().UTC().Format("2006-01-02 15:04 UTC"), cmp.Or(h.CPUModel, "an unknown processor"), runtime.NumCPU(), h.Kernel, runtime.Version(), load),
	}
	var versions []string
	for _, c := range [][]string{{tare, "version"}, {"runc", "--version"}, {"hyperfine", "--version"}, {"iperf3", "--version"}, {"qperf", "--version"}} {
		if path, ok := rootfs.Lookup(c[0]); ok {
			out, _ := exec.Command(path, c[1:]...).Output() //nolint:gosec // a fixed list
			line, _, _ := strings.Cut(string(out), "\n")
			versions = append(versions, strings.TrimSpace(strings.Replace(line, " version", "", 1)))
		}
	}
	return append(lines, "Versions: "+strings.Join(versions, ", ")+".")
}
