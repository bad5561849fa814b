package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"tare/agent"
	collectall "tare/collect/all"
	"tare/collect/remote"
	"tare/internal/guest"
	"tare/workload/checkpoint"
	"tare/workload/fault"
	httpload "tare/workload/http"
	"tare/workload/iperf"
	netload "tare/workload/net"
	"tare/workload/noop"
	"tare/workload/redis"
	syscalls "tare/workload/syscall"
	"tare/workload/timed"
)

// inside runs the programs that tare itself starts in a sandbox. They are no verbs: their arguments may change at any time.
func inside(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, "tare internal: for tare's own use in a sandbox")
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "agent", "collect":
		// Both outlive a Ctrl-C at the terminal: their client decides. SIGTERM and SIGHUP end
		// the agent and its commands (agent.OwnProcess).
		signal.Ignore(syscall.SIGINT)
		secret, err := agent.SecretFromEnv()
		switch {
		case err != nil:
		case name == "agent":
			err = agent.Serve(ctx, os.Stdin, stdout, nil, agent.OwnProcess, agent.Secret(secret))
		default:
			err = remote.Serve(ctx, os.Stdin, stdout, append(collectall.Collectors(), collectall.Counting()), agent.Secret(secret))
		}
		if err != nil {
			fmt.Fprintf(stderr, "tare internal %s: %v\n", name, err)
			return exitFailed
		}
		return exitOK
	case "guest":
		guest.Main() // which does not return
		return exitFailed
	case "gate":
		return agent.Gate(rest, stderr)
	case "net":
		return netload.Main(rest, stdout, stderr)
	case "http":
		return httpload.Main(rest, stdout, stderr)
	case "syscall":
		return syscalls.Main(rest, stdout, stderr)
	case "noop":
		return noop.Main(rest, stdout, stderr)
	case "iperf":
		return iperf.Main(rest, stdout, stderr)
	case "redis":
		return redis.Main(rest, stdout, stderr)
	case "timed":
		return timed.Main(rest, stdout, stderr)
	case "checkpoint":
		return checkpoint.Main(rest, stdout, stderr)
	case "fault":
		return fault.Main(rest, stdout, stderr)
	}
	fmt.Fprintf(stderr, "tare internal: there is no %q\n", name)
	return exitUsage
}
