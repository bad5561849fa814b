package timed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/workload/child"
	"tare/workload/output"
)

// Runs is a program that is run several times, each run timed, and what is done around it.
type Runs struct {
	Command []string      `json:"-"`                   // the words behind the JSON
	Prepare []string      `json:"prepare,omitempty"`   // before each run, untimed
	Env     []string      `json:"env,omitempty"`       // NAME=VALUE, beside the sandbox's own
	Dir     string        `json:"dir,omitempty"`       // working directory; "" the present one
	Input   string        `json:"input,omitempty"`     // file for standard input; "" /dev/null
	Repeats int           `json:"repeats"`             // at least so many runs
	Fill    time.Duration `json:"fill_ns,omitempty"`   // and more until they have taken so long together
	Warmup  time.Duration `json:"warmup_ns,omitempty"` // runs that begin before it is over are not printed
	Limit   time.Duration `json:"limit_ns"`            // of one run
	Exit    []int         `json:"exit,omitempty"`      // exit codes that count as success; none: all do
	Keep    int           `json:"keep,omitempty"`      // bytes at the end of each standard output that are in its Run; 0: it goes to /dev/null
	Quiet   bool          `json:"quiet,omitempty"`     // no Run is printed

	launcher launcher
}

// Run is one line that Main prints for each run of Runs. Times are in nanoseconds.
type Run struct {
	Report
	End    int64  `json:"end_ns"`                  // of the run, from the start of the first
	Memory int64  `json:"peak_memory_bytes"`       // of its largest process (ru_maxrss of wait4(2)); 0: unknown
	Stdout string `json:"stdout,omitempty"`        // as much as Runs.Keep
	Cut    bool   `json:"stdout_is_cut,omitempty"` // its beginning is lost
}

// MaxRuns bounds the runs of a trial.
const MaxRuns = 10_000

// mostKept ends the runs of Runs.Fill: so many bytes of output are enough.
const mostKept = 16 << 20

// runsFlag is the first argument of Main for Runs, which follow as JSON.
const runsFlag = "--runs"

// Args is a role's command: `tare internal timed --runs JSON COMMAND...`. The words of the command
// are those of the role's Args, so that they may stand for an image's own.
func (r Runs) Args() ([]string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("timed: %w", err)
	}
	return append([]string{"/tare", "internal", "timed", runsFlag, string(b)}, r.Command...), nil
}

// insteadFlag is the first argument of Main for a program that takes its place.
const insteadFlag = "--instead"

// Instead is the command of a role that is the program itself, once, in its directory, with its
// environment and input: `tare internal timed --instead JSON COMMAND...`.
func (r Runs) Instead() ([]string, error) {
	args, err := r.Args()
	if err == nil {
		args[3] = insteadFlag
	}
	return args, err
}

// readSelf reads the arguments behind the first: JSON and a command.
func readSelf(args []string) (r Runs, err error) {
	if len(args) < 2 {
		return r, fmt.Errorf("write %s or %s, JSON, and a command", runsFlag, insteadFlag)
	}
	if err := json.Unmarshal([]byte(args[0]), &r); err != nil {
		return r, fmt.Errorf("the runs: %w", err)
	}
	r.Command = args[1:]
	return r, nil
}

// mainInstead is that command. It returns only if the program cannot start.
func mainInstead(args []string, stderr io.Writer) int {
	r, err := readSelf(args)
	if err == nil {
		r.searchPath()
		err = r.become()
	}
	_, _ = fmt.Fprintf(stderr, "timed: cannot start %q: %v\n", r.Command, err)
	return 127
}

// become replaces this program.
func (r *Runs) become() error {
	if r.Dir != "" {
		if err := os.Chdir(r.Dir); err != nil {
			return fmt.Errorf("its working directory: %w", err)
		}
	}
	path, err := exec.LookPath(r.Command[0])
	if err != nil {
		return missing(err)
	}
	in := os.DevNull
	if r.Input != "" {
		in = r.Input
	}
	f, err := os.Open(in) //nolint:gosec // the file that the user named
	if err != nil {
		return fmt.Errorf("its input: %w", err)
	}
	if err := unix.Dup3(int(f.Fd()), 0, 0); err != nil {
		return fmt.Errorf("its input: %w", err)
	}
	return missing(unix.Exec(path, r.Command, append(os.Environ(), r.Env...)))
}

// missing says what to do about a program that is not found, or that the kernel cannot execute.
func missing(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("it is not in PATH, which is %s; write its path, or set PATH in env", os.Getenv("PATH"))
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: it, its interpreter or its loader is not in the sandbox; give an image or a mount that has it", err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%w: it is neither a program of this processor nor a script with #!; write shell: true for a script without", err)
	}
	return err
}

// searchPath makes the program's PATH the one in which it is looked for.
func (r *Runs) searchPath() {
	for _, e := range r.Env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			_ = os.Setenv("PATH", path)
		}
	}
}

// ReadRuns reads the lines that Main prints for Runs. An impossible time is an error.
func ReadRuns(r io.Reader) ([]Run, error) {
	b, err := output.Read(r)
	if err != nil {
		return nil, err
	}
	var out []Run
	end := int64(0)
	for line := range strings.Lines(string(b)) {
		var run Run
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &run); err != nil {
			return nil, fmt.Errorf("line %d is not the report of a run, or is cut: %.200q: %w", len(out)+1, line, err)
		}
		if err := run.check(); err != nil {
			return nil, fmt.Errorf("the report of run %d: %w", len(out)+1, err)
		}
		if run.End < end || run.End > int64(MaxTime) || run.Memory < 0 || len(out) == MaxRuns {
			return nil, fmt.Errorf("the report of run %d is out of order or range: it ends at %d ns, after %d ns", len(out)+1, run.End, end)
		}
		end = run.End
		out = append(out, run)
	}
	if len(out) == 0 {
		return nil, output.ErrEmpty
	}
	return out, nil
}

// check refuses impossible times.
func (r Report) check() error {
	for _, ns := range []int64{r.Elapsed, r.User, r.System} {
		if ns < 0 || ns > int64(MaxTime) {
			return fmt.Errorf("a time in %+v is negative or longer than %v", r, MaxTime)
		}
	}
	if r.Elapsed == 0 {
		return errors.New("the time of the whole run is 0: the sandbox's clock does not advance")
	}
	return nil
}

// mainRuns is `tare internal timed --runs JSON COMMAND...`. It returns the exit code of the run that failed.
func mainRuns(args []string, stdout, stderr io.Writer) int {
	r, err := readSelf(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "timed: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The kernel kills a program at the end of the thread that started it (package child).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r.searchPath()
	// Processes that a run leaves behind become children of this one, see endOrphans.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if l, err := newLauncher(); err == nil {
		defer l.Close() //nolint:errcheck // it ends with this program
		r.launcher = l
	}
	prepare := r
	prepare.Input, prepare.Exit = "", []int{0}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	for begun := time.Now(); time.Since(begun) < r.Warmup; {
		if _, f := r.once(ctx, r.Command, 0); f != nil {
			return f.tell(stderr, "a warm-up run")
		}
	}
	start, spent, kept := time.Now(), time.Duration(0), 0
	for n := 1; n <= MaxRuns && (n <= r.Repeats || spent < r.Fill && kept < mostKept); n++ {
		if len(r.Prepare) > 0 {
			if _, f := prepare.once(ctx, r.Prepare, 0); f != nil {
				return f.tell(stderr, fmt.Sprintf("the command that prepares run %d", n))
			}
		}
		run, f := r.once(ctx, r.Command, r.Keep)
		run.End = time.Since(start).Nanoseconds()
		kept += len(run.Stdout)
		spent += time.Duration(run.Elapsed)
		if f != nil {
			return f.tell(stderr, fmt.Sprintf("run %d", n))
		}
		if r.Quiet {
			continue
		}
		if err := enc.Encode(run); err != nil {
			_, _ = fmt.Fprintf(stderr, "timed: %v\n", err)
			return 1
		}
	}
	return 0
}

// failed is how a run failed.
type failed struct {
	code int
	how  string
	cure string
	said string
}

// tell prints what failed, and then what the program said about it: a reader of the end finds
// the program's own last line.
func (f *failed) tell(stderr io.Writer, what string) int {
	if f.cure != "" {
		f.how += "; " + f.cure
	}
	_, _ = fmt.Fprintf(stderr, "timed: %s %s\n%s", what, f.how, f.said)
	return f.code
}

// codeLate is the exit code of a run that took too long, as of timeout(1).
const codeLate = 124

// lookAgain is how long a run that took too long, without a word on standard error, is run again for.
const lookAgain = 2 * time.Second

// tailKept is how much of what a program printed is shown if it fails, in bytes.
const tailKept = 3 << 10

// needsTerminal is what programs say that have found none.
var needsTerminal = regexp.MustCompile(`(?i)inappropriate ioctl for device|\bENOTTY\b|\bnot (to |from )?a (tty|terminal)\b|\btty\b|\bTERM environment variable\b|\bno terminal\b`)

// once runs a command to its end, and ends the processes that it left in its group. One that fails
// without a word on standard error is run again, because the first standard output went to
// /dev/null: a pipe would have cost time.
func (r *Runs) once(ctx context.Context, args []string, keep int) (Run, *failed) {
	run, f := r.run(ctx, args, keep)
	if f == nil {
		return run, nil
	}
	if keep == 0 && f.said == "" && f.code <= codeLate && ctx.Err() == nil {
		again := *r
		if f.code == codeLate {
			again.Limit = min(r.Limit, lookAgain)
		}
		if _, again := again.run(ctx, args, tailKept); again != nil && again.code == f.code {
			f.said = again.said
		}
	}
	switch {
	case f.code == 127 && f.said == "": // it did not start
	case f.said == "" && f.code == codeLate:
		f.how += " and printed nothing"
	case f.said == "":
		f.how += ", and printed nothing"
	case needsTerminal.MatchString(f.said):
		f.cure = "there is no terminal"
	}
	return run, f
}

// run is once without what a failure needs.
func (r *Runs) run(ctx context.Context, args []string, keep int) (Run, *failed) {
	limited, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	var taken taken
	defer taken.close()
	e, err := r.start(limited, args, &taken, keep)
	if err != nil {
		return Run{}, &failed{code: 127, how: fmt.Sprintf("cannot start %s: %v", args[0], err)}
	}
	taken.end()
	run := Run{Report: Report{Elapsed: int64(e.elapsed), User: e.usage.Utime.Nano(), System: e.usage.Stime.Nano()}, Memory: e.usage.Maxrss << 10}
	if keep > 0 {
		run.Stdout = taken.out.String()
		_, err := taken.out.Whole()
		run.Cut = err != nil
	}
	if f := r.judge(limited, ctx, e.status); f != nil {
		if f.said = taken.err.String(); strings.TrimSpace(f.said) == "" {
			f.said = last(taken.out.String(), tailKept)
		}
		if strings.TrimSpace(f.said) == "" {
			f.said = ""
		}
		return run, f
	}
	return run, nil
}

// start runs a command to its end. An error says why it cannot start.
func (r *Runs) start(ctx context.Context, args []string, taken *taken, keep int) (e ended, err error) {
	cmd := child.Command(ctx, args...)
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }
	cmd.Dir, cmd.Env = r.Dir, append(os.Environ(), r.Env...)
	if cmd.Err != nil {
		return e, missing(cmd.Err)
	}
	if err := r.connect(cmd, taken, keep); err != nil {
		return e, err
	}
	var report bytes.Buffer
	if r.launcher.File != nil {
		theirs, err := taken.pipe(&report)
		if err != nil {
			return e, err
		}
		r.launcher.wrap(cmd, theirs)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return e, missing(err)
	}
	taken.started()
	// The process stays a zombie, so that its id is not reused before its group is killed.
	for {
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	elapsed := time.Since(began)
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	_ = cmd.Wait() // the state says more
	endOrphans()
	taken.end()
	if r.launcher.File != nil {
		if e, ok, err := readEnded(report.Bytes()); ok || err != nil {
			return e, missing(err)
		}
	}
	e.elapsed = elapsed
	e.status, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		e.usage = *u
		e.usage.Maxrss = 0 // that of this program, which is larger than most
	}
	return e, nil
}

// judge says how a run failed, nil if it did not.
func (r *Runs) judge(limited, told context.Context, st syscall.WaitStatus) *failed {
	code, how := st.ExitStatus(), ""
	if st.Signaled() {
		code, how = 128+int(st.Signal()), "was killed by "+unix.SignalName(st.Signal())
	}
	switch {
	case told.Err() != nil:
		return &failed{code: code, how: "was told to end"}
	case limited.Err() != nil:
		return &failed{code: codeLate, how: fmt.Sprintf("did not end within %.4g s", r.Limit.Seconds()), cure: "give more with timeout"}
	case len(r.Exit) == 0 && how == "", slices.Contains(r.Exit, code):
		return nil
	case how == "":
		how = fmt.Sprintf("ended with exit code %d", code)
	}
	if code == 0 {
		return &failed{code: 1, how: how + ", which is not one of the expected ones"}
	}
	return &failed{code: code, how: how}
}

func last(s string, most int) string { return s[max(0, len(s)-most):] }

// taken is what a program prints, taken from pipes with a bound.
type taken struct {
	out, err output.Tail
	ours     []*os.File
	theirs   []*os.File
	copies   sync.WaitGroup
}

// connect gives a command its standard input, output and error.
func (r *Runs) connect(cmd *exec.Cmd, t *taken, keep int) error {
	if _, err := os.Stat(r.Dir); r.Dir != "" && err != nil {
		return fmt.Errorf("its working directory: %w", err)
	}
	if r.Input != "" {
		f, err := os.Open(r.Input)
		if err != nil {
			return fmt.Errorf("its input: %w", err)
		}
		t.theirs = append(t.theirs, f)
		cmd.Stdin = f
	}
	t.err.Most, t.out.Most = tailKept, keep
	w, err := t.pipe(&t.err)
	if err != nil {
		return err
	}
	cmd.Stderr = w
	if keep > 0 {
		if w, err = t.pipe(&t.out); err != nil {
			return err
		}
		cmd.Stdout = w
	}
	return nil
}

func (t *taken) pipe(to io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.ours, t.theirs = append(t.ours, r), append(t.theirs, w)
	t.copies.Go(func() { _, _ = io.Copy(to, r) })
	return w, nil
}

// started closes the ends that the program has.
func (t *taken) started() {
	for _, f := range t.theirs {
		_ = f.Close()
	}
	t.theirs = nil
}

// end waits for the rest of the output. Processes that left the program's group may hold the
// pipes; they are waited for only as long as holdOn.
func (t *taken) end() {
	for _, f := range t.ours {
		_ = f.SetReadDeadline(time.Now().Add(holdOn))
	}
	t.copies.Wait()
}

const holdOn = time.Second

func (t *taken) close() {
	t.started()
	for _, f := range t.ours {
		_ = f.Close()
	}
	t.copies.Wait()
}
