package fio

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
)

// fio's log of the rate shows whether a trial was steady. A helper thread that fio has anyway
// takes it (with log_avg_msec the requests' path does not change), and keeps it in memory until
// the end. --status-interval was rejected: it would print the whole JSON each time during the
// load.
const (
	logPrefix = "/tmp/tare"
	// script prints the logs after fio's output. Without a log the trial lacks only the series.
	script = `fio "$@" || exit
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

// series sums the jobs' logs into the first response. Each job has a file with lines of "time
// in ms, requests a second, direction, ...", which begins at the end of the job's warm-up: "Log
// File Formats" of fio(1). The jobs begin together, so lines of the same number belong
// together. If a log is missing (an old fio, or one that was cut off), there is no series.
func series(logs []byte, v param.Values) (record.Series, bool) {
	ds := directions(v.Str("rw"))
	var files []logFile
	for line := range bytes.Lines(logs) {
		text := strings.TrimSpace(string(line[:min(len(line), maxLine)]))
		switch {
		case strings.HasPrefix(text, "log "):
			files = append(files, logFile{})
		case text != "" && len(files) > 0:
			if !files[len(files)-1].add(text, len(ds) > 1) {
				return record.Series{}, false
			}
		}
	}
	if len(files) != v.Int("jobs") {
		return record.Series{}, false
	}
	n := len(files[0].points)
	for _, f := range files {
		n = min(n, len(f.points))
	}
	out := record.Series{Name: "iops", Unit: record.PerSecond, Kind: record.Gauge}
	each := 1.0
	if !strings.HasPrefix(v.Str("rw"), "rand") { // the response is the throughput
		out.Name, out.Unit, each = "throughput", record.BytesPerSecond, float64(v.Size("bs"))
	}
	out.Labels = record.MakeLabels(record.LabelResponse, out.Name)
	warm, end := v.Duration("warmup"), v.Duration("duration")
	for i := range n {
		at, sum := time.Duration(0), 0.0
		for _, f := range files {
			at = max(at, f.points[i].at)
			sum += f.points[i].rate
		}
		// The last interval may contain the end, and the next one only late requests.
		if at <= end+5*time.Millisecond {
			out.T, out.V = append(out.T, warm+at), append(out.V, sum*each)
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
func (f *logFile) add(text string, mixed bool) bool {
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
		if mixed && last.way != way && p.at == last.at {
			last.rate += p.rate
			return true
		}
	}
	f.points = append(f.points, p)
	return true
}
