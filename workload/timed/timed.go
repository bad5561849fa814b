// Package timed measures the time of a whole program inside a sandbox, from before its start to
// after its end. It is for workloads whose program cannot do that, because it cannot see its own
// loading. Afterwards it runs commands, untimed, that check what the program has made.
//
// The data path: 1. a workload's role has the command Args(program, check);
// 2. Main, which is `tare internal timed` in the sandbox, reads the clock, runs the
// program, reads the clock again and prints a Report, one line of JSON; 3. it runs the check;
// 4. the workload's Parse splits the output with Read: the program's output, the Report, the
// check's output.
//
// The time excludes the start of the sandbox, which the workload startup measures. The clock is
// the sandbox's (CLOCK_MONOTONIC, clock_gettime(2)).
package timed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"tare/record"
	"tare/workload/child"
	"tare/workload/output"
)

// Separator separates two commands in the arguments of Main.
const Separator = "++"

// MaxTime is the longest valid time.
const MaxTime = 7 * 24 * time.Hour

// prefix begins a Report's line.
const prefix = `{"timed_ns":`

// Until is for the Role: its measured window excludes the checks.
const Until = prefix

// Report is the line that Main prints after the program has succeeded. Times are in nanoseconds.
type Report struct {
	Elapsed int64 `json:"timed_ns"`  // from before the start to after the end
	User    int64 `json:"user_ns"`   // CPU time that the program was charged (wait4(2)); some sandboxes count it in ticks of 10 ms
	System  int64 `json:"system_ns"` // likewise
}

// Seconds returns the time of the whole program.
func (r Report) Seconds() float64 { return float64(r.Elapsed) / 1e9 }

// Sample adds the time of the whole program.
func (r Report) Sample(rd *record.Reading) {
	rd.Samples = append(rd.Samples, record.Sample{Name: "time", Unit: record.Second, Kind: record.Value, Value: r.Seconds(), Original: fmt.Sprintf("%d ns", r.Elapsed)})
}

// Args returns a role's command: the program is timed, and the checks run after it, in order,
// until one fails.
func Args(program []string, checks ...[]string) []string {
	out := append([]string{"/tare", "internal", "timed"}, program...)
	for _, c := range checks {
		out = append(append(out, Separator), c...)
	}
	return out
}

// Read reads the standard output of Main and splits it. It returns an error if the output lacks a
// valid Report.
func Read(in io.Reader) (program []byte, r Report, check []byte, err error) {
	out, err := output.Read(in)
	if err != nil {
		return nil, r, nil, err
	}
	at := bytes.Index(out, []byte(prefix))
	// The program's last line may lack its newline.
	for at > 0 && out[at-1] != '\n' {
		next := bytes.Index(out[at+1:], []byte(prefix))
		if next < 0 {
			at = -1
			break
		}
		at += 1 + next
	}
	if at < 0 {
		return nil, r, nil, errors.New("the output lacks the line with the time of the whole run: it ends before the program did")
	}
	line, check, ended := bytes.Cut(out[at:], []byte("\n"))
	if err := json.Unmarshal(line, &r); err != nil || !ended {
		return nil, r, nil, fmt.Errorf("the line with the time of the whole run is damaged: %.200q", line)
	}
	if err := r.check(); err != nil {
		return nil, r, nil, fmt.Errorf("%.200q: %w", line, err)
	}
	return out[:at], r, check, nil
}

// Main is `tare internal timed PROGRAM [ARG...] [++ CHECK [ARG...]]...`. It returns the exit code
// of the first command that failed, as a shell would.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == runsFlag {
		return mainRuns(args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == insteadFlag {
		return mainInstead(args[1:], stderr)
	}
	var commands [][]string
	for len(args) > 0 {
		i := slices.Index(args, Separator)
		if i < 0 {
			commands, args = append(commands, args), nil
			break
		}
		commands, args = append(commands, args[:i]), args[i+1:]
		if len(args) == 0 {
			commands = append(commands, nil)
		}
	}
	if len(commands) == 0 || slices.ContainsFunc(commands, func(c []string) bool { return len(c) == 0 }) {
		_, _ = fmt.Fprintf(stderr, "timed: give a program, and commands that check what it has made, with %s before each\n", Separator)
		return 2
	}
	r, code := one(commands[0], stdout, stderr)
	if code != 0 {
		return code
	}
	// The line is on its own, even if the program did not end its last line.
	b, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(stdout, "\n%s\n", b)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "timed: %v\n", err)
		return 1
	}
	for _, c := range commands[1:] {
		if _, code := one(c, stdout, stderr); code != 0 {
			_, _ = fmt.Fprintf(stderr, "timed: %s succeeded, but %s, which checks what it has made, failed\n", commands[0][0], c[0])
			return code
		}
	}
	return 0
}

// one runs a command to its end. When timed is asked to end, it asks the command to end, so that a
// killed trial leaves no program running.
func one(args []string, stdout, stderr io.Writer) (Report, int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cmd := child.Command(ctx, args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	start := time.Now()
	err := child.Run(cmd, nil)
	elapsed := time.Since(start)
	st := cmd.ProcessState
	if st == nil {
		_, _ = fmt.Fprintf(stderr, "timed: %v\n", err)
		return Report{}, 127
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		_, _ = fmt.Fprintf(stderr, "timed: %s was killed by a signal: %v\n", args[0], ws.Signal())
		return Report{}, 128 + int(ws.Signal())
	}
	if code := st.ExitCode(); code != 0 {
		return Report{}, code
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "timed: %s: %v\n", args[0], err)
		return Report{}, 1
	}
	return Report{Elapsed: int64(elapsed), User: int64(st.UserTime()), System: int64(st.SystemTime())}, 0
}
