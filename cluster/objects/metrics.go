package objects

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

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

// read reads the metrics. nil: they cannot be read; the study goes on without them.
func (a *api) metrics(ctx context.Context) *readings {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	resp, err := a.open(ctx, http.MethodGet, "/metrics", nil)
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

// parseMetrics reads metrics in the text format of Prometheus, such as
//
//	process_cpu_seconds_total 12.5
//	apiserver_flowcontrol_request_wait_duration_seconds_sum{execute="true",...} 0.25
func parseMetrics(in io.Reader) (*readings, error) {
	r := &readings{at: time.Now()}
	names := map[string]*float64{
		"process_start_time_seconds":                              &r.began,
		"process_cpu_seconds_total":                               &r.cpu,
		"process_resident_memory_bytes":                           &r.memory,
		"apiserver_flowcontrol_rejected_requests_total":           &r.rejected,
		"apiserver_flowcontrol_request_wait_duration_seconds_sum": &r.queued,
		"etcd_request_duration_seconds_sum":                       &r.store,
		"etcd_request_duration_seconds_count":                     &r.stores,
		"go_sched_gomaxprocs_threads":                             &r.threads,
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		line := sc.Bytes()
		end := bytes.IndexAny(line, "{ ")
		if end < 0 {
			continue
		}
		to := names[string(line[:end])]
		if to == nil {
			continue
		}
		labels, value := "", string(line[end:])
		if line[end] == '{' {
			closing := bytes.LastIndexByte(line, '}')
			if closing < end {
				continue
			}
			labels, value = string(line[end:closing]), string(line[closing+1:])
		}
		if strings.HasPrefix(string(line), "etcd_request") && !writes(labels) {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		x, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("a metric's value: %w", err)
		}
		*to += x
	}
	return r, sc.Err()
}

// writes reports whether labels of etcd_request_duration_seconds are of an operation that changes something.
func writes(labels string) bool {
	for _, op := range []string{"create", "update", "delete"} {
		if strings.Contains(labels, `operation="`+op+`"`) {
			return true
		}
	}
	return false
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
