package fio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/child"
	"tare/workload/target"
)

// Steps before the load, in their order.
const (
	stepTrim         = "trim"
	stepFill         = "fill"
	stepPrecondition = "precondition"
	stepWarm         = "warm" // users cannot choose it
)

// Bounds of the preconditioning. The rule and the window are those of SNIA's Solid State Storage
// Performance Test Specification: the last five rounds are within a fifth of their mean, and a
// line through them rises or falls by a tenth of it at most. The specification stops after 25
// rounds.
const (
	mostRounds  = 25
	window      = 5
	mostRange   = 0.2
	mostSlope   = 0.1
	slowestDisk = 32 << 20 // bytes a second: for the time that a step may take
	unknownFill = time.Hour
)

// prepared begins a line of what the steps did, among fio's logs.
const (
	prepared    = "prepared "
	preparedLog = "/tmp/tare.prepared"
	sizeFile    = "/tmp/tare.size"
)

// preparation is what Main must do.
type preparation struct {
	Steps []step `json:"steps"`
	Free  int    `json:"free,omitempty"` // percent of the free space of Dir that all jobs' files have
	Dir   string `json:"dir,omitempty"`
	Jobs  int    `json:"jobs,omitempty"`
	BS    int64  `json:"bs,omitempty"`
}

// step is a command. A step with rounds repeats it until its rate is steady.
type step struct {
	Name   string   `json:"name"`
	Args   []string `json:"args"`
	Rounds int      `json:"rounds,omitempty"`
}

// done is what a step did.
type done struct {
	Step    string    `json:"step,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	Rounds  []float64 `json:"rounds,omitempty"` // requests a second
	Size    int64     `json:"size,omitempty"`   // of each job's file
}

// asked are the words of the parameter prepare.
func asked(v param.Values) []string { return strings.Fields(v.Str("prepare")) }

// checkPrepare is the parameter's Valid.
func checkPrepare(text string) error {
	order := []string{stepTrim, stepFill, stepPrecondition}
	words := strings.Fields(text)
	for _, word := range words {
		if !slices.Contains(order, word) {
			return fmt.Errorf("prepare: %q is not a step; write some of %s", word, strings.Join(order, " "))
		}
	}
	right := slices.DeleteFunc(slices.Clone(order), func(step string) bool { return !slices.Contains(words, step) })
	if !slices.Equal(words, right) {
		return fmt.Errorf("prepare = %s: the steps go in the order %s, each once; write prepare: %s", text, strings.Join(order, ", "), strings.Join(right, " "))
	}
	return nil
}

// prepare puts the steps into the role, instead of the layout.
func prepare(role *workload.Role, v param.Values) error {
	words, free := asked(v), v.Int("free")
	bad := func(name, format string, args ...any) error {
		return &param.ValueError{Param: name, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case slices.Contains(words, stepTrim) && !isDevice(v):
		return bad("prepare", "prepare = trim needs a device, and target = %s is files; write target: block, or device", v.Str("target"))
	case slices.Contains(words, stepPrecondition) && v.Str("jobfile") != "" && !isDevice(v):
		return bad("prepare", "prepare = precondition does not know the job file's files; write target: block, or device, or remove it")
	case free > 0 && (isDevice(v) || v.Str("target") == target.Image):
		return bad("free", "free = %d has no meaning with target = %s, which is made as large as size says; remove it", free, v.Str("target"))
	case free > 0 && v.Str("jobfile") != "":
		return bad("free", "free = %d has no effect on a job file; write a size there", free)
	}
	bytes := max(v.Size("size")*int64(v.Int("jobs")), role.Room)
	role.BeforeWithin = time.Duration(bytes/slowestDisk) * time.Second
	if len(words) == 0 && free == 0 {
		return nil
	}
	p := preparation{Free: free, Dir: directory(v), Jobs: v.Int("jobs"), BS: v.Size("bs")}
	fill := len(role.Before) > 0
	if slices.Contains(words, stepTrim) {
		p.Steps = append(p.Steps, step{Name: stepTrim, Args: append([]string{"fio"}, fillDevice(role.Volumes, "trim")...)})
	}
	if !fill && len(words) > 0 && words[len(words)-1] != stepTrim {
		role.Before = layoutCommand(v) // of a load that writes alone
	}
	if len(role.Before) > 0 {
		p.Steps = append(p.Steps, step{Name: stepFill, Args: role.Before})
	}
	if slices.Contains(words, stepPrecondition) {
		role.BeforeWithin += mostRounds * (v.Duration("duration") + 2*time.Second)
		args := append([]string{"fio"}, files(v)...)
		args = append(args, "--rw=randwrite", "--bs="+strconv.FormatInt(v.Size("bs"), 10), "--iodepth="+v.Str("iodepth"), "--ioengine="+v.Str("engine"),
			"--direct="+flag(v.Str("cache") == "direct"), "--invalidate=0", "--end_fsync=1", "--randrepeat=0", "--time_based", "--runtime="+millis(v.Duration("duration")),
			"--disk_util=0", "--eta=never", "--output-format=json")
		p.Steps = append(p.Steps, step{Name: stepPrecondition, Args: args, Rounds: mostRounds})
		if v.Str("cache") == "warm" && !isDevice(v) {
			p.Steps = append(p.Steps, step{Name: stepWarm, Args: []string{"sh", "-c", `cat "$1"/tare.*.* >/dev/null`, "sh", directory(v)}})
		}
	}
	if free > 0 {
		role.Room = 0 // it is as much as there is
		role.BeforeWithin += unknownFill
		role.Args[2] = withSize + role.Args[2]
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	role.Before = []string{"/tare", "internal", "fio", string(text)}
	return nil
}

// withSize gives fio the size that the preparation found.
const withSize = `set -- "$@" "--size=$(cat ` + sizeFile + `)"` + "\n"

// Main is `tare internal fio`. It runs the steps before the load, and notes what they did.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var p preparation
	err := errors.New("usage: fio PREPARATION")
	if len(args) == 1 {
		err = json.Unmarshal([]byte(args[0]), &p)
	}
	var log bytes.Buffer
	if err == nil {
		err = p.run(ctx, &log, stderr)
	}
	if err == nil {
		err = os.WriteFile(preparedLog, log.Bytes(), 0o600)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func (p preparation) run(ctx context.Context, log, stderr io.Writer) error {
	note := func(d done) {
		line, _ := json.Marshal(d) //nolint:errchkjson // numbers and words
		_, _ = fmt.Fprintf(log, "%s%s\n", prepared, line)
	}
	extra := ""
	if p.Free > 0 {
		size, err := p.size()
		if err == nil {
			err = os.WriteFile(sizeFile, []byte(strconv.FormatInt(size, 10)), 0o600)
		}
		if err != nil {
			return fmt.Errorf("the share of the free space: %w", err)
		}
		note(done{Size: size})
		extra = "--size=" + strconv.FormatInt(size, 10)
	}
	for _, s := range p.Steps {
		if extra != "" && s.Name != stepWarm {
			s.Args = append(s.Args, extra)
		}
		from := time.Now()
		rounds, err := s.run(ctx, stderr)
		if err != nil {
			return fmt.Errorf("the step %s: %w", s.Name, err)
		}
		note(done{Step: s.Name, Seconds: time.Since(from).Seconds(), Rounds: rounds})
	}
	return nil
}

// size returns the size of each job's file.
func (p preparation) size() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(p.Dir, &st); err != nil {
		return 0, err
	}
	free := int64(min(st.Bavail, math.MaxInt64/uint64(max(st.Bsize, 1))/100)) * st.Bsize //nolint:gosec // bounded here
	size := free / 100 * int64(p.Free) / int64(max(p.Jobs, 1)) / max(p.BS, 1) * max(p.BS, 1)
	if size < max(p.BS, 4096) {
		return 0, fmt.Errorf("%d %% of %s are less than a request for each job; free some space", p.Free, param.FormatSize(free))
	}
	return size, nil
}

// run runs the command, or rounds of it.
func (s step) run(ctx context.Context, stderr io.Writer) (rounds []float64, err error) {
	for range max(s.Rounds, 1) {
		var out bytes.Buffer
		cmd := child.Command(ctx, s.Args...)
		cmd.Stdout, cmd.Stderr = &out, stderr
		if err := child.Run(cmd, nil); err != nil {
			_, _ = stderr.Write(out.Bytes()[:min(out.Len(), 2000)])
			return rounds, err
		}
		if s.Rounds == 0 {
			return nil, nil
		}
		o, err := parse(&out)
		if err != nil {
			return rounds, err
		}
		rate := 0.0
		for _, j := range o.jobs {
			if j.Write != nil && j.Write.Runtime > 0 {
				rate += float64(j.Write.IOs) / (float64(j.Write.Runtime) / 1000)
			}
		}
		if rounds = append(rounds, rate); steady(rounds) {
			break
		}
	}
	return rounds, nil
}

// steady reports whether the last rounds are alike.
func steady(rounds []float64) bool {
	if len(rounds) < window {
		return false
	}
	last := rounds[len(rounds)-window:]
	mean, slope := 0.0, 0.0
	for _, y := range last {
		mean += y / window
	}
	for i, y := range last {
		const middle = (window - 1) / 2.
		slope += (float64(i) - middle) * (y - mean) / 10 // the sum of squares of -2 to 2
	}
	return mean > 0 && slices.Max(last)-slices.Min(last) <= mostRange*mean && math.Abs(slope)*(window-1) <= mostSlope*mean
}

// readPrepared adds what the steps did.
func readPrepared(rd *record.Reading, logs []byte) {
	for line := range bytes.Lines(logs) {
		text, is := bytes.CutPrefix(line, []byte(prepared))
		var d done
		if !is || json.Unmarshal(text, &d) != nil || d.Seconds < 0 || d.Seconds > 1e6 || d.Size < 0 || len(d.Rounds) > mostRounds || len(rd.Samples) > 1000 {
			continue
		}
		if d.Size > 0 {
			rd.Value("file_size", record.Byte, float64(d.Size))
			continue
		}
		if !slices.Contains([]string{stepTrim, stepFill, stepPrecondition, stepWarm}, d.Step) {
			continue
		}
		rd.Value("prepare_time", record.Second, d.Seconds, "step", d.Step)
		if d.Step != stepPrecondition {
			continue
		}
		rd.Value("prepare_rounds", record.Count, float64(len(d.Rounds)))
		if !steady(d.Rounds) {
			rd.Warn("not-steady", "the device was overwritten at random in %d rounds, and its rate was still not steady (within %g %% over %d rounds); make duration longer", len(d.Rounds), 100*mostRange, window)
		}
	}
}
