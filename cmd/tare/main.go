// Command tare weighs what isolation costs: the same workload natively and in
// every isolation, interleaved, with intervals and verdicts.
//
// Each verb is one file: it reads flags, calls one function, prints, and
// chooses the exit code (exit.go).
package main

import (
	"context"
	"io"
	"log"
	"os"

	"tare/agent/guest"
	"tare/internal/rootless"
	"tare/report/terminal"
)

func main() {
	args := os.Args[1:]
	if guest.IsInit(os.Args) { // the kernel's own arguments are of no use here
		args = []string{"internal", "guest"}
	}
	log.SetOutput(terminal.New(os.Stderr)) // net/http logs text from peers
	os.Exit(program(context.Background(), os.Stdout, os.Stderr, args, rootless.Enter))
}

// execute is the whole program but for Enter, so that tests can call it.
func execute(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	return program(ctx, stdout, stderr, args, nil)
}

func program(ctx context.Context, stdout, stderr io.Writer, args []string, enter func(string)) int {
	// What runs inside a sandbox starts many times in a trial: it must not pay
	// for building the command tree.
	if len(args) > 0 && args[0] == "internal" {
		return inside(ctx, stdout, stderr, args[1:])
	}
	a := newApp(stdout, stderr)
	a.enter, a.args = enter, args
	root := newRoot(a)
	asPlugin(root, os.Args[0])
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.leftBehind()
	}
	var told io.Writer = a.stderr
	if a.logs != nil {
		told = io.Discard
	}
	code := exitCode(err, told)
	if a.logs != nil {
		a.logs.end(err, code)
	}
	_, _ = a.stdout.Flush(), a.stderr.Flush() // after a broken pipe nobody reads an error
	return code
}
