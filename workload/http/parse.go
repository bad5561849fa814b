package httpload

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// Parse reads the client's report. The servers' output is not parsed.
func (w Workload) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	if role == "server" {
		return rd, nil
	}
	r, err := output.JSON[report](out)
	if err != nil {
		return rd, fmt.Errorf("the report of the http client: %w", err)
	}
	return r.reading(v.Str("load"))
}

// reading makes samples of the report of such a load.
func (r *report) reading(load string) (record.Reading, error) {
	var rd record.Reading
	if err := r.sane(load); err != nil {
		return rd, fmt.Errorf("the report of the http client: %w", err)
	}
	h, err := r.histogram()
	if err != nil {
		return rd, fmt.Errorf("the latencies of the http client: %w", err)
	}
	for _, n := range r.Warnings {
		rd.Warnings = append(rd.Warnings, record.Warning(n))
	}
	rd.Value("rate", record.PerSecond, float64(r.Requests)/r.Window)
	rd.Value("latency_p50", record.Second, float64(h.ValueAtPercentile(50))*1e-9)
	rd.Value("latency_p99", record.Second, float64(h.ValueAtPercentile(99))*1e-9)
	rd.Value("latency_mean", record.Second, math.Max(0, h.Mean())*1e-9)
	rd.Value("throughput", record.BytesPerSecond, float64(r.Bytes)/r.Window)
	if r.TLS != nil {
		rd.Value(handshake().Name, record.Second, r.TLS.P50)
	}
	r.counts(&rd)
	// From the first request on, which is nearly the client's start.
	if s, ok := r.Series.Series("rate", record.PerSecond, math.Inf(1), "end", "client"); ok {
		rd.Series = append(rd.Series, s)
	}
	return rd, output.Histogram(&rd, "latency", h)
}

// sane refuses impossible reports.
func (r *report) sane(load string) error {
	switch {
	case r.Format != 1:
		return fmt.Errorf("its format is %d, this tare reads 1", r.Format)
	case r.Load != load:
		return fmt.Errorf("its load is %q, but %q was requested", r.Load, load)
	case !(r.Window > 1e-6 && r.Window < 1e6):
		return fmt.Errorf("the measured time window_s = %g is out of range", r.Window)
	case r.Requests <= 0 || r.Connections <= 0 || r.Requests > math.MaxInt32*1000:
		return fmt.Errorf("%d requests over %d connections are out of range", r.Requests, r.Connections)
	case r.Bytes < 0 || r.Due < 0 || r.Unsent < 0:
		return fmt.Errorf("%d bytes and %d unsent of %d due requests are out of range", r.Bytes, r.Unsent, r.Due)
	}
	for _, x := range []float64{r.User, r.System, r.Rate, r.SendDelay.Mean, r.SendDelay.P99, r.WakeDelay.Mean, r.WakeDelay.P99} {
		if x < 0 || x > 1e9 {
			return fmt.Errorf("the time or rate %g is out of range", x)
		}
	}
	for _, n := range r.Warnings {
		if n.Code == "" || n.Text == "" {
			return errors.New("a warning lacks its code or its text")
		}
	}
	if r.TLS != nil {
		return r.TLS.sane()
	}
	return nil
}

// histogram returns the distribution of latencies, in nanoseconds.
func (r *report) histogram() (*hdrhistogram.Histogram, error) {
	if r.Histogram != "" {
		return output.Decode(r.Histogram, 2*maxLatency)
	}
	perConnection := r.Requests / int64(r.Connections)
	pairs := r.Latency
	if perConnection > 0 { // as wrk decides it
		interval := int64(math.Round(r.Window*1e6)) / perConnection
		var err error
		if pairs, err = uncorrect(r.Latency, interval); err != nil {
			return nil, err
		}
	}
	h := newHistogram()
	for _, p := range pairs {
		if p[0] < 0 || p[1] <= 0 || p[1] > r.Requests {
			return nil, fmt.Errorf("%d us with a count of %d is out of range", p[0], p[1])
		}
		if err := h.RecordValues(max(1, p[0]*1000), p[1]); err != nil {
			return nil, err
		}
	}
	if n := h.TotalCount(); n != r.Requests {
		return nil, fmt.Errorf("the latencies have %d values, but there were %d requests", n, r.Requests)
	}
	return h, nil
}

func (r *report) counts(rd *record.Reading) {
	add := func(name string, u record.Unit, x float64) { rd.Value(name, u, x, "end", "client") }
	add("window", record.Second, r.Window)
	add("requests", record.Count, float64(r.Requests))
	add("errors", record.Count, 0) // an error would have ended the trial
	add("bytes", record.Byte, float64(r.Bytes))
	add("cpu_user", record.Cores, r.User/r.Window)
	add("cpu_system", record.Cores, r.System/r.Window)
	if r.Load == "open" {
		if r.Due > 0 { // older reports do not say
			add(record.SampleDue, record.Count, float64(r.Due))
		}
		add(record.SampleUnsent, record.Count, float64(r.Unsent))
		add("send_delay_mean", record.Second, r.SendDelay.Mean)
		add("send_delay_p99", record.Second, r.SendDelay.P99)
		add("wake_delay_mean", record.Second, r.WakeDelay.Mean)
		add("wake_delay_p99", record.Second, r.WakeDelay.P99)
	}
	if r.TLS != nil {
		add("handshakes", record.Count, float64(r.TLS.Handshakes))
		add("resumed", record.Count, float64(r.TLS.Resumed))
		add("handshake_p99", record.Second, r.TLS.P99)
	}
}
