package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// slow is the rate, in executions for each second of CPU time, below which a target fails unless
// mayBeSlow has it.
const slow = 1000

// enough is how long targets must run for their rate to be judged, and for the branches of
// libraries to guide their search: the start takes much of a shorter time.
const enough = 5 * time.Second

// mayBeSlow has the targets that may be slow, with the reason.
func mayBeSlow() map[string]string {
	return map[string]string{
		"tare/cmd/tare FuzzInitCommand": "each execution writes a study and checks it against everything that tare offers",
		"tare/plan FuzzLivesWithNodes":  "each execution is the whole life of a study, with a plan that is made again before each trial",
		"tare/store FuzzOpen":           "SQLite opens files by name: each execution opens one twice, reads all of it and appends a trial",
	}
}

// fewest is how many executions a target must do in each second that it has. The number is
// low enough for a busy host. A target below it waits or hangs.
const fewest = 10

// grace is how long a target may take to end after its time.
const grace = time.Minute

// pack is a package with fuzz targets.
type pack struct {
	path, dir, module string
	targets           []string
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// list finds the targets in the source of the tests, so that only packages with targets are
// built.
func (f *fuzzer) list(ctx context.Context, patterns []string) ([]pack, error) {
	const format = "{{$d := .Dir}}{{.ImportPath}}\t{{$d}}\t{{.Module.Path}}{{range .TestGoFiles}}\t{{$d}}/{{.}}{{end}}{{range .XTestGoFiles}}\t{{$d}}/{{.}}{{end}}"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, patterns...)...) //nolint:gosec // G204: the packages that the caller names
	cmd.Dir = f.dir
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("cannot list the packages: %w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("cannot list the packages: %w", err)
	}
	var packages []pack
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		p := pack{path: fields[0], dir: fields[1], module: fields[2]}
		for _, name := range fields[3:] {
			text, err := os.ReadFile(name) //nolint:gosec // G304: a file of the module
			if err != nil {
				return nil, err
			}
			for _, m := range declared.FindAllSubmatch(text, -1) {
				if target := string(m[1]); f.only.MatchString(p.path + " " + target) {
					p.targets = append(p.targets, target)
				}
			}
		}
		if len(p.targets) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// instrumented are the packages outside the module whose branches guide the search: they
// read text, archives and tables. "go test -fuzz" instruments all packages instead. SQLite
// alone then has so many counters that comparing them takes longer than most targets.
func instrumented() []string {
	return []string{
		"archive/...", "bufio", "bytes", "compress/...", "encoding/...", "net/http", "net/textproto", "strconv", "strings", "unicode/utf8",
		"github.com/...", "go.yaml.in/...",
	}
}

// build makes the instrumented test binary of a package.
func (f *fuzzer) build(ctx context.Context, p pack, program string) ([]byte, error) {
	// Without symbols, linking takes half the time.
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program}, f.instruments(p)...)
	cmd := exec.CommandContext(ctx, "go", append(args, p.path)...) //nolint:gosec // G204: a package that the go command named
	cmd.Dir = f.dir
	return cmd.CombinedOutput()
}

// compile fills the go command's cache with what the packages and their tests import. Builds
// at the same time would each compile it. What cannot be compiled is told by build.
func (f *fuzzer) compile(ctx context.Context, packages []pack) {
	args := append([]string{"list", "-e", "-export", "-test", "-deps", "-f", "{{/* nothing */}}"}, f.instruments(packages[0])...)
	for _, p := range packages {
		args = append(args, p.path)
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: packages that the go command named
	cmd.Dir = f.dir
	_ = cmd.Run()
}

// instruments are the flags of the go command that instrument. A short search is guided by the
// module alone. Instrumenting strings makes the go command compile all that imports it again: 708
// packages of tare's 838, which takes longer than all the short searches.
func (f *fuzzer) instruments(p pack) []string {
	patterns := []string{p.module + "/..."}
	if f.each >= enough {
		patterns = append(patterns, instrumented()...)
	}
	var flags []string
	for _, pattern := range patterns {
		flags = append(flags, "-gcflags="+pattern+"=-d=libfuzzer")
	}
	return flags
}

// result is the result of one target.
type result struct {
	name       string
	executions int
	cpu        time.Duration // of all processes of the target
	failed     string        // why, or ""
	few        bool          // it failed for too few executions
	said       []byte        // what the target printed
}

func (r result) rate() float64 {
	if r.cpu <= 0 {
		return 0
	}
	return float64(r.executions) / r.cpu.Seconds()
}

func (r result) String() string {
	mark := "ok    "
	switch {
	case r.failed != "":
		return fmt.Sprintf("FAIL  %s: %s (%d executions)\n%s", r.name, r.failed, r.executions, r.said)
	case r.rate() < slow:
		mark = "slow  "
	}
	return fmt.Sprintf("%s%-60s %10d executions %9.0f a second of CPU time\n", mark, r.name, r.executions, r.rate())
}

// target runs one target. A target with too few executions, or one that fails for being slow, gets
// a second run of ten times the time: on a busy host, a large program may need the whole of the
// first run to start.
func (f *fuzzer) target(ctx context.Context, p pack, name, program string) result {
	r := f.once(ctx, p, name, program, f.each)
	if r.few || f.tooSlow(r) {
		r = f.once(ctx, p, name, program, 10*f.each)
	}
	if f.tooSlow(r) {
		r.failed = fmt.Sprintf("it did %.0f executions in a second of CPU time, fewer than %d; make it faster, or give the reason in mayBeSlow", r.rate(), slow)
	}
	return r
}

// tooSlow reports whether a target must be faster.
func (f *fuzzer) tooSlow(r result) bool {
	return f.each >= enough && r.failed == "" && r.rate() < slow && mayBeSlow()[r.name] == ""
}

// once runs one target in the folder of its package. It minimises inputs by one step only:
// on large inputs, minimising would take all of the time.
func (f *fuzzer) once(ctx context.Context, p pack, name, program string, each time.Duration) result {
	limit, cancel := context.WithTimeout(ctx, each+grace)
	defer cancel()
	tmp, err := os.MkdirTemp(memory(), "fuzz")
	if err != nil {
		return result{name: p.path + " " + name, failed: err.Error()}
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	cmd := exec.CommandContext(limit, program, "-test.run=^$", "-test.fuzz=^"+name+"$", //nolint:gosec // G204: built by build
		"-test.fuzztime="+each.String(), "-test.fuzzminimizetime=1x",
		"-test.fuzzcachedir="+filepath.Join(f.cache, p.path), fmt.Sprint("-test.parallel=", f.workers))
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	// An interrupt makes the coordinator end its workers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.CombinedOutput()
	r := result{name: p.path + " " + name, executions: executions(said), said: said}
	if s := cmd.ProcessState; s != nil {
		r.cpu = s.UserTime() + s.SystemTime()
	}
	switch {
	case limit.Err() != nil:
		r.failed = fmt.Sprintf("it did not end within %v after its time", grace)
	case err != nil && !race(said):
		r.failed = err.Error()
	case float64(r.executions) < fewest*each.Seconds():
		r.few, r.failed = true, fmt.Sprintf("it did too few executions in %v", each)
	}
	return r
}

var deadline = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([0-9.]+s\)\n    context deadline exceeded$`)

// race reports whether a target failed only because its time was over. Go's coordinator
// sometimes takes the end of -fuzztime for a failure (https://go.dev/issue/75804). A true
// failure names the file of the input that caused it.
func race(said []byte) bool {
	return deadline.Match(said) && !bytes.Contains(said, []byte("Failing input written to"))
}

// memory is a folder whose files are in memory, or "" for the usual temporary
// folder. Targets that write files are faster there.
func memory() string {
	const shm = "/dev/shm"
	var st unix.Statfs_t
	if err := unix.Statfs(shm, &st); err != nil || st.Type != unix.TMPFS_MAGIC || unix.Access(shm, unix.W_OK) != nil {
		return ""
	}
	return shm
}

var execs = regexp.MustCompile(`(?m)^fuzz: elapsed: .*\b(?:execs: |gathering baseline coverage: )(\d+)[ /]`)

// executions reads the last count that the target printed. Before it searches, it runs each
// input that is known: on a busy host, these take all of a short time.
func executions(said []byte) int {
	all := execs.FindAllSubmatch(bytes.ReplaceAll(said, []byte("\r"), []byte("\n")), -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(all[len(all)-1][1]))
	return n
}
