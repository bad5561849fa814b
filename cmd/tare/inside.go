package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"tare/agent"
	"tare/agent/guest"
	"tare/cluster/objects"
	"tare/cluster/pod"
	collectall "tare/collect/all"
	"tare/collect/remote"
	"tare/workload/checkpoint"
	"tare/workload/fault"
	"tare/workload/files"
	"tare/workload/fio"
	httpload "tare/workload/http"
	"tare/workload/ingress"
	"tare/workload/iperf"
	netload "tare/workload/net"
	"tare/workload/noop"
	"tare/workload/redis"
	"tare/workload/registry"
	syscalls "tare/workload/syscall"
	"tare/workload/timed"
)

// inside runs the programs that tare itself starts in a sandbox. They are not verbs: their arguments may change at any time.
func inside(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, "tare internal: tare uses this inside sandboxes")
		return exitUsage
	}
	name, rest := args[0], args[1:]
	programs := map[string]func(args []string, stdout, stderr io.Writer) int{
		"net": netload.Main, "http": httpload.Main, "syscall": syscalls.Main, "noop": noop.Main, "iperf": iperf.Main, "fio": fio.Main,
		"redis": redis.Main, "timed": timed.Main, "checkpoint": checkpoint.Main, "fault": fault.Main, "files": files.Main, "ingress": ingress.Main, "registry": registry.Main, "objects": objects.Main,
	}
	if program := programs[name]; program != nil {
		return program(rest, stdout, stderr)
	}
	switch name {
	case "agent", "collect":
		// Both outlive a Ctrl-C at the terminal: their client decides. SIGTERM and SIGHUP end
		// the agent and its commands (agent.OwnProcess).
		signal.Ignore(syscall.SIGINT)
		var err error
		if name == "agent" {
			err = agent.Serve(ctx, os.Stdin, stdout, nil, agent.OwnProcess)
		} else {
			err = remote.Serve(ctx, os.Stdin, stdout, append(collectall.Collectors(), collectall.Counting()), nil)
		}
		if err != nil {
			fmt.Fprintf(stderr, "tare internal %s: %v\n", name, err)
			return exitFailed
		}
		return exitOK
	case "site":
		return served(ctx, stdout, stderr)
	case "pod", "coordinator", "observer", "probe":
		run := map[string]func(context.Context) error{"pod": podAgent, "coordinator": coordinate, "observer": observe, "probe": answerDoctor}
		if err := run[name](ctx); err != nil {
			fmt.Fprintf(stderr, "tare internal %s: %v\n", name, err)
			return exitFailed
		}
		return exitOK
	case "copy", "user", "device", "write-claim":
		if err := map[string]func([]string, io.Writer) error{"copy": pod.Copy, "user": pod.Number, "device": pod.Device, "write-claim": objects.WriteClaim}[name](rest, stdout); err != nil {
			fmt.Fprintf(stderr, "tare internal %s: %v\n", name, err)
			return exitFailed
		}
		return exitOK
	case "guest":
		guest.Main() // which does not return
		return exitFailed
	case "gate":
		return agent.Gate(rest, stderr)
	}
	fmt.Fprintf(stderr, "tare internal: there is no %q\n", name)
	return exitUsage
}
