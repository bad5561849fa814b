package netload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// Parse reads the report of one end. The client's has the responses. Both have, labelled with
// their end, their counts and the processor time that they used.
func (Workload) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	r, err := readReport(out)
	if err != nil {
		return rd, fmt.Errorf("the report of the net %s: %w", role, err)
	}
	if r.Endpoint != role {
		return rd, fmt.Errorf("the report of the net %s says that it is the %q", role, r.Endpoint)
	}
	if err := r.sane(); err != nil {
		return rd, fmt.Errorf("the report of the net %s: %w", role, err)
	}
	r.counts(&rd)
	rd.Warnings = append(rd.Warnings, r.Warnings...)
	if role == "server" {
		return rd, nil
	}
	if v.Str("profile") != "" {
		if s, ok := r.series(); ok {
			rd.Series = append(rd.Series, profileSeries(v, s))
		}
		return rd, r.profileReading(v, &rd)
	}
	if r.Config.Mode != v.Str("mode") {
		return rd, fmt.Errorf("the report of the net client is for mode %q, but the parameter mode is %q", r.Config.Mode, v.Str("mode"))
	}
	if s, ok := r.series(); ok {
		rd.Series = append(rd.Series, s)
	}
	if r.Config.Mode == "stream" {
		got := r // the receiving end knows what arrived
		if !r.Config.download() {
			if got = r.Peer; got == nil {
				return rd, errors.New("the report of the net client lacks the server's report inside")
			}
		}
		rd.Value("throughput", record.BytesPerSecond, float64(got.Bytes)/got.Window)
		return rd, nil
	}
	return rd, r.latencies(&rd)
}

// readReport finds the line of JSON. The server prints a ready line before it.
func readReport(out io.Reader) (*report, error) {
	b, err := output.Read(out)
	if err != nil {
		return nil, err
	}
	if i := bytes.Index(b, []byte("{")); i > 0 && b[i-1] == '\n' {
		b = b[i:]
	}
	if bytes.HasPrefix(b, []byte(ready)) && bytes.Count(b, []byte("\n")) <= 1 {
		return nil, errors.New("it listened but printed no report: it was killed, or no client finished; see its standard error")
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("cannot read its JSON; it may be cut off: %w", err)
	}
	if r.Format != 1 {
		return nil, fmt.Errorf("its format is %d, this tare reads 1", r.Format)
	}
	return &r, nil
}

// sane refuses impossible reports.
func (r *report) sane() error {
	for p := r; p != nil; p = p.Peer {
		for _, f := range []struct {
			name string
			v    float64
		}{
			{"window_s", p.Window}, {"bytes", float64(p.Bytes)}, {"operations", float64(p.Operations)},
			{"cpu_user_s", p.User}, {"cpu_system_s", p.System}, {"lost", float64(p.Lost)}, {"no_room", float64(p.NoRoom)},
			{"stale", float64(p.Stale)}, {"due", float64(p.Due)}, {"unsent", float64(p.Unsent)}, {"wake_delay_mean_s", p.WakeDelay},
			{"wake_delay_p99_s", p.WakeDelayP99},
		} {
			if f.v < 0 {
				return fmt.Errorf("%s is negative: %g", f.name, f.v)
			}
		}
		if p.Window < 1e-9 || p.Window > 1e6 {
			return fmt.Errorf("the measured time window_s = %g is out of range", p.Window)
		}
	}
	for _, n := range r.Warnings {
		if n.Code == "" || n.Text == "" || strings.Contains(n.Code, " ") {
			return fmt.Errorf("a warning without a code or text: %+v", n)
		}
	}
	return nil
}

// counts adds the samples that both ends have.
func (r *report) counts(rd *record.Reading) {
	add := func(name string, u record.Unit, v float64) { rd.Value(name, u, v, "end", r.Endpoint) }
	add("window", record.Second, r.Window)
	add("bytes", record.Byte, float64(r.Bytes))
	add("operations", record.Count, float64(r.Operations))
	add("throughput", record.BytesPerSecond, float64(r.Bytes)/r.Window)
	add("cpu_user", record.Cores, r.User/r.Window)
	add("cpu_system", record.Cores, r.System/r.Window)
	if r.Endpoint == "client" && r.Config.Mode != "stream" || r.Config.Mode == modeProfile {
		add("lost", record.Count, float64(r.Lost))
	}
	if r.Config.Neighbours > 0 && r.Endpoint == "client" {
		add("no_room", record.Count, float64(r.NoRoom))
	}
	if r.Endpoint == "client" && r.Config.Mode != "stream" {
		add(record.SampleUnsent, record.Count, float64(r.Unsent))
	}
	if r.Due > 0 {
		add(record.SampleDue, record.Count, float64(r.Due))
	}
	if r.Endpoint == "client" && r.Config.Mode == "rr" {
		add("wake_delay_mean", record.Second, r.WakeDelay)
		add("wake_delay_p99", record.Second, r.WakeDelayP99)
	}
}

// series returns the progress in intervals; offsets are from the first message. It leaves out
// points after the measured time, when the session was ending.
func (r *report) series() (record.Series, bool) {
	end := math.Inf(1)
	if r.Config.Count == 0 && r.Config.Mode != modeProfile {
		end = r.Config.Warmup + r.Config.Duration
	}
	if r.Config.Mode == "stream" {
		return r.Series.Series("throughput", record.BytesPerSecond, end, "end", r.Endpoint)
	}
	return r.Series.Series("rate", record.PerSecond, end, "end", r.Endpoint)
}

// latencies reads the histogram. All percentiles come from it, so they always agree with the
// stored histogram.
func (r *report) latencies(rd *record.Reading) error {
	h, err := percentiles(rd, "latency", r.Latency)
	if err != nil {
		return fmt.Errorf("the latency histogram of the net client: %w", err)
	}
	rd.Value("latency_mean", record.Second, math.Max(0, h.Mean())*1e-9)
	rd.Value("rate", record.PerSecond, float64(r.Operations)/r.Window)
	rd.Histograms = append(rd.Histograms, record.Histogram{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: []byte(r.Latency)})
	return nil
}

// percentiles adds those of an encoded histogram, which it returns.
func percentiles(rd *record.Reading, name, encoded string, labels ...string) (*hdrhistogram.Histogram, error) {
	h, err := output.Decode(encoded, 10*histogramMax)
	if err != nil {
		return nil, err
	}
	rd.Value(name+"_p50", record.Second, float64(h.ValueAtPercentile(50))*1e-9, labels...)
	rd.Value(name+"_p99", record.Second, float64(h.ValueAtPercentile(99))*1e-9, labels...)
	rd.Value(name+"_p999", record.Second, float64(h.ValueAtPercentile(99.9))*1e-9, labels...)
	return h, nil
}
