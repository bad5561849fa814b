package pbench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/imports"
	"tare/record"
)

// result is a result.json, of a sample or of an iteration.
type result struct {
	Parameters map[string][]map[string]any `json:"parameters"`
	Throughput map[string][]stream         `json:"throughput"`
	Latency    map[string][]stream         `json:"latency"`
	Resource   map[string][]stream         `json:"resource"`
}

// stream is a metric of one client and server, or of all.
type stream struct {
	Client     string   `json:"client_hostname"`
	Server     string   `json:"server_hostname"`
	Port       string   `json:"server_port"`
	Hostname   string   `json:"hostname"`
	Role       string   `json:"role"`
	Value      *float64 `json:"value"` // of a sample
	Mean       *float64 `json:"mean"`  // of an iteration
	Timeseries []point  `json:"timeseries"`
}

type point struct {
	Date  number64 `json:"date"` // milliseconds
	Value float64  `json:"value"`
}

// number64 is a number that Pbench sometimes writes as a text.
type number64 float64

// UnmarshalJSON takes a number or a text.
func (n *number64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("cannot read the time %.40q", b)
	}
	*n = number64(v)
	return nil
}

var _ json.Unmarshaler = (*number64)(nil)

// metric is one figure of a result, as a response.
type metric struct {
	tool    string // Pbench's name
	name    string
	unit    record.Unit
	scale   float64
	latency bool
	streams []stream
}

// units lists Pbench's metrics that are read, with the factor to the base unit.
func units() map[string]metric {
	return map[string]metric{
		"Gb_sec":    {name: "throughput", unit: record.BytesPerSecond, scale: 1e9 / 8},
		"MB_sec":    {name: "throughput", unit: record.BytesPerSecond, scale: 1e6},
		"trans_sec": {name: "transactions", unit: record.PerSecond, scale: 1},
		"iops_sec":  {name: "iops", unit: record.PerSecond, scale: 1},
		"usec":      {name: "latency", unit: record.Second, scale: 1e-6},
		// Nanoseconds in the logs of fio 3; fio 2 has microseconds.
		"lat":  {name: "latency", unit: record.Second, scale: 1e-9},
		"clat": {name: "completion_latency", unit: record.Second, scale: 1e-9},
		"slat": {name: "submission_latency", unit: record.Second, scale: 1e-9},
	}
}

// metrics returns the known metrics, in order of names.
func (r *result) metrics() []metric {
	var out []metric
	known := units()
	for i, group := range []map[string][]stream{r.Throughput, r.Latency} {
		for _, n := range slices.Sorted(maps.Keys(group)) {
			if m, ok := known[n]; ok {
				m.tool, m.streams, m.latency = n, group[n], i == 1
				out = append(out, m)
			}
		}
	}
	return out
}

// unread returns the names of unknown metrics.
func (r *result) unread() []string {
	var out []string
	known := units()
	for _, group := range []map[string][]stream{r.Throughput, r.Latency} {
		for n := range group {
			if _, ok := known[n]; !ok {
				out = append(out, imports.Clean(n))
			}
		}
	}
	slices.Sort(out)
	return out
}

// aggregate returns the stream of all clients, or the only one.
func (m metric) aggregate() *stream {
	for i := range m.streams {
		if m.streams[i].all() {
			return &m.streams[i]
		}
	}
	if len(m.streams) == 1 {
		return &m.streams[0]
	}
	return nil
}

// single returns the streams of single clients.
func (m metric) single() []stream {
	out := slices.DeleteFunc(slices.Clone(m.streams), func(s stream) bool { return s.all() })
	if len(out) == 0 {
		return m.streams
	}
	return out
}

func (s *stream) all() bool { return s.Role == "aggregate" || s.Client == "all" }

func (s *stream) key() string { return s.Client + " " + s.Server + " " + s.Port }

// figure returns the mean of the series, or the value if there is no series.
func (s *stream) figure() (float64, bool) {
	if len(s.Timeseries) > 0 {
		sum := 0.0
		for _, p := range s.Timeseries {
			sum += p.Value
		}
		return sum / float64(len(s.Timeseries)), true
	}
	if s.Value != nil {
		return *s.Value, true
	}
	return 0, false
}

// span finds when a sample began and ended.
func (r *result) span(t *imports.Trial) {
	first, last := math.Inf(1), 0.0
	for _, m := range r.metrics() {
		for _, s := range m.streams {
			for _, p := range s.Timeseries {
				first, last = min(first, float64(p.Date)), max(last, float64(p.Date))
			}
		}
	}
	if last > first {
		t.Start = moment(first)
		t.Duration = offset(last, first)
	}
}

// offset returns the time from one moment to a later one, both in milliseconds; 0 if it is
// invalid.
func offset(ms, from float64) time.Duration {
	d := ms - from
	if !(d > 0) || d > 1e11 {
		return 0
	}
	return time.Duration(math.Round(d * 1e6))
}

// samples computes the figures from the streams. A latency is weighted by the stream's
// throughput, so that each operation counts once.
func (r *result) samples(t *imports.Trial) {
	weights := map[string]float64{}
	for _, m := range r.metrics() {
		if m.latency {
			continue
		}
		for _, s := range m.single() {
			if v, ok := s.figure(); ok {
				weights[s.key()] = v
			}
		}
	}
	for _, m := range r.metrics() {
		sum, weight, plain, n := 0.0, 0.0, 0.0, 0.0
		for _, s := range m.single() {
			v, ok := s.figure()
			if !ok {
				continue
			}
			w := weights[s.key()]
			sum, weight, plain, n = sum+w*v, weight+w, plain+v, n+1
			t.Series = append(t.Series, m.series(s)...)
		}
		v := plain
		switch {
		case n == 0:
			continue
		case m.latency && weight > 0:
			v = sum / weight
		case m.latency:
			v = plain / n
		}
		put(t, record.Sample{Name: m.name, Unit: m.unit, Kind: record.Value, Value: v * m.scale, Original: strconv.FormatFloat(v, 'g', -1, 64) + " " + m.tool})
	}
	for _, s := range r.Resource["cpu_busy"] {
		if v, ok := s.figure(); ok {
			put(t, record.Sample{Name: "cpu_busy", Labels: record.MakeLabels("host", imports.Clean(s.Hostname), "role", imports.Clean(s.Role)), Unit: record.Cores, Kind: record.Value, Value: v})
		}
	}
	if left := r.unread(); len(left) > 0 {
		t.LeftOut("metrics of an unknown unit are left out: %s", strings.Join(left, ", "))
	}
}

// put adds a figure, or replaces the one of its name.
func put(t *imports.Trial, s record.Sample) {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return
	}
	for i := range t.Samples {
		if t.Samples[i].Name == s.Name && t.Samples[i].Labels == s.Labels {
			t.Samples[i] = s
			return
		}
	}
	t.Samples = append(t.Samples, s)
}

// series is a stream over time.
func (m metric) series(s stream) []record.Series {
	if len(s.Timeseries) == 0 {
		return nil
	}
	points := slices.Clone(s.Timeseries)
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.Date, b.Date) })
	out := record.Series{Name: m.name, Unit: m.unit, Kind: record.Gauge,
		Labels: record.MakeLabels("client", imports.Clean(s.Client), "server", imports.Clean(s.Server), "port", imports.Clean(s.Port))}
	for _, p := range points {
		out.T = append(out.T, offset(float64(p.Date), float64(points[0].Date)))
		out.V = append(out.V, p.Value*m.scale)
	}
	return []record.Series{out}
}
