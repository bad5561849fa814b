package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/host/cgroup"
	"tare/internal/rootless"
	"tare/internal/tinyelf"
	"tare/sandbox"
	"tare/volume"
)

// ProbeTime bounds one start of the smallest program. With gVisor a start takes 0.2 s on a
// quiet host, and 15 s in an emulated machine on a busy host.
const ProbeTime = 30 * time.Second

// Probe starts the smallest program in the smallest tree with l, and returns an error unless
// the program answers. It leaves nothing behind.
func Probe(ctx context.Context, l sandbox.Launcher, stateDir string) error {
	return ProbeWithin(ctx, ProbeTime, l, stateDir, nil)
}

// ProbeWithin is Probe with the kind's options, for sandboxes that take longer to start.
func ProbeWithin(ctx context.Context, within time.Duration, l sandbox.Launcher, stateDir string, options map[string]string) error {
	return probeAt(ctx, loadAverage, within, l, stateDir, options)
}

// probeAt is ProbeWithin on a host with that load.
func probeAt(ctx context.Context, load func() float64, within time.Duration, l sandbox.Launcher, stateDir string, options map[string]string) error {
	return patient(ctx, within, l.Name(), load, func(ctx context.Context) error {
		return probe(ctx, l.Name(), stateDir, func(ctx context.Context, spec sandbox.Spec) error {
			spec.Options = options
			return hello(ctx, l, spec)
		})
	})
}

// patient tries a sandbox. On a host whose processors are all busy with other work, a try that did not
// end in time says nothing about the sandbox, so there is a second one. A time beyond ProbeTime allows
// for a busy host already. load is the host's load average of the last minute.
func patient(ctx context.Context, within time.Duration, name string, load func() float64, try func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return try(ctx)
	}
	late := func(err error) bool { return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) }
	busy := func() (float64, bool) { l := load(); return l, l > float64(runtime.NumCPU()) }
	err := once()
	if _, is := busy(); is && late(err) && within <= ProbeTime {
		err = once()
	}
	var t *tooLate
	if l, is := busy(); is && late(err) && errors.As(err, &t) {
		return fmt.Errorf("whether %s works is not known: the host is too busy to tell, with a load average of %.2f on %d processors: %w; %sstop the other work and try again", name, l, runtime.NumCPU(), t, byHand(t))
	}
	return err
}

// loadAverage is the mean number of tasks in the last minute that ran, wanted to, or waited for a disk
// (proc_loadavg(5)); 0 if it is not known.
func loadAverage() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	l, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return l
}

// tooLate is the error of a try that did not end in time.
type tooLate struct {
	after time.Duration
	said  string // what the runtime printed, with a word before it
	err   error
}

func (t *tooLate) Error() string {
	return fmt.Sprintf("its test program did not end within %s: %v%s", t.after.Round(time.Second), t.err, t.said)
}
func (t *tooLate) Unwrap() error { return t.err }

// ProbeWith calls try with the spec of a sandbox with the smallest tree, which holds only
// /tare-hello and /tare-pause. It leaves nothing behind.
func ProbeWith(ctx context.Context, kind, stateDir string, try func(context.Context, sandbox.Spec) error) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTime)
	defer cancel()
	return probe(ctx, kind, stateDir, try)
}

func probe(ctx context.Context, kind, stateDir string, try func(context.Context, sandbox.Spec) error) (err error) {
	if err := os.MkdirAll(stateDir, 0o755); err != nil { //nolint:gosec // as the rest of /run
		return fmt.Errorf("%s: %w; run as root", kind, err)
	}
	dir, err := os.MkdirTemp(stateDir, "check-")
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	// Remove only what ProbeWith made, and stateDir itself if it is empty.
	defer func() { err = errors.Join(err, os.RemoveAll(dir)); _ = os.Remove(stateDir) }()
	root, own := filepath.Join(dir, "root"), filepath.Join(dir, "own")
	for _, d := range []string{own, root, root + "/proc", root + "/sys", root + "/dev", root + "/tmp", root + "/data"} {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // a tree for sandboxes
			return err
		}
	}
	for name, program := range map[string]func() ([]byte, error){"tare-hello": tinyelf.Hello, "tare-pause": tinyelf.Pause} {
		code, err := program()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, name), code, 0o755); err != nil { //nolint:gosec // a program
			return err
		}
	}
	name := "check-" + kind + "-" + strconv.Itoa(os.Getpid()) + strings.TrimPrefix(filepath.Base(dir), "check")
	return try(ctx, sandbox.Spec{Want: sandbox.Want{Name: name}, Dir: own, Root: root})
}

func hello(ctx context.Context, l sandbox.Launcher, spec sandbox.Spec) error {
	var stdout, stderr Tail
	began := time.Now()
	got, err := l.Launch(ctx, spec, sandbox.Command{Args: []string{"/tare-hello"}, Stdout: &stdout, Stderr: &stderr}, sandbox.Whole)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		late := &tooLate{time.Since(began), Says(&stderr), err}
		return fmt.Errorf("%s does not work on this host: %w; %sleave %s out of the study", l.Name(), late, byHand(err), l.Name())
	case err != nil:
		return fmt.Errorf("%s does not work on this host: %w%s", l.Name(), err, Says(&stderr))
	case stdout.String() != "x\n":
		return fmt.Errorf("%s does not work on this host: its test program did not answer%s%s%s", l.Name(), exited(got.Exit), printed(&stdout), Says(&stderr))
	}
	return nil
}

// byHand suggests trying the command that hung, if the error has one in backquotes, as a
// runtime's has. The error of a machine that does not boot has the end of its console instead.
func byHand(err error) string {
	if strings.Count(err.Error(), "`") < 2 {
		return ""
	}
	return "try that command by hand, or "
}

func exited(e sandbox.Exit) string {
	if e.Code == 0 {
		return ""
	}
	return fmt.Sprintf(", exit code %d", e.Code)
}

// printed quotes standard output that is not the expected answer.
func printed(t *Tail) string {
	const most = 200
	s := t.String()
	if s == "" {
		return ""
	}
	return fmt.Sprintf("; its standard output was %q", s[:min(len(s), most)])
}

// Says returns the end of an error message: the last 500 bytes of a tool's output, "" if
// there is no output.
func Says(t *Tail) string {
	const most = 500
	s := strings.TrimSpace(strings.ToValidUTF8(t.String(), "?"))
	if s == "" {
		return ""
	}
	if len(s) > most {
		s = "..." + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return "; it says: " + s
}

// Group makes the control group tare/NAME. It returns an error if the group exists, because
// two sandboxes of one name would be stopped together.
func Group(name string, l cgroup.Limits) (*cgroup.Group, *cgroup.Hierarchy, error) {
	if name == "" || strings.ContainsAny(name, "/ ") || strings.HasPrefix(name, ".") {
		return nil, nil, fmt.Errorf("%q cannot name a sandbox", name)
	}
	h, err := cgroup.Detect()
	if err != nil {
		return nil, nil, err
	}
	rel := "tare/" + name
	if left, err := h.Open(rel).Procs(); h.Version == cgroup.None && (err != nil || len(left) > 0) {
		return nil, nil, errors.Join(err, fmt.Errorf("sandbox %s exists already; if no run is active, `tare clean` removes it", name))
	}
	for _, controller := range []string{"memory", "cpu", "pids", ""} {
		if dir, ok := h.Path(controller, rel); ok {
			if _, err := os.Stat(dir); err == nil {
				return nil, nil, fmt.Errorf("sandbox %s exists already (%s); if no run is active, `tare clean` removes it", name, dir)
			}
		}
	}
	g, err := h.Create(rel, l)
	return g, h, err
}

// Limits returns the limits that the control group of a sandbox sets.
func Limits(spec sandbox.Spec) cgroup.Limits {
	return cgroup.Limits{CPU: spec.CPULimit, Memory: spec.MemoryLimit, CPUs: spec.CPUs}
}

// CheckLimits returns an error that names the limits or disks of a sandbox that this host
// cannot give it.
func CheckLimits(spec sandbox.Spec) error {
	for _, v := range spec.Volumes {
		if rootless.Is() && (v.Mode == volume.Block || v.Medium == volume.Image) {
			return fmt.Errorf("without root, volume %s cannot be a disk; use a directory, or run tare with sudo", v.Name)
		}
	}
	h, err := cgroup.Detect()
	if err != nil {
		return err
	}
	return h.Check(Limits(spec))
}

// Environment is what a process in a sandbox starts with, and then over. Each name is in it
// once, with its last value: runtimes and C libraries differ in which of two they take.
func Environment(spec sandbox.Spec, over ...string) []string {
	out := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
		Marker + "=" + spec.Name,
	}
	for _, e := range over {
		name, _, _ := strings.Cut(e, "=")
		if i := slices.IndexFunc(out, func(o string) bool { return strings.HasPrefix(o, name+"=") }); i >= 0 {
			out[i] = e
		} else {
			out = append(out, e)
		}
	}
	return out
}
