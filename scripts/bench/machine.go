package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/rootfs"
)

// machine says where and when, in lines: figures without it mean nothing.
func machine(tare string) []string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	load, _ := os.ReadFile("/proc/loadavg")
	lines := []string{
		fmt.Sprintf("Measured %s on %s, %d CPUs, Linux %s, %s; load average at the end %s.",
			time.Now().UTC().Format("2006-01-02 15:04 UTC"), cpuModel(), runtime.NumCPU(),
			unix.ByteSliceToString(u.Release[:]), runtime.Version(), firstWord(string(load))),
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

func firstWord(s string) string {
	f := strings.Fields(s)
	if len(f) == 0 {
		return "unknown"
	}
	return f[0]
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "an unknown processor"
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "a processor of " + runtime.GOARCH
}
