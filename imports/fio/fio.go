// Package fio reads fio's JSON output, with all its jobs, as other tools keep it
// (https://fio.readthedocs.io/en/latest/fio_doc.html#json-output).
//
// The data path: 1. Jobs are decoded, of a local run or of the clients of a remote one;
// 2. Merge adds them up: bytes and I/Os in the time of the longest job, a mean latency
// weighted by I/Os, and percentiles of the summed histogram if the output has one (json+).
package fio

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"tare/record"
)

// Ops returns fio's directions, in the order of figures.
func Ops() []string { return []string{"read", "write", "trim"} }

// Latency is one of fio's latency objects, in nanoseconds.
type Latency struct {
	Max  float64            `json:"max"`
	Mean float64            `json:"mean"`
	Bins map[string]float64 `json:"bins"`
}

// Direction is what a job did one way.
type Direction struct {
	Bytes   float64 `json:"io_bytes"`
	KBytes  float64 `json:"io_kbytes"` // KiB, despite its name
	IOs     float64 `json:"total_ios"`
	Runtime float64 `json:"runtime"` // milliseconds
	Lat     Latency `json:"lat_ns"`
	CLat    Latency `json:"clat_ns"`
}

// Job is one of jobs or client_stats.
type Job struct {
	Name  string    `json:"jobname"`
	Read  Direction `json:"read"`
	Write Direction `json:"write"`
	Trim  Direction `json:"trim"`
}

func (j *Job) direction(op string) *Direction {
	switch op {
	case "read":
		return &j.Read
	case "write":
		return &j.Write
	}
	return &j.Trim
}

// Output is what fio printed.
type Output struct {
	Version string `json:"fio version"`
	Jobs    []Job  `json:"jobs"`
	Clients []Job  `json:"client_stats"`
}

// All returns the jobs, without fio's sum over its clients, which would count twice.
func (o *Output) All() []Job {
	return append(slices.Clone(o.Jobs), slices.DeleteFunc(slices.Clone(o.Clients), func(j Job) bool { return j.Name == "All clients" })...)
}

// Parse reads one output.
func Parse(text []byte) (Output, error) {
	var o Output
	err := json.Unmarshal(text, &o)
	return o, err
}

// Figures are the sums of the jobs in one direction, in base units.
type Figures struct {
	Rate     float64   // bytes per second
	IOPS     float64   // per second
	Mean     float64   // seconds, of the whole latency, weighted by I/Os
	Max      float64   // seconds
	P50, P99 float64   // seconds, of the completion latency; NaN without a histogram
	IOs      float64   // count
	Means    []float64 // of the jobs, seconds: tools may sum or average these
}

// Merge adds jobs that ran at once; false if no job did any I/O.
func Merge(jobs []Job, op string) (Figures, bool) {
	var f Figures
	var bytes, weighted, longest float64
	bins, binned := map[float64]float64{}, 0.0
	for i := range jobs {
		d := jobs[i].direction(op)
		if !(d.IOs > 0) || !(d.Runtime > 0) {
			continue
		}
		bytes += cmp.Or(d.Bytes, 1024*d.KBytes)
		f.IOs += d.IOs
		longest = max(longest, d.Runtime/1e3)
		weighted += d.Lat.Mean * 1e-9 * d.IOs
		f.Max = max(f.Max, d.Lat.Max*1e-9)
		f.Means = append(f.Means, d.Lat.Mean*1e-9)
		for at, n := range d.CLat.Bins {
			if v, err := strconv.ParseFloat(at, 64); err == nil && n > 0 && v >= 0 {
				bins[v] += n
				binned += n
			}
		}
	}
	if f.IOs == 0 || longest == 0 {
		return f, false
	}
	f.Rate, f.IOPS, f.Mean = bytes/longest, f.IOs/longest, weighted/f.IOs
	f.P50, f.P99 = math.NaN(), math.NaN()
	if binned > 0 && math.Abs(binned-f.IOs) <= 0.01*f.IOs { // only if all jobs have a histogram: some of them would give other percentiles
		f.P50, f.P99 = quantile(bins, binned, 0.5), quantile(bins, binned, 0.99)
	}
	return f, finite(f.Rate, f.IOPS, f.Mean, f.Max)
}

func quantile(bins map[float64]float64, total, q float64) float64 {
	sum, at := 0.0, 0.0
	for _, at = range slices.Sorted(maps.Keys(bins)) {
		if sum += bins[at]; sum >= q*total {
			break
		}
	}
	return at * 1e-9
}

func finite(vs ...float64) bool {
	return !slices.ContainsFunc(vs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// Samples returns the figures as samples. Each direction has its own names.
func (f Figures) Samples(op string) []record.Sample {
	out := []record.Sample{
		record.NewValue(op+"_iops", record.PerSecond, f.IOPS),
		record.NewValue(op+"_throughput", record.BytesPerSecond, f.Rate),
		record.NewValue(op+"_latency", record.Second, f.Mean),
		record.NewValue(op+"_latency_max", record.Second, f.Max),
	}
	if finite(f.P50, f.P99) {
		out = append(out, record.NewValue(op+"_clat_p50", record.Second, f.P50), record.NewValue(op+"_clat_p99", record.Second, f.P99))
	}
	return out
}
