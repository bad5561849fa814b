// Command init is what of tare a virtual machine starts with: its first process,
// the agent, and the gate of commands that begin at one moment. `make build`
// builds it first and tare carries it (sandbox/vm/boot).
//
// It is a program of its own because the first process is unpacked and started by the
// guest's kernel: the whole of tare is fifteen times as large, and most of what its packages do
// as they are initialised nothing in a guest asks for.
package main

import (
	"fmt"
	"os"

	"tare/agent"
	"tare/internal/guest"
)

func main() {
	if guest.IsInit(os.Args) {
		guest.Main() // which does not return
	}
	// The agent starts a gated command as it would of the whole of tare.
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "gate" {
		os.Exit(agent.Gate(os.Args[3:], os.Stderr))
	}
	fmt.Fprintln(os.Stderr, "init: for tare's own use, as the first process of a virtual machine")
	os.Exit(2)
}
