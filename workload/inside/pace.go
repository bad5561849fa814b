package inside

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// maxUnsent is the share of the due requests that may be unsent at the end. Some always are: those that were due
// just before.
const maxUnsent = 0.01

// Pace is how a load generator in the open loop kept its schedule.
type Pace struct {
	Due, Unsent int64   // requests of the measured time, and those of them that were not sent by its end
	Busy        float64 // share of its threads' time in which they ran or waited for a processor
	Full        float64 // Busy from which on the generator is what is slow
	Waits       int64   // how often it slept until a request was due
	Wake        float64 // 99th percentile of how late it then woke up, seconds
	Latency     float64 // 99th percentile of the latencies, seconds
}

// Late describes how the generator fell behind its schedule by itself. It returns "" if it did not. A server that is slow also leaves requests
// unsent, but then the generator's threads sleep until an answer comes.
func (p Pace) Late() string {
	const advice = "give it processors of its own (cpus: apart), or ask for less; the sandbox is not what is slow"
	switch {
	case float64(p.Unsent) > maxUnsent*float64(p.Due) && p.Busy >= p.Full:
		return fmt.Sprintf("the load generator fell behind its schedule by itself: %d of %d requests were not sent by the end, and its threads ran or waited for a processor in %.0f %% of the time; %s",
			p.Unsent, p.Due, 100*p.Busy, advice)
	case 2*p.Waits >= p.Due && p.Due > 0 && 2*p.Wake >= p.Latency && p.Latency > 0:
		return fmt.Sprintf("the load generator itself makes up most of the tail: it woke up %.3g ms late, and the latency is %.3g ms (99th percentiles); %s",
			1e3*p.Wake, 1e3*p.Latency, advice)
	}
	return ""
}

// ThreadBusy is the time for which the calling thread ran or waited for a processor, since it began
// (/proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst: "1480000 320000 12", nanoseconds on a processor, nanoseconds of
// waiting, and turns). Where a kernel has no such file, it is the processor time.
func ThreadBusy() time.Duration {
	if b, err := os.ReadFile("/proc/thread-self/schedstat"); err == nil {
		if t, ok := readSchedstat(b); ok {
			return t
		}
	}
	user, system := usage(unix.RUSAGE_THREAD)
	return user + system
}

// readSchedstat returns the sum of the first two numbers.
func readSchedstat(b []byte) (time.Duration, bool) {
	const used = 2
	f := bytes.Fields(b)
	if len(f) < used {
		return 0, false
	}
	sum := int64(0)
	for _, x := range f[:used] {
		n, err := strconv.ParseInt(string(x), 10, 64)
		if err != nil || n < 0 {
			return 0, false
		}
		sum += n
	}
	return time.Duration(sum), true
}
