package fio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

const (
	// maxLatency bounds the histograms, in nanoseconds; fio's bins end far below an hour.
	maxLatency = int64(time.Hour)
	// maxCount keeps sums of counts exact and far below an overflow.
	maxCount = int64(1) << 53
	maxBytes = int64(1) << 56
	// fewRequests: below it fewer than five requests are beyond the 99th percentile.
	fewRequests = 500
	// shortRun is how long a pass over cold files must take for an exact rate: fio counts
	// milliseconds.
	shortRun = 50 * time.Millisecond
	// noDisk is a latency that no disk reaches: the fastest disks answer in some 10 us,
	// including the path through the kernel.
	noDisk = 5 * time.Microsecond
	// unevenJobs is how much longer one job may run than another; beyond it the rate of their
	// sum has little meaning.
	unevenJobs = 1.1
)

// parsed is fio's whole output.
type parsed struct {
	jobs  []job
	notes string // what fio printed before the JSON: notes and errors
	logs  []byte // what follows the JSON
}

// job is one entry of "jobs". Each fio process is one, since group_reporting is
// off.
type job struct {
	Name  string     `json:"jobname"`
	Error int        `json:"error"` // an errno
	Read  *direction `json:"read"`
	Write *direction `json:"write"`
	Sync  syncs      `json:"sync"`
}

// syncs are the fsyncs of one job. Their mean is in nanoseconds.
type syncs struct {
	Lat struct {
		N    int64   `json:"N"`
		Mean float64 `json:"mean"`
	} `json:"lat_ns"`
}

// direction is what one job did in one direction. Runtime is in milliseconds.
type direction struct {
	Bytes   int64   `json:"io_bytes"`
	IOs     int64   `json:"total_ios"`
	Runtime int64   `json:"runtime"`
	Lat     latency `json:"lat_ns"`
	Slat    latency `json:"slat_ns"`
	Clat    latency `json:"clat_ns"`
}

// latency holds the bins of json+: the middle of a bin in nanoseconds, and how
// many requests fell into it.
type latency struct {
	Bins map[string]int64 `json:"bins"`
}

// parse finds the JSON in fio's output, which notes and errors may precede, and
// checks every job.
func parse(in io.Reader) (parsed, error) {
	var p parsed
	b, err := output.Read(in)
	if err != nil {
		return p, fmt.Errorf("fio: %w", err)
	}
	at := 0
	if b[0] != '{' {
		if at = bytes.Index(b, []byte("\n{")) + 1; at == 0 {
			return p, fmt.Errorf("fio: the output holds no JSON%s", says(string(b)))
		}
	}
	p.notes = string(b[:at])
	var doc struct {
		Jobs []job `json:"jobs"`
	}
	// A decoder, since more follows the JSON.
	dec := json.NewDecoder(bytes.NewReader(b[at:]))
	if err := dec.Decode(&doc); err != nil {
		return p, fmt.Errorf("fio: the JSON is broken: %w%s", err, says(p.notes))
	}
	if len(doc.Jobs) == 0 {
		return p, fmt.Errorf("fio: the JSON has no jobs%s", says(p.notes))
	}
	for i, j := range doc.Jobs {
		if j.Error != 0 {
			return p, fmt.Errorf("fio: job %d (%s) failed with error %d: %w%s", i+1, j.Name, j.Error, syscall.Errno(uintptr(max(j.Error, 0))), says(p.notes))
		}
	}
	p.jobs, p.logs = doc.Jobs, b[at+int(dec.InputOffset()):]
	return p, nil
}

// says quotes the start of fio's output before its JSON.
func says(notes string) string {
	const most = 500
	notes = strings.ToValidUTF8(strings.TrimSpace(notes), "?")
	if notes == "" {
		return ""
	}
	if len(notes) > most {
		notes = strings.ToValidUTF8(notes[:most], "") + "..."
	}
	return "; it says: " + notes
}

// total is the sum over the jobs in one direction.
type total struct {
	bytes, ios       int64
	runtime, fastest time.Duration // of the job that ran longest, and shortest
	jobs             int
	clat             bool // lat had no bins: the latencies lack the submission
	latency          *hdrhistogram.Histogram
}

// throughput and iops divide by the longest job's time: jobs start together, so that is the
// wall time of the sum. The sum of the jobs' rates would count time in which only some of them
// ran as if all had.
func (t total) throughput() float64 { return float64(t.bytes) / t.runtime.Seconds() }
func (t total) iops() float64       { return float64(t.ios) / t.runtime.Seconds() }

func (t total) text(n int64, what string) string {
	return fmt.Sprintf("%d %s in %d ms by %d jobs", n, what, t.runtime.Milliseconds(), t.jobs)
}

// sum adds up the jobs in one direction.
func sum(jobs []job, name string) (total, error) {
	t := total{fastest: math.MaxInt64, jobs: len(jobs), latency: hdrhistogram.New(1, maxLatency, 3)}
	var count int64
	for i, j := range jobs {
		d := j.Read
		if name == "write" {
			d = j.Write
		}
		bad := func(format string, args ...any) (total, error) {
			return t, fmt.Errorf("fio: job %d (%s), %s: %s", i+1, j.Name, name, fmt.Sprintf(format, args...))
		}
		switch {
		case d == nil:
			return bad("nothing is reported")
		case d.IOs == 0:
			return bad("no request was completed; make duration longer, and with cache: dropped make size larger than what warmup reads")
		case d.Runtime == 0:
			return bad("it has requests and no run time: its process was killed; see whether memory was short, or who ended it")
		case d.Bytes < 0 || d.IOs < 0 || d.Bytes > maxBytes || d.IOs > maxCount:
			return bad("io_bytes %d and total_ios %d are out of range", d.Bytes, d.IOs)
		case d.Runtime <= 0 || d.Runtime > int64(1000*time.Hour/time.Millisecond):
			return bad("a runtime of %d ms is out of range", d.Runtime)
		}
		t.bytes += d.Bytes
		t.ios += d.IOs
		runtime := time.Duration(d.Runtime) * time.Millisecond
		t.runtime, t.fastest = max(t.runtime, runtime), min(t.fastest, runtime)
		bins := d.Lat
		if len(bins.Bins) == 0 {
			bins, t.clat = d.Clat, true
		}
		if len(bins.Bins) == 0 {
			return bad("there are no latency bins; --output-format=json+ and fio 3.0 or later are needed")
		}
		n, err := bins.add(t.latency)
		if count += n; err == nil && count > maxCount {
			err = errors.New("there are too many requests")
		}
		if err != nil {
			return bad("%v", err)
		}
	}
	if count == 0 {
		return t, errors.New("fio: all latency bins of " + name + " are empty")
	}
	return t, nil
}

// fsyncs returns the mean time of an fsync, in seconds, and the part of the jobs' time that they
// took. They are no part of lat, which ends when the page cache has the data.
func fsyncs(jobs []job) (mean, share float64, err error) {
	var n, spent, ran float64
	for i, j := range jobs {
		if j.Sync.Lat.N < 0 || j.Sync.Lat.N > maxCount || !(j.Sync.Lat.Mean >= 0 && j.Sync.Lat.Mean <= float64(maxLatency)) {
			return 0, 0, fmt.Errorf("fio: job %d (%s): %d fsyncs of %g ns are out of range", i+1, j.Name, j.Sync.Lat.N, j.Sync.Lat.Mean)
		}
		n += float64(j.Sync.Lat.N)
		spent += float64(j.Sync.Lat.N) * j.Sync.Lat.Mean * 1e-9
		if j.Write != nil {
			ran += float64(j.Write.Runtime) / 1000
		}
	}
	if n == 0 || !(ran > 0) {
		return 0, 0, nil
	}
	return spent / n, min(1, spent/ran), nil
}

// add puts the bins into a histogram, and returns how many requests they have.
func (l latency) add(h *hdrhistogram.Histogram) (count int64, err error) {
	for text, n := range l.Bins {
		ns, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ns < 0 || ns > maxLatency || n < 0 || n > maxCount || count+n > maxCount {
			return count, fmt.Errorf("the latency bin %q with %d requests is out of range", text, n)
		}
		count += n
		if n == 0 {
			continue
		}
		if err := h.RecordValues(max(ns, 1), n); err != nil {
			return count, fmt.Errorf("the latency bin %q: %w", text, err)
		}
	}
	return count, nil
}

// merge adds up the jobs' histograms of a part of the latency.
func merge(jobs []job, name string, of func(*direction) latency) (*hdrhistogram.Histogram, error) {
	h := hdrhistogram.New(1, maxLatency, 3)
	for i, j := range jobs {
		d := j.Read
		if name == "write" {
			d = j.Write
		}
		if n, err := of(d).add(h); err != nil || n == 0 {
			return h, fmt.Errorf("fio: job %d (%s), %s: the histogram of a part of the latency is missing or broken; fio 3.16 or later is needed (%w)", i+1, j.Name, name, cmp.Or(err, errNoBins))
		}
	}
	return h, nil
}

var errNoBins = errors.New("it has no bins")

// warn adds the doubts. p99 is the name of the response, and once means that the load ends with its files.
func (t total) warn(rd *record.Reading, name, p99 string, once bool) {
	if t.ios < fewRequests {
		rd.Warn(record.FewRequests+p99, "fio completed only %d requests (%s): the 99th percentile rests on fewer than five; make duration longer", t.ios, name)
	}
	if float64(t.runtime) > unevenJobs*float64(t.fastest) {
		rd.Warn("uneven-jobs", "fio's jobs ran from %s to %s (%s): they did not work all at the same time", t.fastest, t.runtime, name)
	}
	if once && t.runtime < shortRun {
		rd.Warn("short-run", "the files were read once, in %s (%s); make size larger", t.runtime, name)
	}
	if t.clat {
		rd.Warn("completion-latency", "fio printed no histogram of the whole latency; the time to hand requests over is missing from the percentiles (%s)", name)
	}
}

// memory warns if requests should have gone to the disk but a large part of them cannot have.
// It judges the tenth percentile, because other requests of a sandbox may be slow for other
// reasons. It misses a sandbox in which all requests are slow. With dropped it judges only
// random reads of whole pages, because the kernel reads ahead for others. It judges writes only
// with O_DIRECT, because otherwise they go to the cache.
func (t total) memory(rd *record.Reading, name string, v param.Values) {
	cache, p10 := v.Str("cache"), time.Duration(t.latency.ValueAtQuantile(10))
	why := "O_DIRECT had no effect"
	switch {
	case p10 >= noDisk || inMemory(v) || cache == "warm" || cache == "dropped" && v.Str("jobfile") != "":
		return
	case cache == "dropped" && (name == "write" || !strings.HasPrefix(v.Str("rw"), "rand") || v.Size("bs") < 4096):
		return
	case cache == "dropped":
		why = "the files were to be dropped from the page cache before the load; either the host did not allow it, or the sandbox has a cache of its own"
	}
	rd.Warn(record.WarnPageCache, "the sandbox answered from memory: %s (a tenth of the %ss took %s or less, which no disk does); do not compare it with one that went to the disk, use cache: warm", why, name, p10)
}
