package fio

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"tare/record"
)

// fio's log of the rate shows whether a trial was steady. A helper thread that fio has anyway
// takes it (with log_avg_msec the requests' path does not change), and keeps it in memory until
// the end. --status-interval was rejected: it would print the whole JSON each time during the
// load.
const (
	logPrefix = "/tmp/tare"
	// script prints what the steps before the load noted, and the logs, after fio's output. Without a log the trial lacks only the series.
	script = `fio "$@" || exit
[ -f ` + preparedLog + ` ] && cat ` + preparedLog + `
for f in ` + logPrefix + `_iops.*.log; do [ -f "$f" ] && echo "log $f" && cat "$f"; done; :`
	// logPoints is how many points a log has at most, logStep the shortest interval.
	logPoints = 200
	logStep   = 50 * time.Millisecond
	maxLine   = 200
)

func interval(duration time.Duration) string {
	step := max(logStep, duration/logPoints)
	return strconv.FormatInt(step.Milliseconds(), 10)
}

// readLogs reads the jobs' logs in the order of the jobs. Each job has a file with lines of
// "time in ms, requests a second, direction, ...", which begins at the end of the job's warm-up:
// "Log File Formats" of fio(1). If a log is missing (an old fio, or one that was cut off), there
// are none.
func readLogs(logs []byte, jobs int) []logFile {
	out := make([]logFile, jobs)
	var at *logFile
	seen := 0
	for line := range bytes.Lines(logs) {
		text := strings.TrimSpace(string(line[:min(len(line), maxLine)]))
		name, is := strings.CutPrefix(text, "log ")
		switch {
		case is:
			if at = jobOf(out, name); at == nil {
				return nil
			}
			seen++
		case text != "" && at != nil:
			if !at.add(text) {
				return nil
			}
		}
	}
	if seen != jobs {
		return nil
	}
	return out
}

// jobOf is the log of a name such as /tmp/tare_iops.2.log.
func jobOf(logs []logFile, name string) *logFile {
	name = strings.TrimSuffix(name, ".log")
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
	if err != nil || n < 1 || n > len(logs) || logs[n-1].points != nil {
		return nil
	}
	return &logs[n-1]
}

// series sums the logs of a section's jobs into its first response. The jobs begin together, so
// lines of the same number belong together. bytes is the mean size of a request.
func (s section) series(files []logFile, bytes float64) (record.Series, bool) {
	n := len(files[0].points)
	for _, f := range files {
		n = min(n, len(f.points))
	}
	out := record.Series{Name: "iops" + s.suffix(), Unit: record.PerSecond, Kind: record.Gauge}
	each := 1.0
	if !s.random() { // the response is the throughput
		out.Name, out.Unit, each = "throughput"+s.suffix(), record.BytesPerSecond, bytes
	}
	out.Labels = record.MakeLabels(record.LabelResponse, out.Name)
	for i := range n {
		at, sum := time.Duration(0), 0.0
		for _, f := range files {
			at = max(at, f.points[i].at)
			sum += f.points[i].rate
		}
		// The last interval may contain the end, and the next one only late requests.
		if at <= s.duration+5*time.Millisecond {
			out.T, out.V = append(out.T, s.warmup+at), append(out.V, sum*each)
		}
	}
	return out, len(out.T) > 0
}

type logFile struct{ points []logPoint }

type logPoint struct {
	at   time.Duration
	rate float64
	way  int // direction: 0 reads, 1 writes
}

// add takes one line. In a mixed load an interval has a line for each direction,
// which become one point. It reports whether the line is valid.
func (f *logFile) add(text string) bool {
	fields := strings.Split(text, ",")
	if len(fields) < 3 {
		return false
	}
	ms, err1 := strconv.ParseInt(strings.TrimSpace(fields[0]), 10, 64)
	rate, err2 := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 64)
	way, err3 := strconv.Atoi(strings.TrimSpace(fields[2]))
	if err1 != nil || err2 != nil || err3 != nil || ms < 0 || ms > int64(1000*time.Hour/time.Millisecond) || rate < 0 || rate > maxCount {
		return false
	}
	p := logPoint{time.Duration(ms) * time.Millisecond, float64(rate), way}
	if n := len(f.points); n > 0 {
		last := &f.points[n-1]
		if p.at < last.at {
			return false
		}
		if last.way != way && p.at == last.at {
			last.rate += p.rate
			return true
		}
	}
	f.points = append(f.points, p)
	return true
}
