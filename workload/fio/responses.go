package fio

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// section is a load of one kind: the whole load without a job file, or one section of the job file.
type section struct {
	name             string // "" without a job file, and for its only section
	rw, engine       string
	jobs, fsync      int           // fsync: writes to one fsync; 0 without, and of a job file
	rate             float64       // requests a second that are due; 0: as fast as answers come, and of a job file
	warmup, duration time.Duration // duration 0: unknown, or not all sections run at the same time
}

func (s section) suffix() string {
	if s.name == "" {
		return ""
	}
	return "_" + s.name
}

func (s section) of() string {
	if s.name == "" {
		return "all jobs together"
	}
	return "all jobs of the section " + s.name
}

func (s section) random() bool { return strings.HasPrefix(s.rw, "rand") }

// sections returns the sections of the values, or nil if the job file is refused.
func sections(v param.Values) []section {
	if v.Str("jobfile") == "" {
		_, rate := paced(v)
		return []section{{rw: v.Str("rw"), engine: v.Str("engine"), jobs: v.Int("jobs"), fsync: v.Int("fsync"), rate: rate, warmup: v.Duration("warmup"), duration: v.Duration("duration")}}
	}
	j, err := readJobs(v)
	if err != nil {
		return nil // Roles refuses it; a study of an older tare can still be read
	}
	return j.sections
}

// directions returns the directions of a value of rw, in the order of the
// report.
func directions(rw string) []string {
	switch rw {
	case "write", "randwrite":
		return []string{"write"}
	case "rw", "randrw":
		return []string{"read", "write"}
	}
	return []string{"read"}
}

func (fio) Responses(v param.Values) []record.Response {
	var out []record.Response
	for _, s := range sections(v) {
		throughput := record.Response{Name: "throughput" + s.suffix(), Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte", Help: "bytes a second, " + s.of()}
		iops := record.Response{Name: "iops" + s.suffix(), Unit: record.PerSecond, Better: record.Higher, Operation: "request", Help: "requests a second, " + s.of()}
		if v.Str("jobfile") != "" {
			throughput.Operation, iops.Operation = "", "" // what else the file does is among its calls
		}
		rates, latencies := []record.Response{throughput, iops}, []record.Response(nil)
		if s.random() {
			rates = []record.Response{iops, throughput}
		}
		ds := directions(s.rw)
		for _, p := range s.parts() {
			for _, d := range ds {
				for _, q := range percentiles() {
					r := record.Response{Name: latencyName(ds, d, p.name+q.name) + s.suffix(), Unit: record.Second, Better: record.Lower, Help: q.name + " of the time of one " + d + p.help + ", from all jobs' histograms merged"}
					if p.name != latencyTotal {
						r.Better = record.Neither // a part of what is compared
					}
					latencies = append(latencies, r)
				}
			}
		}
		if s.rate > 0 { // it is given, and the tail matters: p99 comes first
			rates[0].Better, rates[1].Better = record.Neither, record.Neither
			latencies[0], latencies[1] = latencies[1], latencies[0]
			out = append(append(out, latencies...), rates...)
		} else {
			out = append(append(out, rates...), latencies...)
		}
		if s.fsync > 0 {
			out = append(out,
				record.Response{Name: fsyncLatency, Unit: record.Second, Better: record.Lower, Help: "mean time of one fsync, which is no part of the time of a write"},
				record.Response{Name: fsyncShare, Unit: record.Fraction, Better: record.Neither, Step: record.SyncStep, Help: "part of the jobs' time that they waited in fsync"})
		}
	}
	return out
}

// Responses of a load with fsync.
const (
	fsyncLatency = "fsync_latency_mean"
	fsyncShare   = "fsync_share"
)

type percentile struct {
	name     string
	quantile float64
}

func percentiles() []percentile { return []percentile{{"p50", 50}, {"p99", 99}, {"p999", 99.9}} }

// part is one of the times that fio has histograms of.
type part struct {
	name, help string
	of         func(*direction) latency
}

const latencyTotal = "latency_"

// parts are the whole time of a request and, with an engine that submits requests without waiting, the
// time to submit it and the time from then on.
func (s section) parts() []part {
	out := []part{{latencyTotal, "", func(d *direction) latency { return d.Lat }}}
	if asynchronous(s.engine) {
		out = append(out,
			part{"submission_latency_", " to hand it over (fio's slat)", func(d *direction) latency { return d.Slat }},
			part{"completion_latency_", " from then to its completion (fio's clat)", func(d *direction) latency { return d.Clat }})
	}
	return out
}

func asynchronous(engine string) bool { return engine == "libaio" || engine == "io_uring" }

// latencyName gives the directions of a mixed load separate names: a percentile over reads and
// writes together describes neither.
func latencyName(ds []string, direction, name string) string {
	if len(ds) > 1 {
		return direction + "_" + name
	}
	return name
}

func (fio) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	o, err := parse(out)
	if err != nil {
		return rd, err
	}
	all := sections(v)
	want := 0
	for _, s := range all {
		want += s.jobs
	}
	if len(o.jobs) != want {
		return rd, fmt.Errorf("fio: the output has %d jobs, but %d were requested", len(o.jobs), want)
	}
	logs := readLogs(o.logs, want)
	at := 0
	for _, s := range all {
		if err := s.read(&rd, o.jobs[at:at+s.jobs], logs, at, v); err != nil {
			return rd, err
		}
		at += s.jobs
	}
	readPrepared(&rd, o.logs)
	if inMemory(v) && v.Str("cache") == "dropped" {
		rd.Warn(record.WarnPageCache, "cache = dropped has no effect with target = %s: those files are only in memory", v.Str("target"))
	}
	return rd, nil
}

// read adds the figures of a section. at is the number of its first job in the file.
func (s section) read(rd *record.Reading, jobs []job, logs []logFile, at int, v param.Values) error {
	ds := directions(s.rw)
	var throughput, iops, bytes float64
	var sent int64
	var ran time.Duration
	var latencies []record.Sample
	labels := func(d string) []string {
		if s.name == "" {
			return []string{"direction", d}
		}
		return []string{"direction", d, "section", s.name}
	}
	for _, d := range ds {
		t, err := sum(jobs, d)
		if err != nil {
			return err
		}
		throughput += t.throughput()
		iops += t.iops()
		sent, ran = sent+t.ios, max(ran, t.runtime)
		bytes += float64(t.bytes) / float64(t.ios)
		rd.Samples = append(rd.Samples,
			record.Sample{Name: "throughput", Labels: record.MakeLabels(labels(d)...), Unit: record.BytesPerSecond, Kind: record.Value, Value: t.throughput(), Original: t.text(t.bytes, "bytes")},
			record.Sample{Name: "iops", Labels: record.MakeLabels(labels(d)...), Unit: record.PerSecond, Kind: record.Value, Value: t.iops(), Original: t.text(t.ios, "requests")})
		for _, p := range s.parts() {
			h := t.latency
			if p.name != latencyTotal {
				if h, err = merge(jobs, d, p.of); err != nil {
					return err
				}
			}
			for _, q := range percentiles() {
				latencies = append(latencies, record.NewValue(latencyName(ds, d, p.name+q.name)+s.suffix(), record.Second, float64(h.ValueAtQuantile(q.quantile))*1e-9))
			}
			if err := output.Histogram(rd, strings.TrimSuffix(p.name, "_"), h, labels(d)...); err != nil {
				return fmt.Errorf("fio: %w", err)
			}
		}
		t.warn(rd, d, latencyName(ds, d, latencyTotal+"p99")+s.suffix(), cold(v) && v.Str("jobfile") == "")
		if t.ios < fewRequests*10 {
			rd.Warn(record.BelowNoise+latencyName(ds, d, latencyTotal+"p999")+s.suffix(), "fio completed only %d requests (%s): the 99.9th percentile rests on fewer than five; make duration longer", t.ios, d)
		}
		t.memory(rd, d, v)
	}
	rd.Value("throughput"+s.suffix(), record.BytesPerSecond, throughput)
	rd.Value("iops"+s.suffix(), record.PerSecond, iops)
	if s.name == "" { // of several sections, each has a part of the measured window
		rd.Value(record.LoadTime, record.Second, ran.Seconds())
	}
	rd.Samples = append(rd.Samples, latencies...)
	if s.rate > 0 {
		offered(rd, s.rate, sent, ran, s.jobs*v.Int("iodepth"))
	}
	if s.fsync > 0 {
		mean, share, err := fsyncs(jobs)
		if err != nil {
			return err
		}
		if share > 0 {
			rd.Value(fsyncLatency, record.Second, mean)
			rd.Value(fsyncShare, record.Fraction, share)
		} else {
			rd.Warn("no-fsync", "fio did not report an fsync: it made fewer than %d writes in the measured time, or it is older than 3.13; make duration longer", s.fsync)
		}
	}
	if len(logs) == 0 || s.duration == 0 {
		return nil
	}
	if series, ok := s.series(logs[at:at+s.jobs], bytes/float64(len(ds))); ok {
		rd.Series = append(rd.Series, series)
	}
	return nil
}
