package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
)

// available reads the host's MemAvailable (proc_meminfo(5)), in bytes.
func available() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("this kernel does not tell MemAvailable"))
}

// reportMemory is what a large report is to stay within: reading 30,000
// trials makes more garbage than data.
const reportMemory = 240 << 20

// keepBelow asks the collector of garbage to work harder when this process comes
// near so many bytes, as GOMEMLIMIT does, which wins where a user has set it
// (https://go.dev/doc/gc-guide#Memory_limit). It refuses nothing.
func keepBelow(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}
