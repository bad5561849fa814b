package figures

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"tare/record"
	"tare/workload/output"
)

// format is the name of a benchmark tool's output.
type format string

const (
	noFormat        = "none"
	goBench         = "gobench"          // go test -bench: https://go.dev/design/14313-benchmark-format
	jmh             = "jmh"              // JMH's -rf json
	pytestBenchmark = "pytest-benchmark" // --benchmark-json
	googleBenchmark = "google-benchmark" // --benchmark_format=json
	fioJSON         = "fio-json"         // --output-format=json
)

// Formats are the levels of the parameter format, beside none.
func Formats() []string {
	return []string{goBench, jmh, pytestBenchmark, googleBenchmark, fioJSON}
}

// Entry is one benchmark of a tool's output. Values are in base units, by the tool's name for the
// metric; those of several runs are medians.
type Entry struct {
	Name    string
	Metrics map[string]float64
}

// Metrics of all formats. Others have the names that the tool gives them.
const (
	metricTime = "time"  // of an operation, in seconds
	metricRate = "rate"  // operations, or what else is counted, a second
	metricByte = "bytes" // a second
)

// time is the time of an operation.
func (e Entry) time() (float64, bool) {
	if x := e.Metrics[metricTime]; x > 0 {
		return x, true
	}
	if x := e.Metrics[metricRate]; x > 0 {
		return 1 / x, true
	}
	return 0, false
}

// unitOf is the unit of a metric, and its better direction.
func (format) unitOf(metric string) (record.Unit, record.Better) {
	switch {
	case metric == "" || metric == metricTime || strings.HasSuffix(metric, "_time"):
		return record.Second, record.Lower
	case metric == metricRate:
		return record.PerSecond, record.Higher
	case metric == metricByte:
		return record.BytesPerSecond, record.Higher
	case metric == "B/op":
		return record.Byte, record.Lower
	case metric == "allocs/op":
		return record.Count, record.Lower
	}
	return record.Count, record.Neither
}

// read returns the benchmarks of an output, in its order.
func (f format) read(text string) ([]Entry, error) {
	if f == goBench {
		return readGo(text)
	}
	doc, ok := document(text)
	if !ok {
		return nil, errors.New("there is no JSON in it")
	}
	switch f {
	case jmh:
		return readJMH(doc)
	case pytestBenchmark:
		return readPytest(doc)
	case googleBenchmark:
		return readGoogle(doc)
	case fioJSON:
		return readFio(doc)
	}
	return nil, fmt.Errorf("unknown format %q", string(f))
}

// bag collects values by benchmark and metric.
type bag struct {
	names  []string
	values map[string]map[string][]float64
}

// mostEntries bounds the benchmarks of an output.
const mostEntries = 10_000

func (b *bag) add(name, metric string, x float64) {
	if b.values == nil {
		b.values = map[string]map[string][]float64{}
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	if b.values[name] == nil {
		if len(b.names) == mostEntries {
			return
		}
		b.names = append(b.names, name)
		b.values[name] = map[string][]float64{}
	}
	b.values[name][metric] = append(b.values[name][metric], x)
}

func (b *bag) entries() []Entry {
	var out []Entry
	for _, n := range b.names {
		e := Entry{Name: n, Metrics: map[string]float64{}}
		for m, xs := range b.values[n] {
			e.Metrics[m] = output.Median(xs)
		}
		out = append(out, e)
	}
	return out
}

func readGo(text string) ([]Entry, error) {
	var b bag
	r := benchfmt.NewReader(strings.NewReader(text), "output")
	for r.Scan() {
		res, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue // a line that only looks like one, or a unit's description
		}
		base, parts := res.Name.Parts()
		name := string(base)
		for _, p := range parts {
			if !strings.HasPrefix(string(p), "-") { // GOMAXPROCS
				name += string(p)
			}
		}
		for _, v := range res.Values {
			metric := v.Unit
			switch metric {
			case "sec/op":
				metric = metricTime
			case "B/s":
				metric = metricByte
			}
			b.add(name, metric, v.Value)
		}
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("reading the benchmarks: %w", err)
	}
	return b.entries(), nil
}

// readJMH reads an array of results; a score is a time of an operation, or operations a time.
func readJMH(doc string) ([]Entry, error) {
	type metric struct {
		Score json.Number `json:"score"` // NaN is a string
		Unit  string      `json:"scoreUnit"`
	}
	var in []struct {
		Benchmark string            `json:"benchmark"`
		Params    map[string]string `json:"params"`
		Primary   metric            `json:"primaryMetric"`
	}
	if err := json.Unmarshal([]byte(doc), &in); err != nil {
		return nil, err
	}
	var b bag
	for _, r := range in {
		name := r.Benchmark
		for _, k := range slices.Sorted(maps.Keys(r.Params)) {
			name += "/" + k + "=" + r.Params[k]
		}
		x, err := r.Primary.Score.Float64()
		if err != nil {
			return nil, fmt.Errorf("the score of %.100q is %.20q, which is not a number", name, r.Primary.Score)
		}
		if per, ok := strings.CutSuffix(r.Primary.Unit, "/op"); ok {
			if u, ok := units()[per]; ok && u.unit == record.Second {
				b.add(name, metricTime, x*u.factor)
				continue
			}
		}
		if per, ok := strings.CutPrefix(r.Primary.Unit, "ops/"); ok {
			if u, ok := units()[per]; ok && u.unit == record.Second {
				b.add(name, metricRate, x/u.factor)
				continue
			}
		}
		b.add(name, "score", x)
	}
	return b.entries(), nil
}

func readPytest(doc string) ([]Entry, error) {
	var in struct {
		Benchmarks []struct {
			Name  string         `json:"fullname"`
			Short string         `json:"name"`
			Stats map[string]any `json:"stats"`
		} `json:"benchmarks"`
	}
	if err := json.Unmarshal([]byte(doc), &in); err != nil {
		return nil, err
	}
	var b bag
	for _, r := range in.Benchmarks {
		name := cmp.Or(r.Name, r.Short)
		for k, v := range r.Stats {
			x, ok := v.(float64)
			switch {
			case !ok:
			case k == "median":
				b.add(name, metricTime, x)
			case k == "ops":
				b.add(name, metricRate, x)
			case k == "min" || k == "max" || k == "mean" || k == "stddev":
				b.add(name, k+"_time", x)
			}
		}
	}
	return b.entries(), nil
}

func readGoogle(doc string) ([]Entry, error) {
	var in struct {
		Benchmarks []struct {
			Name  string   `json:"name"`
			Run   string   `json:"run_type"`
			Unit  string   `json:"time_unit"`
			Real  *float64 `json:"real_time"`
			CPU   *float64 `json:"cpu_time"`
			Items *float64 `json:"items_per_second"`
			Bytes *float64 `json:"bytes_per_second"`
			Error bool     `json:"error_occurred"`
		} `json:"benchmarks"`
	}
	if err := json.Unmarshal([]byte(doc), &in); err != nil {
		return nil, err
	}
	var b bag
	for _, r := range in.Benchmarks {
		if r.Error {
			return nil, fmt.Errorf("the benchmark %.100q has failed", r.Name)
		}
		if r.Run == "aggregate" {
			continue // of the runs that are there too
		}
		u, ok := units()[r.Unit]
		if !ok || u.unit != record.Second {
			return nil, fmt.Errorf("the time unit of %.100q is %.20q", r.Name, r.Unit)
		}
		for metric, x := range map[string]*float64{metricTime: r.Real, "cpu_time": r.CPU} {
			if x != nil {
				b.add(r.Name, metric, *x*u.factor)
			}
		}
		if r.Items != nil {
			b.add(r.Name, metricRate, *r.Items)
		}
		if r.Bytes != nil {
			b.add(r.Name, metricByte, *r.Bytes)
		}
	}
	return b.entries(), nil
}

// readFio makes a benchmark of each direction of each job that did something. Its time is that of
// an I/O at its rate, which is not its latency if several are under way.
func readFio(doc string) ([]Entry, error) {
	type direction struct {
		IOPS    float64 `json:"iops"`
		Bytes   float64 `json:"bw_bytes"`
		Latency struct {
			Mean float64 `json:"mean"`
		} `json:"lat_ns"`
	}
	var in struct {
		Jobs []struct {
			Name  string    `json:"jobname"`
			Error int       `json:"error"`
			Read  direction `json:"read"`
			Write direction `json:"write"`
			Trim  direction `json:"trim"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(doc), &in); err != nil {
		return nil, err
	}
	var b bag
	for _, j := range in.Jobs {
		if j.Error != 0 {
			return nil, fmt.Errorf("the job %.100q has failed with error %d", j.Name, j.Error)
		}
		for _, d := range []struct {
			name string
			of   direction
		}{{"read", j.Read}, {"write", j.Write}, {"trim", j.Trim}} {
			if d.of.IOPS <= 0 {
				continue
			}
			name := j.Name + "/" + d.name
			b.add(name, metricRate, d.of.IOPS)
			b.add(name, metricByte, d.of.Bytes)
			b.add(name, "latency_time", d.of.Latency.Mean*1e-9)
		}
	}
	return b.entries(), nil
}

// selector picks a metric of benchmarks: a regular expression for the whole name, and after a space
// the metric.
type selector struct {
	name   *regexp.Regexp
	metric string // "" the time of an operation
}

func parseSelector(text string) (*selector, error) {
	name, metric, _ := strings.Cut(strings.TrimSpace(text), " ")
	re, err := regexp.Compile("^(?:" + name + ")$")
	if err != nil {
		return nil, err
	}
	return &selector{re, strings.TrimSpace(metric)}, nil
}

// find returns the metric of the benchmarks with that name; of several, the geometric mean.
func (s *selector) find(entries []Entry) (float64, error) {
	var chosen []Entry
	for _, e := range entries {
		if s.name.MatchString(e.Name) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no benchmark is called %s; the output has %s", s.name, list(entries))
	}
	if s.metric == "" {
		return geomean(chosen)
	}
	var xs []float64
	for _, e := range chosen {
		x, ok := e.Metrics[s.metric]
		if !ok {
			return 0, fmt.Errorf("the benchmark %.100q has no metric %q; it has %s", e.Name, s.metric, strings.Join(slices.Sorted(maps.Keys(e.Metrics)), ", "))
		}
		xs = append(xs, x)
	}
	if len(xs) == 1 {
		return xs[0], nil
	}
	return mean(xs)
}

func list(entries []Entry) string {
	var names []string
	for _, e := range entries[:min(len(entries), 10)] {
		names = append(names, fmt.Sprintf("%.100q", e.Name))
	}
	return strings.Join(names, ", ")
}

// geomean is the geometric mean of the times of an operation: every benchmark has the same weight
// in a ratio, however long it takes.
func geomean(entries []Entry) (float64, error) {
	var xs []float64
	for _, e := range entries {
		x, ok := e.time()
		if !ok {
			return 0, fmt.Errorf("the benchmark %.100q has no time over 0; select others with figures", e.Name)
		}
		xs = append(xs, x)
	}
	return mean(xs)
}

func mean(xs []float64) (float64, error) {
	sum := 0.0
	for _, x := range xs {
		if x <= 0 {
			return 0, fmt.Errorf("the geometric mean needs values over 0, and one is %g", x)
		}
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs))), nil
}
