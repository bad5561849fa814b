package objects

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"tare/workload/objects"
)

// readings are what the API server's metrics (https://kubernetes.io/docs/reference/instrumentation/metrics/) say at a moment:
// sums over all labels, since the server began.
type readings struct {
	at       time.Time
	began    float64 // when the server did
	cpu      float64 // s
	memory   float64 // bytes
	rejected float64
	queued   float64 // s
	store    float64 // s
	stores   float64
	threads  float64 // of the server's runtime: its processors
}

// Bounds of what is read, in bytes: a large cluster's server prints some 20 MB.
const (
	maxMetrics = 256 << 20
	maxLine    = 64 << 10
)

// metrics reads the metrics. nil: they cannot be read; the study goes on without them.
func (a *api) metrics(ctx context.Context) *readings {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	resp, err := a.open(ctx, "/metrics", "text/plain")
	if err != nil {
		return nil
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	r, err := parseMetrics(io.LimitReader(resp.Body, maxMetrics))
	if err != nil {
		return nil
	}
	return r
}

// scan reads metrics in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). Only the lines of
// those that are wanted go to its parser, which keeps all that it is given. Without the lines of their types, all are untyped.
func scan(in io.Reader, wanted func(name string) bool) (map[string]*dto.MetricFamily, error) {
	var kept bytes.Buffer
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		line := sc.Bytes()
		if end := bytes.IndexAny(line, "{ "); end > 0 && wanted(string(line[:end])) {
			kept.Write(line)
			kept.WriteByte('\n')
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	var parser expfmt.TextParser
	return parser.TextToMetricFamilies(&kept)
}

// parseMetrics reads the metrics of an API server.
func parseMetrics(in io.Reader) (*readings, error) {
	r := &readings{at: time.Now()}
	to := map[string]*float64{
		"process_start_time_seconds":                              &r.began,
		"process_cpu_seconds_total":                               &r.cpu,
		"process_resident_memory_bytes":                           &r.memory,
		"apiserver_flowcontrol_rejected_requests_total":           &r.rejected,
		"apiserver_flowcontrol_request_wait_duration_seconds_sum": &r.queued,
		etcdTime:                      &r.store,
		etcdCount:                     &r.stores,
		"go_sched_gomaxprocs_threads": &r.threads,
	}
	families, err := scan(in, func(name string) bool { return to[name] != nil })
	if err != nil {
		return nil, fmt.Errorf("the API server's metrics: %w", err)
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			if name != etcdTime && name != etcdCount || writes(m) {
				*to[name] += m.GetUntyped().GetValue()
			}
		}
	}
	return r, nil
}

// Metrics of the API server's requests to etcd.
const (
	etcdTime  = "etcd_request_duration_seconds_sum"
	etcdCount = "etcd_request_duration_seconds_count"
)

// writes reports whether a metric of requests to etcd is of an operation that changes something.
func writes(m *dto.Metric) bool {
	return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
		return l.GetName() == "operation" && slices.Contains([]string{"create", "update", "delete"}, l.GetValue())
	})
}

// since returns what the server did since earlier readings; nil if one of both could not be read, or if they are of two servers.
func (r *readings) since(earlier *readings) *objects.Server {
	if r == nil || earlier == nil || r.began != earlier.began || r.cpu < earlier.cpu {
		return nil
	}
	took := r.at.Sub(earlier.at).Seconds()
	if took <= 0 {
		return nil
	}
	return &objects.Server{
		Cores: (r.cpu - earlier.cpu) / took, Memory: r.memory, Rejected: max(0, r.rejected-earlier.rejected),
		Queued: max(0, r.queued-earlier.queued), Store: max(0, r.store-earlier.store), Stores: max(0, r.stores-earlier.stores),
		Processors: int(r.threads),
	}
}

// peak is the most memory that this process had from its system, in bytes.
func peak() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys)
}
