package clusterbuster

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"tare/imports"
	"tare/record"
)

// uperfResult is one test case of one client (pod_files/uperf-client.py).
type uperfResult struct {
	Metadata   map[string]any `json:"metadata"`
	Timeseries []struct {
		Time  float64 `json:"time"`      // seconds since the first
		Delta float64 `json:"timedelta"` // seconds
		Bytes float64 `json:"nbytes"`
		Ops   float64 `json:"nops"`
	} `json:"timeseries"`
	Summary struct {
		Elapsed float64 `json:"elapsed_time"` // seconds
		Raw     float64 `json:"raw_elapsed_time"`
		BytesPS float64 `json:"avg_bytes_sec"`
		OpsPS   float64 `json:"avg_ops_sec"`
		Start   float64 `json:"job_start_time"`
		End     float64 `json:"job_end_time"`
		Total   struct {
			Mean *float64 `json:"time_avg"` // seconds
			Max  *float64 `json:"time_max"`
		} `json:"total"`
	} `json:"summary"`
	Status struct {
		Condition string `json:"condition"`
		Message   string `json:"message"`
	} `json:"status"`
}

// uperf makes a trial of each test case, with rates summed over the clients.
func (r *report) uperf(base imports.Trial) ([]imports.Trial, error) {
	var out []imports.Trial
	for _, job := range r.jobs() {
		levels := r.Metadata.WorkloadMetadata.Jobs[job]
		var t imports.Trial
		var rate, ops, weight, latency, worst float64
		began := false
		for n, w := range r.Results.Workers {
			raw, ok := w.Results[job]
			if !ok {
				continue
			}
			var u uperfResult
			if err := json.Unmarshal(raw, &u); err != nil {
				return nil, fmt.Errorf("the result of %s in pod %s: %w", job, w.Pod, err)
			}
			if !began {
				if len(levels) == 0 {
					levels = u.Metadata
				}
				t, began = r.trial(base, job, "uperf", levels), true
			}
			if u.Status.Condition == "FAIL" {
				t.Failure = &record.Failure{Phase: "run", Kind: "other", Reason: "uperf failed in pod " + imports.Clean(w.Pod) + ": " + imports.Clean(u.Status.Message)}
				continue
			}
			b, o := u.rates(&t, w.Pod, job)
			rate, ops = rate+b, ops+o
			if m := u.Summary.Total.Mean; m != nil {
				latency, weight = latency+*m*o, weight+o
			}
			if m := u.Summary.Total.Max; m != nil {
				worst = max(worst, *m)
			}
			t.Duration = max(t.Duration, seconds(u.Summary.End-u.Summary.Start))
			t.Series = append(t.Series, u.series(w, n)...)
		}
		if t.Failure == nil {
			t.Samples = append(t.Samples, record.NewValue("throughput", record.BytesPerSecond, rate), record.NewValue("operations", record.PerSecond, ops))
			if weight > 0 {
				t.Samples = append(t.Samples, record.NewValue("latency", record.Second, latency/weight), record.NewValue("latency_max", record.Second, worst))
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// rates returns a client's bytes and operations a second, from the points in the time that
// ClusterBuster kept: without the ramps, whose length follows from its summary's elapsed time.
func (u *uperfResult) rates(t *imports.Trial, pod, job string) (bytes, ops float64) {
	ramp := 0.0
	if u.Summary.Raw >= 10 {
		ramp = max(0, (u.Summary.Raw-u.Summary.Elapsed)/2)
	}
	var b, o, d float64
	for _, p := range u.Timeseries {
		// Half a second either way, because the points are at whole seconds.
		if p.Delta > 0 && (ramp == 0 || p.Time >= ramp-0.5 && p.Time < u.Summary.Raw-ramp+0.5) {
			b, o, d = b+p.Bytes, o+p.Ops, d+p.Delta
		}
	}
	if d <= 0 {
		t.LeftOut("the client %s has no time series of %s; its summary is used unchecked", imports.Clean(pod), imports.Clean(job))
		return u.Summary.BytesPS, u.Summary.OpsPS
	}
	bytes, ops = b/d, o/d
	for _, c := range []struct {
		what     string
		own, raw float64
	}{{"bytes per second", u.Summary.BytesPS, bytes}, {"operations per second", u.Summary.OpsPS, ops}} {
		if c.own > 0 {
			t.Compare(imports.Clean(pod)+": "+c.what, c.own, c.raw, 0.03)
		}
	}
	return bytes, ops
}

// series returns a client's rates over time.
func (u *uperfResult) series(w worker, n int) []record.Series {
	labels := record.MakeLabels("pod", imports.Clean(w.Pod), "namespace", imports.Clean(w.Namespace), "client", fmt.Sprint(n+1))
	b := record.Series{Name: "throughput", Labels: labels, Unit: record.BytesPerSecond, Kind: record.Gauge}
	o := record.Series{Name: "operations", Labels: labels, Unit: record.PerSecond, Kind: record.Gauge}
	last := time.Duration(0)
	for _, p := range u.Timeseries {
		at := seconds(p.Time)
		if !(p.Delta > 0) || at < last {
			continue
		}
		last = at
		b.T, b.V = append(b.T, at), append(b.V, p.Bytes/p.Delta)
		o.T, o.V = append(o.T, at), append(o.V, p.Ops/p.Delta)
	}
	if len(b.T) == 0 {
		return nil
	}
	return []record.Series{b, o}
}

// seconds converts a time of a report; 0 if it is invalid.
func seconds(s float64) time.Duration {
	if !(s > 0) || s > 1e8 {
		return 0
	}
	return time.Duration(math.Round(s * 1e9))
}
