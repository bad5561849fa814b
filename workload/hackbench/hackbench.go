// Package hackbench is the workload hackbench: groups of tasks that send each other small
// messages, with the real hackbench of rt-tests. It measures what an isolation costs the
// scheduler, pipes and local sockets: the tasks compute nothing and use no network.
//
// The data path: 1. Roles turns the parameters into a shell loop that runs
// hackbench several times, one after another; 2. hackbench prints what it runs and how long
// that took, as text, because it has no machine-readable output; 3. Parse compares the first
// with what was requested, and takes the median of the second.
//
// In a group each of so many senders sends every message to each of as many
// receivers: groups x senders x receivers x loops messages in all.
// https://wiki.linuxfoundation.org/realtime/documentation/howto/tools/hackbench
package hackbench

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return hackbench{} }

type hackbench struct{}

func (hackbench) Name() string { return "hackbench" }

func (hackbench) About() string {
	return "hackbench: groups of tasks that send each other messages; shows what an isolation costs scheduling, pipes and local sockets"
}

func (hackbench) Params() []param.Param {
	return []param.Param{
		{Name: "ipc", Type: param.Enum, Default: "pipe", Words: []string{"pipe", "socket"}, Help: "what the messages go through: pipes, or pairs of Unix sockets"},
		{Name: "tasks", Type: param.Enum, Default: "process", Words: []string{"process", "thread"}, Help: "what senders and receivers are"},
		{Name: "groups", Type: param.Int, Default: "2", Min: 1, Max: 100, Help: "groups of tasks; they have nothing to do with each other"},
		{Name: "senders", Type: param.Int, Default: "10", Min: 1, Max: 100, Help: "senders of a group, and as many receivers"},
		{Name: "loops", Type: param.Int, Default: "300", Min: 1, Max: 1_000_000, Help: "messages from each sender to each receiver of its group"},
		{Name: "size", Type: param.Size, Default: "100B", Min: 8, Max: 1 << 20, Help: "size of a message"},
		{Name: "repeats", Type: param.Int, Default: "3", Min: 1, Max: 1000, Help: "runs in a trial; the median counts"},
	}
}

func (hackbench) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "time", Unit: record.Second, Better: record.Lower, Operation: "run",
		Help: "from letting all tasks of a run go to the end of the last; the median of the runs"}}
}

// script runs hackbench as often as its first argument says, and ends at the first failure.
const script = `n=$0; while [ "$n" -gt 0 ]; do hackbench "$@" || exit; n=$((n-1)); done`

// messageTime is a guess of the time of one message, used only for the expected time of a
// trial: a native message takes 1 us, gVisor's 10 us and more.
const messageTime = 10 * time.Microsecond

// maxTasks keeps a study from exhausting the process IDs of a host.
const maxTasks = 4000

func (hackbench) Roles(v param.Values) ([]workload.Role, error) {
	groups, senders := v.Int("groups"), v.Int("senders")
	if n := groups * senders * 2; n > maxTasks {
		return nil, fmt.Errorf("groups = %d and senders = %d make %d tasks, but at most %d are allowed", groups, senders, n, maxTasks)
	}
	args := []string{"sh", "-c", script, v.Str("repeats"),
		// hackbench 2.4 misreads the long form of -s.
		"-g", strconv.Itoa(groups), "-f", strconv.Itoa(senders), "-l", v.Str("loops"), "-s", strconv.FormatInt(v.Size("size"), 10),
	}
	if v.Str("ipc") == "pipe" {
		args = append(args, "-p")
	}
	if v.Str("tasks") == "thread" {
		args = append(args, "-T")
	} else {
		args = append(args, "-P")
	}
	// In floating point, because the product of the largest values overflows an int.
	messages := float64(groups) * float64(senders) * float64(senders) * float64(v.Int("loops")) * float64(v.Int("repeats"))
	expect := min(messages*float64(messageTime), float64(24*time.Hour))
	return []workload.Role{{Name: "main", Mode: workload.Exec, Image: "hackbench", Args: args, Expect: time.Duration(expect)}}, nil
}

// coarse is the time, in seconds, of which hackbench's resolution of a millisecond is a tenth.
const coarse = 0.01

func (hackbench) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	runs, err := parse(out)
	if err != nil {
		return rd, err
	}
	if want := v.Int("repeats"); len(runs) != want {
		return rd, fmt.Errorf("hackbench: the report has %d runs, but %d were requested (repeats)", len(runs), want)
	}
	want := run{mode: v.Str("tasks"), groups: v.Int("groups"), tasks: 2 * v.Int("senders") * v.Int("groups"), loops: v.Int("loops"), size: v.Size("size")}
	var times []float64
	var ends []time.Duration
	var end float64
	for i, r := range runs {
		got := r
		got.seconds = 0
		if got != want {
			return rd, fmt.Errorf("hackbench: run %d was of %s, not of %s as asked", i+1, got, want)
		}
		if r.seconds <= 0 {
			return rd, fmt.Errorf("hackbench: run %d took less than a millisecond, which is the finest time that it prints; increase loops", i+1)
		}
		end += r.seconds
		times, ends = append(times, r.seconds), append(ends, time.Duration(end*1e9))
	}
	output.Repeats(&rd, "time", record.Second, ends, times)
	rd.Value(record.Runs, record.Count, float64(len(times)))
	if m := output.Median(times); m < coarse {
		rd.Warn("coarse-time", "a run of hackbench took %g s, and it prints whole milliseconds: a step is %.0f %%; make loops larger", m, 0.1/m)
	}
	return rd, nil
}
