package trial

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tare/param"
	"tare/sandbox"
	"tare/volume"
)

// failure is an error that knows what kind of bad luck it is.
type failure struct {
	kind string
	role string
	tail string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// judge turns the end of a command into nil or into a failure that says what
// kind of bad luck it was.
func (ep *endpoint) judge(ctx context.Context, what string, exit sandbox.Exit, err error, stdout, stderr *output) error {
	f := &failure{kind: "died", role: ep.role.Name, tail: stderr.tail()}
	if f.tail == "" {
		f.tail = stdout.tail()
	}
	limit := ep.spec.MemoryLimit
	switch {
	case exit.OOM:
		f.kind = "memory"
		f.err = fmt.Errorf("%s was killed: out of memory%s; raise the memory limit or ask for less", what, limited(limit))
	case ctx.Err() != nil:
		f.kind = "hung"
		f.err = fmt.Errorf("%s was still running", what)
		if err != nil { // the sandbox knows which of its steps did not end
			f.err = err
		}
		f.err = ep.withMemoryLimit(withCause(ctx, f.err))
	case err != nil:
		f.err = fmt.Errorf("the sandbox failed: %w", err)
	case exit.Signal != "" || exit.Code != 0:
		how := fmt.Sprintf("ended with exit code %d", exit.Code)
		if exit.Signal != "" {
			how = "was killed by " + exit.Signal
		}
		f.kind, f.err = ep.because(what+" "+how, exit.Signal, f.tail)
	default:
		return nil
	}
	return f
}

// withMemoryLimit adds to the error of an end that took too long that its memory limit was met,
// where the sandbox says so.
func (ep *endpoint) withMemoryLimit(err error) error {
	in, ok := ep.inst.(sandbox.Limited)
	if !ok || ep.spec.MemoryLimit == 0 || !in.LimitReached() {
		return err
	}
	return fmt.Errorf("%w; its memory was at the limit of %s: if it needs more, it slows down, so raise the limit", err, param.FormatSize(ep.spec.MemoryLimit))
}

func limited(limit int64) string {
	if limit == 0 {
		return ""
	}
	return " (its limit is " + param.FormatSize(limit) + ")"
}

// endedEarly is judge for a command that was to run on: any end of it is a failure.
func (ep *endpoint) endedEarly(ctx context.Context, what string, exit sandbox.Exit, err error, stdout, stderr *output) error {
	if err := ep.judge(ctx, what, exit, err, stdout, stderr); err != nil {
		return err
	}
	f := &failure{role: ep.role.Name, tail: stderr.tail()}
	if f.tail == "" {
		f.tail = stdout.tail()
	}
	f.kind, f.err = ep.because(what+" ended before it was told to", "", f.tail)
	return f
}

// because says why a command failed that was not killed from outside, as far as
// its own words tell.
func (ep *endpoint) because(how, signal, tail string) (kind string, err error) {
	for _, c := range causes() {
		line := matching(tail, c.says)
		if line == "" && (c.signal == "" || c.signal != signal) {
			continue
		}
		if line != "" {
			line = " (" + line + ")"
		}
		do := c.do
		switch {
		case c.onHost != "" && ep.role.Image == volume.HostRoot:
			do = c.onHost
		case c.inImage != "" && ep.role.Image != "" && !ep.role.Writable && !ep.hasDisk():
			do = c.inImage
		}
		return c.kind, fmt.Errorf("%s: %s%s; %s", how, c.is, line, strings.ReplaceAll(do, "{kind}", ep.calls()))
	}
	return "died", fmt.Errorf("%s%s", how, lastLine(tail))
}

// hasDisk reports whether the role has storage of the place's.
func (ep *endpoint) hasDisk() bool {
	return slices.ContainsFunc(ep.role.Volumes, func(v volume.Volume) bool { return v.Medium != volume.Bind })
}

// calls names the kind, and, of a gVisor, where its system calls are listed.
func (ep *endpoint) calls() string {
	if ep.inst != nil && ep.inst.Facts()["platform"] != "" {
		return ep.kind.Name() + " (https://gvisor.dev/docs/user_guide/compatibility/linux/amd64/)"
	}
	return ep.kind.Name()
}

// cause is a way to fail that programs have in common, by what they then say.
type cause struct {
	says   *regexp.Regexp // in one line
	signal string         // or the signal that it ends by
	kind   string
	is, do string
	onHost string // in place of do for a program that sees the host's own files; "" for the same
	// inImage is the same for one that sees the files of an image, cannot write to them, and has no disk.
	inImage string
}

func causes() []cause {
	return []cause{
		{says: regexp.MustCompile(`(?i)no space left on device|\bENOSPC\b`), kind: "disk",
			is: "the disk is full", do: "free some space, or choose another disk with --data"},
		{says: regexp.MustCompile(`(?i)address (is )?already in use|\bEADDRINUSE\b|port \d+ is (already )?in use`), kind: "died",
			is: "the port is in use", do: "another program in its sandbox has it; choose another port, or end that program"},
		{says: regexp.MustCompile(`(?i)read-only file system|\bEROFS\b`), kind: "disk",
			is: "the file system is read-only", do: "mount it for writing, or choose another disk with --data; a file system becomes read-only after an error of its disk, which the kernel's log names",
			onHost:  "the program sees the host's files read-only, so give it a directory to write to with mounts",
			inImage: "the files of an image are read-only, so have it write to /tmp, or set writable: true where the workload has that"},
		{says: regexp.MustCompile(`(?i)input/output error|\bEIO\b|no such device|\bENXIO\b|\bENODEV\b`), kind: "disk",
			is: "the disk failed, or is gone", do: "see the kernel's log (dmesg); a disk that is a file fails like this too when the host's own disk is full"},
		{says: regexp.MustCompile(`(?i)function not implemented|\bENOSYS\b|kernel doesn't support io_uring|bad system call|unsupported (system call|syscall)|(system call|syscall) not (implemented|supported)`), signal: "SIGSYS", kind: "unsupported",
			is: "it made a system call that this sandbox does not have", do: "see whether {kind} has the call, or set the program to do without"},
		{says: regexp.MustCompile(`(?i)timed out|deadline exceeded|i/o timeout|no answer within|\bETIMEDOUT\b`), kind: "hung",
			is: "it timed out", do: "see what the other end printed, or give it more time"},
		{says: regexp.MustCompile(`(?i)cannot allocate memory|out of memory|\bENOMEM\b`), kind: "memory",
			is: "it could not get more memory", do: "raise the memory limit or ask for less"},
	}
}

// matching returns the last line of the text that the pattern is found in.
func matching(text string, p *regexp.Regexp) string {
	lines := strings.Split(text, "\n")
	for _, line := range slices.Backward(lines) {
		if p.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// outcome is a line of fio that follows on its reason: "fio: job read dropped".
var outcome = regexp.MustCompile(`^fio: job .+ dropped$`)

// lastLine is where a program usually says why.
func lastLine(tail string) string {
	lines := strings.Split(strings.TrimSpace(tail), "\n")
	for len(lines) > 1 && outcome.MatchString(strings.TrimSpace(lines[len(lines)-1])) {
		lines = lines[:len(lines)-1]
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return ": " + last
	}
	return ""
}
