package clusterbuster

import (
	"encoding/json"
	"fmt"

	"tare/imports"
	"tare/imports/fio"
	"tare/record"
)

type fioResult struct {
	JobResults fio.Output `json:"job_results"`
	Elapsed    float64    `json:"job_elapsed_time"` // seconds
	CPU        float64    `json:"job_cpu_time"`     // seconds
}

// fioSummary is the tool's figure of a job, in its summary format.
type fioSummary struct {
	JobResults map[string]struct {
		DataRate *float64 `json:"data_rate"` // bytes per second
		IORate   *float64 `json:"io_rate"`
		Lat      struct {
			Mean *float64 `json:"mean"` // nanoseconds: really the sum of the means
		} `json:"lat_ns"`
	} `json:"job_results"`
}

// fio makes a trial of each job.
func (r *report) fio(base imports.Trial) ([]imports.Trial, error) {
	var out []imports.Trial
	for _, job := range r.jobs() {
		t := r.trial(base, job, "fio", r.Metadata.WorkloadMetadata.Jobs[job])
		var jobs []fio.Job
		var cpu float64
		for _, w := range r.Results.Workers {
			raw, ok := w.Results[job]
			if !ok {
				t.LeftOut("the pod %s has no result of %s", imports.Clean(w.Pod), imports.Clean(job))
				continue
			}
			var f fioResult
			if err := json.Unmarshal(raw, &f); err != nil {
				return nil, fmt.Errorf("the result of %s in pod %s: %w", job, w.Pod, err)
			}
			jobs = append(jobs, f.JobResults.All()...)
			cpu += f.CPU
			t.Duration = max(t.Duration, seconds(f.Elapsed))
			if f.JobResults.Version != "" {
				t.Facts["imported.fio"] = imports.Clean(f.JobResults.Version)
			}
		}
		var own fioSummary
		_ = json.Unmarshal(r.Summary.Results[job], &own) // the raw report has no summary
		for _, op := range fio.Ops() {
			f, ok := fio.Merge(jobs, op)
			if !ok {
				continue
			}
			t.Samples = append(t.Samples, f.Samples(op)...)
			o := own.JobResults[op]
			for _, c := range []struct {
				what     string
				own      *float64
				raw, one float64
			}{
				{"_throughput in B/s", o.DataRate, f.Rate, 1}, {"_iops", o.IORate, f.IOPS, 1}, {"_latency in seconds", o.Lat.Mean, f.Mean, 1e-9},
			} {
				if c.own != nil {
					t.Compare(op+c.what, *c.own*c.one, c.raw, 0.02)
				}
			}
			summed(&t, op, f)
		}
		if cpu > 0 && len(t.Samples) > 0 {
			t.Samples = append(t.Samples, record.NewValue("client_cpu", record.Second, cpu))
		}
		if len(t.Samples) == 0 {
			t.Failure = &record.Failure{Phase: "run", Kind: "other", Reason: "fio did no I/O in " + imports.Clean(job)}
		}
		out = append(out, t)
	}
	return out, nil
}

// summed warns if ClusterBuster's latency is wrong: the sum of the means of all jobs.
func summed(t *imports.Trial, op string, f fio.Figures) {
	sum := 0.0
	for _, m := range f.Means {
		sum += m
	}
	if !imports.Agree(sum, f.Mean, 0.02) {
		t.Warnings = append(t.Warnings, record.Warning{Code: "clusterbuster-latency", Text: fmt.Sprintf(
			"ClusterBuster's report has %.4g s for the %s latency, the sum of the means of %d jobs; weighted by I/Os it is %.4g s, and that is used", sum, op, len(f.Means), f.Mean)})
	}
}
