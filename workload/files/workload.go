// Package files is the workload files: metadata and small files, and real programs that use many
// of them: tar, a C compiler, git, npm.
//
// The data path: 1. Roles makes two commands of `tare internal files`: the first prepares a tree
// (tree.go), which is always the same, and the second is the load; 2. Main (main.go) runs rounds:
// each operation on every file (metadata.go), or one run of a real program (real.go);
// 3. it prints the report, one line of JSON with a histogram of each operation's times, and then
// compares the files with what was made: a difference fails the trial; 4. Parse reads the report.
package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
	"tare/workload/target"
)

// New returns the workload.
func New() workload.Workload { return files{} }

type files struct{}

// Values of load.
const (
	metadataLoad = "metadata"
	untar        = "untar"
	compile      = "compile"
	status       = "git-status"
	install      = "npm-install"
)

func (files) Name() string { return "files" }

func (files) About() string {
	return "many small files: create, stat, read and remove them, or run tar, gcc, git and npm on them; shows what an isolation costs each operation"
}

func (files) Params() []param.Param {
	return []param.Param{
		{Name: "load", Type: param.Enum, Default: metadataLoad, Words: []string{metadataLoad, untar, compile, status, install}, Help: "metadata: single operations on files; or a real program on a prepared tree: tar unpacks it, gcc compiles a program that includes its headers, git status looks through it, npm installs it from packages"},
		{Name: "operations", Type: param.String, Default: "all", Help: "with load metadata: all, or some of " + strings.Join(nameAll(operations()), ",") + ", joined by commas; with exactly one, as levels of a factor, its response is called rate"},
		{Name: "files", Type: param.Int, Default: "1000", Min: 1, Max: 100_000, Help: "files in the tree"},
		{Name: "depth", Type: param.Int, Default: "2", Min: 0, Max: 16, Help: "levels of directories; the files are in those of the last level"},
		{Name: "width", Type: param.Int, Default: "5", Min: 1, Max: 1000, Help: "directories in each directory above the last level"},
		{Name: "file-size", Type: param.Size, Default: "4KiB", Min: 1, Max: 16 << 20, Help: "size of each file"},
		{Name: "threads", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "threads that divide the files among themselves; of compile, compilers at once"},
		{Name: "cache", Type: param.Enum, Default: "warm", Words: []string{"warm", "dropped"}, Help: "warm: the files are in the page cache; dropped: they leave it before the load, which ends with the files; each operation then has a tree of its own"},
		target.Param("the files are", "", target.Files()...),
		{Name: "duration", Type: param.Duration, Default: "1s", Min: 0.05, Max: 3600, Help: "measured time; the round that is under way then is the last"},
		{Name: "warmup", Type: param.Duration, Default: "200ms", Min: 0, Max: 3600, Help: "rounds that begin before this time are not measured"},
	}
}

// Responses returns the figures of each operation under its name. A single operation has figures whose
// names do not depend on it, so that operations can be a factor.
func (files) Responses(v param.Values) []record.Response {
	if loads := v.Str("load"); loads != metadataLoad {
		r := record.Response{Name: "time", Unit: record.Second, Better: record.Lower, Help: "a run of the program, from before its start to after its end"}
		if loads == status { // nothing is removed between its runs
			r.Operation = "run"
		}
		return []record.Response{r}
	}
	ops, err := chosen(v.Str("operations"))
	if err != nil {
		ops = operations()
	}
	var out []record.Response
	for _, o := range ops {
		rate, latency := responseNames(o.name, len(ops))
		r := record.Response{Name: rate, Unit: record.PerSecond, Better: record.Higher, Help: o.about + ", a second, all threads together"}
		// The trial's figures can be divided by its operations only if nothing else happens.
		if len(ops) == 1 && o.name != "create" && o.name != "unlink" {
			r.Operation = "operation"
		}
		out = append(out, r)
		for _, p := range percentiles() {
			out = append(out, record.Response{Name: latency + p.name, Unit: record.Second, Better: record.Lower, Help: p.name + " of the time of one, all threads' histograms merged"})
		}
	}
	return out
}

type percentile struct {
	name     string
	quantile float64
}

func percentiles() []percentile { return []percentile{{"p50", 50}, {"p99", 99}} }

// responseNames returns the name of an operation's rate, and the prefix of its latencies.
func responseNames(op string, of int) (rate, latency string) {
	if of == 1 {
		return "rate", "latency_"
	}
	return op, op + "_latency_"
}

// leaves returns the number of directories that have files.
func leaves(v param.Values) int {
	n := 1
	for range v.Int("depth") {
		if n *= v.Int("width"); n > v.Int("files") {
			break
		}
	}
	return n
}

// sizeLeast is the least size of a header for compile, in bytes. A header holds a function.
const sizeLeast = 128

func (files) Roles(v param.Values) ([]workload.Role, error) {
	loads, threads := v.Str("load"), v.Int("threads")
	ops, err := chosen(v.Str("operations"))
	switch {
	case err != nil:
		return nil, err
	case loads != metadataLoad && v.Str("operations") != "all":
		return nil, fmt.Errorf("operations = %s has no effect with load = %s; write load: metadata", v.Str("operations"), loads)
	case leaves(v) > v.Int("files"):
		return nil, fmt.Errorf("width = %d and depth = %d make more directories than files = %d can fill; write fewer of them, or more files", v.Int("width"), v.Int("depth"), v.Int("files"))
	case loads != metadataLoad && loads != compile && threads > 1:
		return nil, fmt.Errorf("threads = %d has no effect with load = %s; write threads: 1", threads, loads)
	case loads == compile && threads > units+1:
		return nil, fmt.Errorf("threads = %d is more than load = compile has source files; write %d at most", threads, units+1)
	case loads == compile && v.Size("file-size") < sizeLeast:
		return nil, fmt.Errorf("file-size = %s is too small for a header of load = compile; write %d at least", v.Str("file-size"), sizeLeast)
	}
	c := config{
		Load: loads, Operations: v.Str("operations"), Dir: filepath.Join(target.Directory(v.Str("target")), "files"),
		Files: v.Int("files"), Depth: v.Int("depth"), Width: v.Int("width"), Size: v.Size("file-size"), Threads: threads,
		Cold: cold(v), Warmup: v.Duration("warmup"), Duration: v.Duration("duration"),
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	command := []string{"/tare", "internal", "files", "--config", string(b)}
	r := workload.Role{
		Name: "main", Mode: workload.Exec, Args: command, Before: append(command[:len(command):len(command)], "--layout"),
		DropCaches: c.Cold, Writable: v.Str("target") == target.Root,
		Volumes: target.Volumes(v.Str("target"), room(c, len(ops)), ""), Room: room(c, len(ops)),
		Warmup: c.Warmup, Expect: c.Duration, Within: within,
		Until: "{", // its report: what follows is the check
	}
	if c.Cold { // one round, however long it takes
		r.Warmup, r.Expect = 0, time.Duration(c.Files*len(ops))*perCold
	}
	if loads != metadataLoad {
		r.Image, r.Expect = "build", max(r.Expect, perRun)
		if loads == install {
			r.Image = "npm"
		}
	}
	return []workload.Role{r}, nil
}

// Counting implements workload.Counter. It leaves out the calls of the start and of the first round,
// which finds nothing in a sandbox's caches. A warm load makes the same calls as a cold one, but more
// often.
func (files) Counting(v param.Values) param.Values {
	out := maps.Clone(v)
	out["warmup"] = max(v.Duration("warmup"), 300*time.Millisecond).String()
	out["cache"] = "warm"
	return out
}

const (
	perCold = 100 * time.Microsecond // a guess of an operation on a disk
	perRun  = 2 * time.Second        // of a real program
	within  = 5 * time.Minute        // a round may be a hundred times as slow in a sandbox
)

// room returns the disk space that the files need, in bytes: blocks and inodes of several trees.
func room(c config, ops int) int64 {
	trees := int64(4) // of a real program: what is prepared, what it makes, its cache
	if c.Load == metadataLoad {
		trees = 1
		if c.Cold {
			trees = int64(ops)
		}
	}
	return int64(c.Files) * max(c.Size+4096, 16<<10) * trees
}

func cold(v param.Values) bool { return target.Cold(v.Str("target"), v.Str("cache")) }

func (files) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	r, err := output.JSON[report](out)
	if err != nil {
		return rd, fmt.Errorf("the report of files: %w", err)
	}
	want := []string{v.Str("load")}
	if want[0] == metadataLoad {
		ops, err := chosen(v.Str("operations"))
		if err != nil {
			return rd, err
		}
		want = nameAll(ops)
	}
	switch {
	case r.Format != 1:
		return rd, fmt.Errorf("the report of files has the format %d, this tare reads 1", r.Format)
	case role != "main" || r.Load != v.Str("load") || len(r.Phases) != len(want):
		return rd, fmt.Errorf("the report of files (role %s) is of the load %q with %d phases, but %q with %d was asked for", role, r.Load, len(r.Phases), v.Str("load"), len(want))
	}
	for i, p := range r.Phases {
		if p.Name != want[i] {
			return rd, fmt.Errorf("phase %d of the report of files is %q, but should be %q", i+1, p.Name, want[i])
		}
		h, err := p.decode()
		if err != nil {
			return rd, fmt.Errorf("the report of files: %s: %w", p.Name, err)
		}
		if err := p.add(&rd, v, len(want), h); err != nil {
			return rd, fmt.Errorf("the report of files: %s: %w", p.Name, err)
		}
	}
	if v.Str("cache") == "dropped" && !cold(v) {
		rd.Warn(record.WarnPageCache, "cache = dropped has no effect with target = %s: those files are only in memory", v.Str("target"))
	}
	return rd, nil
}

// decode checks a phase and returns its histogram.
func (p *phase) decode() (*hdrhistogram.Histogram, error) {
	if p.Operations < 1 || p.Time < 1e-9 || p.Time > 1e7 {
		return nil, fmt.Errorf("%d operations in %g s are out of range", p.Operations, p.Time)
	}
	last := 0.0
	for i, t := range p.Series.T {
		if len(p.Series.V) != len(p.Series.T) || t < last || t > 1e6 || p.Series.V[i] <= 0 {
			return nil, errors.New("its series is out of range")
		}
		last = t
	}
	h, err := hdrhistogram.Decode([]byte(p.Histogram))
	if err != nil {
		return nil, fmt.Errorf("its histogram: %w", err)
	}
	if h.TotalCount() != p.Operations || h.Max() > 2*histogramMax {
		return nil, fmt.Errorf("its histogram has %d operations up to %d ns, of %d", h.TotalCount(), h.Max(), p.Operations)
	}
	return h, nil
}

// fewOperations is a limit. Below it, the 99th percentile rests on fewer than five operations.
const fewOperations = 500

// add turns a phase into samples.
func (p *phase) add(rd *record.Reading, v param.Values, of int, h *hdrhistogram.Histogram) error {
	if p.Name == v.Str("load") {
		return p.addRuns(rd)
	}
	rate, latency := responseNames(p.Name, of)
	rd.Value(rate, record.PerSecond, float64(p.Operations)/p.Time)
	for _, q := range percentiles() {
		rd.Value(latency+q.name, record.Second, float64(h.ValueAtPercentile(q.quantile))*1e-9)
	}
	rd.Value("operations", record.Count, float64(p.Operations), "operation", p.Name)
	if p.Operations < fewOperations && p.Name != "readdir" {
		rd.Warn(record.FewRequests+latency+"_p99", "there were only %d operations (%s): the 99th percentile rests on fewer than five; make files or duration larger", p.Operations, p.Name)
	}
	if s, ok := p.Series.Series(rate, record.PerSecond, math.Inf(1)); ok {
		rd.Series = append(rd.Series, s)
	}
	return output.Histogram(rd, "latency", h, "operation", p.Name)
}

// addRuns makes the response of a real program: the median of its measured runs.
func (p *phase) addRuns(rd *record.Reading) error {
	n := len(p.Series.T) - int(min(p.Operations, int64(len(p.Series.T))))
	measured := output.Points{T: p.Series.T[n:], V: p.Series.V[n:]}
	if int64(len(measured.T)) != p.Operations {
		return fmt.Errorf("it has %d runs, of %d", len(measured.T), p.Operations)
	}
	s, _ := measured.Series("time", record.Second, math.Inf(1)) // decode has checked it
	output.Repeats(rd, "time", record.Second, s.T, s.V)
	rd.Value("runs", record.Count, float64(p.Operations))
	return nil
}
