// Command init is the part of tare with which a virtual machine starts: its first process,
// the agent, and the gate of commands that start at one moment. `make build` builds it
// first, and tare contains it (sandbox/vm/boot).
//
// It is a separate program because the guest's kernel unpacks and starts it. All of tare is
// fifteen times as large, and a guest needs little of what its packages initialise.
package main

import (
	"fmt"
	"os"

	"tare/agent"
	"tare/agent/guest"
)

func main() {
	if guest.IsInit(os.Args) {
		guest.Main() // does not return
	}
	// The agent starts a gated command with the same arguments as in tare.
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "gate" {
		os.Exit(agent.Gate(os.Args[3:], os.Stderr))
	}
	fmt.Fprintln(os.Stderr, "init: only for a virtual machine of tare, as its first process")
	os.Exit(2)
}
