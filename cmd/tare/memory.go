package main

import (
	"os"
	"runtime/debug"
)

// reportMemory is what a large report is to stay within: reading 30,000
// trials makes more garbage than data.
const reportMemory = 240 << 20

// serveMemory is the same for a server. It keeps documents, and the series of one trial may
// take 300 MB.
const serveMemory = 400 << 20

// keepBelow asks the collector of garbage to work harder when this process comes
// near so many bytes, as GOMEMLIMIT does, which wins where a user has set it
// (https://go.dev/doc/gc-guide#Memory_limit). It refuses nothing.
func keepBelow(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}
