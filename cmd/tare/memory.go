package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
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
