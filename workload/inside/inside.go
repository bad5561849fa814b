// Package inside holds what tare's own programs inside a sandbox share: net, http, syscall and
// others.
//
// The data path: 1. Main gives the program a context that ends with a signal; 2. Parse reads its flags;
// 3. CPU is read before and after the load; 4. Print writes the report; 5. Exit turns the error
// into an exit code.
package inside

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrUsage is wrapped by the errors of wrong arguments.
var ErrUsage = errors.New("wrong arguments")

// Main runs a program and returns the exit code (Exit). SIGTERM or SIGINT ends the program's context.
func Main(name string, args []string, stdout, stderr io.Writer, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return Exit(stderr, name, run(ctx, args, stdout, stderr))
}

// Flags makes an empty flag set for a program.
func Flags(program string, stderr io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(stderr)
	return fs
}

// Verb cuts off the first argument, which is the program's verb; "" if there is none.
func Verb(args []string) (verb string, rest []string) {
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}

// Parse parses flags. An argument that is not a flag is an error.
func Parse(fs *flag.FlagSet, args []string) error {
	err := fs.Parse(args)
	switch {
	case err != nil && !errors.Is(err, flag.ErrHelp):
		return fmt.Errorf("%w: %w", ErrUsage, err)
	case err == nil && fs.NArg() > 0:
		return fmt.Errorf("%w: %q is not a flag", ErrUsage, fs.Arg(0))
	}
	return err
}

// Print writes a report as one line of JSON.
func Print(w io.Writer, report any) error {
	if err := json.NewEncoder(w).Encode(report); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// Exit prints the error of the program name, if there is one, and returns the exit code:
// 0, 1 for a failed run, 2 for wrong arguments. A request for help is not an error.
func Exit(stderr io.Writer, name string, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintf(stderr, "tare %s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return 2
	}
	return 1
}

// CPU returns the processor time of this process, 0 where getrusage(2) fails.
func CPU() (user, system time.Duration) { return usage(unix.RUSAGE_SELF) }

// SleepUntil waits until a moment. It returns false if ctx ends before.
func SleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// usage returns the processor time of this process or thread (getrusage(2)), 0 where the call fails.
func usage(who int) (user, system time.Duration) {
	var ru unix.Rusage
	if err := unix.Getrusage(who, &ru); err != nil {
		return 0, 0
	}
	return time.Duration(ru.Utime.Nano()), time.Duration(ru.Stime.Nano())
}
