// Package clusterbuster reads the reports of ClusterBuster
// (https://github.com/RobertKrawitz/OpenShift4-tools): clusterbuster-report.json,
// or .json.gz, with the results of every worker in it.
//
// The data path: 1. a report is decoded within bounds; 2. each job of its workload,
// fio or uperf, is a cell, and the report is one trial of it, of all workers together;
// 3. figures are computed from the workers' results, and the tool's summary is only
// checked against them; 4. several reports are an imports.Set.
//
// ClusterBuster's fio latency is wrong and not used. Its reporter
// (reporting/reporter/ClusterBusterReporter.py, __update_accumulator_val) adds
// lat_ns.mean of all fio jobs of all pods, and its loader (loader/fio_loader.py)
// takes that sum for the mean, and the sum of the maxima for the maximum. Its mean of all
// operations counts operations that did nothing. It is right only with one job in one pod.
// Here a mean is weighted by I/Os.
package clusterbuster

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/imports"
	"tare/record"
	"tare/study"
)

// MaxFile bounds a report, in bytes, unpacked; with json+ a pod's job has some 100 KB.
const (
	MaxFile  = 256 << 20
	maxDepth = 64
	maxJobs  = 10_000
)

// File is one report. Sandbox is the level that the user gave it, "" for that of
// its runtime class.
type File struct {
	Name, Sandbox string
	Data          []byte
}

type report struct {
	Metadata struct {
		Kind         string  `json:"kind"`
		Workload     string  `json:"workload"`
		JobName      string  `json:"job_name"`
		RuntimeClass string  `json:"runtime_class"`
		UUID         string  `json:"uuid"`
		RunHost      string  `json:"run_host"`
		Kata         string  `json:"kata_version"`
		KataOperator string  `json:"kata_containers_version"`
		CNV          string  `json:"cnv_version"`
		Started      float64 `json:"controller_second_start_timestamp"` // Unix time
		Kubernetes   struct {
			Openshift string `json:"openshiftVersion"`
			Server    struct {
				Git string `json:"gitVersion"`
			} `json:"serverVersion"`
		} `json:"kubernetes_version"`
		Options struct {
			RuntimeClasses map[string]any `json:"runtime_classes"`
		} `json:"options"`
		WorkloadMetadata struct {
			Jobs map[string]map[string]any `json:"jobs"`
		} `json:"workload_metadata"`
	} `json:"metadata"`
	Results struct {
		Workers []worker `json:"worker_results"`
	} `json:"Results"`
	Summary struct {
		Results map[string]json.RawMessage `json:"results"`
	} `json:"summary"`
}

type worker struct {
	Namespace string                     `json:"namespace"`
	Pod       string                     `json:"pod"`
	Results   map[string]json.RawMessage `json:"results"`
}

// Read makes a Set of reports of one workload or of several.
func Read(files []File) (*imports.Set, error) {
	s := &imports.Set{Name: "clusterbuster", Responses: map[string][]record.Response{}, Origin: imports.Origin{Tool: "clusterbuster"}}
	var names []string
	var first imports.First
	for _, f := range files {
		if err := first.Same(f.Name, f.Data); err != nil {
			return nil, err
		}
		if err := one(s, f); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		names = append(names, filepath.Base(f.Name))
	}
	s.Origin.Path = strings.Join(names, ", ")
	if len(s.Origin.Path) > 200 {
		s.Origin.Path = fmt.Sprintf("%d reports", len(names))
	}
	s.About = "Imported from ClusterBuster: " + s.Origin.Path
	imports.Describe(s)
	return s, nil
}

func one(s *imports.Set, f File) error {
	data, err := unpacked(f.Data)
	if err != nil {
		return err
	}
	if err := imports.Shallow(data, maxDepth); err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("not a ClusterBuster report: %w", err)
	}
	if r.Metadata.Kind != "clusterbusterResults" {
		return fmt.Errorf("not a ClusterBuster report: metadata.kind is %q, not clusterbusterResults; give clusterbuster-report.json", r.Metadata.Kind)
	}
	base := imports.Trial{Facts: map[string]string{}, Levels: map[string]string{study.FactorSandbox: r.sandbox(f)}}
	for k, v := range map[string]string{"imported.uuid": r.Metadata.UUID, "imported.job": r.Metadata.JobName, "imported.kata": r.Metadata.Kata, "imported.kata_operator": r.Metadata.KataOperator,
		"imported.cnv": r.Metadata.CNV, "imported.openshift": r.Metadata.Kubernetes.Openshift, "imported.kubernetes": r.Metadata.Kubernetes.Server.Git, "imported.file": filepath.Base(f.Name)} {
		if v != "" {
			base.Facts[k] = imports.Clean(v)
		}
	}
	if t := r.Metadata.Started; t > 0 && t < 1e11 {
		base.Start = time.Unix(0, 0).Add(time.Duration(math.Min(t, 9e9) * float64(time.Second))).UTC()
	}
	if s.Host.Hostname == "" {
		s.Host.Hostname = imports.Clean(r.Metadata.RunHost)
		s.Host.Tools = map[string]string{}
		for _, k := range []string{"kata", "openshift", "kubernetes", "cnv"} {
			if v := base.Facts["imported."+k]; v != "" {
				s.Host.Tools[k] = v
			}
		}
	}
	if len(r.Metadata.WorkloadMetadata.Jobs) > maxJobs {
		return fmt.Errorf("there are more than %d jobs", maxJobs)
	}
	var trials []imports.Trial
	switch r.Metadata.Workload {
	case "fio":
		trials, err = r.fio(base)
	case "uperf":
		trials, err = r.uperf(base)
	default:
		return fmt.Errorf("tare cannot import the workload %q; give a report of fio or uperf", r.Metadata.Workload)
	}
	if err != nil {
		return err
	}
	if len(trials) == 0 {
		return errors.New("the report has no results of any worker; give the report of a finished run")
	}
	s.Trials = append(s.Trials, trials...)
	return nil
}

// unpacked undoes gzip, within bounds.
func unpacked(data []byte) ([]byte, error) {
	if len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, MaxFile+1))
	if err == nil && len(out) > MaxFile {
		err = fmt.Errorf("unpacked, it is larger than %d bytes, the most that tare reads", MaxFile)
	}
	return out, err
}

// sandbox returns the level: the user's name, or the runtime class that ClusterBuster found;
// without one, the cluster's default, runc.
func (r *report) sandbox(f File) string {
	if f.Sandbox != "" {
		return f.Sandbox
	}
	if r.Metadata.RuntimeClass != "" {
		return imports.Clean(r.Metadata.RuntimeClass)
	}
	if c, ok := r.Metadata.Options.RuntimeClasses["default"].(string); ok && c != "" {
		return imports.Clean(c)
	}
	return "runc"
}

// jobs returns the jobs of the workers, in order of names. The metadata has their levels.
func (r *report) jobs() []string {
	set := map[string]bool{}
	for i := range r.Results.Workers {
		for name := range r.Results.Workers[i].Results {
			if len(set) < maxJobs {
				set[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// trial begins the trial of a job.
func (r *report) trial(base imports.Trial, job, workload string, more map[string]any) imports.Trial {
	t := base
	t.Levels, t.Facts = maps.Clone(base.Levels), maps.Clone(base.Facts)
	t.Levels[study.FactorWorkload] = workload
	t.Levels["workers"] = fmt.Sprint(len(r.Results.Workers))
	t.Facts["imported.case"] = imports.Clean(job)
	for k, v := range more {
		if text := imports.Clean(fmt.Sprint(v)); v != nil && text != "" && imports.CheckFactor(k) == nil && k != "test_name" {
			switch v.(type) {
			case string, float64, bool:
				t.Levels[k] = text
			}
		}
	}
	return t
}
