// Package inside holds what tare's own programs inside a sandbox share: net, http, and
// syscall.
//
// The data path: 1. Parse reads the program's flags; 2. CPU is read before and after the
// load; 3. Print writes the report; 4. Exit turns the error into an exit code.
package inside

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"syscall"
	"time"
)

// ErrUsage is wrapped by the errors of wrong arguments.
var ErrUsage = errors.New("wrong arguments")

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
func CPU() (user, system time.Duration) {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0, 0
	}
	return time.Duration(ru.Utime.Nano()), time.Duration(ru.Stime.Nano())
}
