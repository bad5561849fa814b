package main

import (
	"os"
	"syscall"
)

// maxRSS is the largest resident set of a process that has ended, in bytes
// (getrusage(2): ru_maxrss is in KiB). That process starts no others.
func maxRSS(p *os.ProcessState) float64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return float64(u.Maxrss) * 1024
	}
	return 0
}
