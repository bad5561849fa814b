package export

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"time"

	"tare/analyse"
	"tare/record"
	"tare/report/terminal"
)

// The results schema of KubeVirt's enhancement proposal 411, as it was proposed in July 2026
// (https://github.com/kubevirt/enhancements/pull/412): required provenance, an aggregate, and a record for each
// operation. Here an operation is a trial. The proposal lets tools add fields, which readers must ignore if they do
// not know them: a record's cell, and the aggregate's comparisons.
const vepSchema = "1.0.0"

// unknown stands for provenance that results do not have.
const unknown = "unknown"

// Provenance is what a VEP 411 document says of where its figures come from.
type Provenance struct {
	Origin
	Version string // of tare
	Seed    uint64
	Nodes   []record.Node
	Factors map[string][]string // levels
}

type vepCluster struct {
	Kubernetes string    `json:"kubernetes_version"`
	KubeVirt   string    `json:"kubevirt_version"`
	CDI        string    `json:"cdi_version"`
	Count      int       `json:"node_count"`
	Nodes      []vepNode `json:"nodes"`
}

type vepNode struct {
	Name    string `json:"name"`
	Kernel  string `json:"kernel"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Runtime string `json:"container_runtime,omitempty"`
	CPUs    int    `json:"cpus"`
	Memory  int64  `json:"memory_bytes"`
}

// vepComparison is a ratio to the baseline, which the proposal has no place for.
type vepComparison struct {
	Cell     cellObject `json:"cell"`
	Baseline bool       `json:"baseline,omitempty"`
	Metric   string     `json:"metric"`
	N        int        `json:"n"`
	Typical  *float64   `json:"typical,omitempty"`
	Ratio    *float64   `json:"ratio,omitempty"`
	Lo       *float64   `json:"lo,omitempty"`
	Hi       *float64   `json:"hi,omitempty"`
	Verdict  string     `json:"verdict,omitempty"`
}

// VEP411 writes results as the proposal's document of one run.
func VEP411(w io.Writer, p Provenance, res *analyse.Result, trials Trials) error {
	d := document{w: bufio.NewWriter(w)}
	type object = map[string]any
	d.field("schema_version", vepSchema)
	d.field("tool", object{"name": "tare", "version": p.Version, "git_commit": commit(p.Version)})
	d.field("scenario", object{"name": "tare/" + p.Study, "version": p.version()})
	d.field("timestamp", p.Started.UTC().Format(time.RFC3339))
	if p.Modelled {
		d.field("modelled", true)
	}
	d.field("cluster", clusterOf(p.Nodes))
	kinds := map[string]string{} // by workload
	names := map[string]map[string]string{}
	for i := range res.Compared {
		c := &res.Compared[i]
		kinds[c.Workload] = c.Kind
		if names[c.Workload] == nil {
			names[c.Workload] = map[string]string{}
		}
		names[c.Workload][c.Response.Name] = metricName(c.Kind, c.Response.Name, c.Response.Unit)
	}
	d.field("workload", object{"vm_template": unknown, "vm_image": unknown, "storage_class": unknown, "access_mode": unknown, "volume_mode": unknown, "workloads": kinds})
	d.field("parameters", object{"factors": p.Factors, "changes": append([]string{}, p.Changes...), "seed": p.Seed})
	d.name("records")
	d.text("[")
	good, failed, stopped := 0, 0, 0
	for t, err := range trials {
		if err != nil {
			return fmt.Errorf("write the VEP 411 document: %w", err)
		}
		r := object{"name": fmt.Sprintf("trial-%d", t.Seq), "status": "Success", "start": t.Start.UTC().Format(time.RFC3339Nano), "duration_seconds": t.Duration.Seconds(),
			"block": t.Block, "cell": cellObject(t.Cell)}
		if t.Node != "" {
			r["node"] = t.Node
		}
		if good++; t.Status != record.OK {
			good, failed, r["status"] = good-1, failed+1, "Failed"
		}
		if t.Failure != nil {
			r["error"] = t.Failure.Reason
			if t.Failure.Kind == "stop" {
				stopped++
			}
		}
		workload, _ := t.Cell.Get("workload")
		for _, s := range t.Samples {
			if name := names[workload][s.Name]; name != "" && s.Labels == "" && finite(s.Value) {
				r[name] = s.Value
			}
		}
		if good+failed > 1 {
			d.text(",")
		}
		d.text("\n")
		d.value(r)
	}
	d.text("]")
	d.field("aggregate", object{"operation_success_count": good, "operation_failure_count": failed, "comparisons": compared(res)})
	status := "Success"
	switch {
	case stopped > 0:
		status = "Failed"
	case res.Left.AtLeast > 0: // the study goes on, or left what it made when it was killed
		status = unknown
	}
	d.field("cleanup", object{"requested": true, "status": status})
	d.text("\n}\n")
	if err := d.end(); err != nil {
		return fmt.Errorf("write the VEP 411 document: %w", err)
	}
	return nil
}

// inVersion finds the commit in a version: git describe writes TAG-N-gCOMMIT or COMMIT, Go's pseudo-versions end with it.
var inVersion = regexp.MustCompile(`(?:^|-g?)([0-9a-f]{7,40})(?:-dirty|\+dirty)?$`)

// commit is the one that a version names.
func commit(version string) string {
	if m := inVersion.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return unknown
}

func clusterOf(nodes []record.Node) vepCluster {
	out := vepCluster{Kubernetes: unknown, KubeVirt: unknown, CDI: unknown, Count: len(nodes), Nodes: []vepNode{}}
	for _, n := range nodes {
		h := &n.Host
		if v := h.Tools["kubelet"]; v != "" {
			out.Kubernetes = v
		}
		out.Nodes = append(out.Nodes, vepNode{cmp.Or(n.Name, h.Hostname), h.Kernel, h.OS, h.Arch, h.Tools["container runtime"], h.Threads, h.MemoryBytes})
	}
	return out
}

func compared(res *analyse.Result) []vepComparison {
	out := []vepComparison{}
	pointer := func(v float64, has bool) *float64 {
		if !has || !finite(v) {
			return nil
		}
		return &v
	}
	for i := range res.Compared {
		c := &res.Compared[i]
		x := vepComparison{Cell: cellObject(c.Cell), Baseline: c.Baseline, Metric: metricName(c.Kind, c.Response.Name, c.Response.Unit), N: c.Level.N, Typical: pointer(c.Level.Typical, c.Level.N > 0)}
		if !c.Baseline {
			between := hasRatio(c) && c.Estimate.HasInterval()
			x.N, x.Verdict = c.Estimate.N, string(c.Verdict)
			x.Ratio, x.Lo, x.Hi = pointer(c.Estimate.Ratio, hasRatio(c)), pointer(c.Estimate.Lo, between), pointer(c.Estimate.Hi, between)
		}
		out = append(out, x)
	}
	return out
}

// metricName names a figure with its unit, as the proposal wants it; those of fio have names there.
func metricName(kind, response string, unit record.Unit) string {
	switch {
	case kind == "fio" && response == "iops":
		return "guest_io_iops"
	case kind == "fio" && response == "throughput":
		return "guest_io_throughput_bytes_per_second"
	}
	switch unit {
	case record.Second:
		return response + "_seconds"
	case record.Byte:
		return response + "_bytes"
	case record.BytesPerSecond:
		return response + "_bytes_per_second"
	case record.PerSecond:
		return response + "_per_second"
	case record.Cores, record.Count:
		return response + "_" + string(unit)
	}
	return response + "_ratio"
}

// document writes a JSON object field by field, since its records may be many.
type document struct {
	w     *bufio.Writer
	begun bool
	err   error
}

func (d *document) field(name string, v any) {
	d.name(name)
	d.value(v)
}

func (d *document) name(name string) {
	lead := "{\n"
	if d.begun {
		lead = ",\n"
	}
	d.begun = true
	d.text(fmt.Sprintf("%s%q: ", lead, name))
}

func (d *document) value(v any) {
	var b bytes.Buffer
	if err := terminal.JSON(&b).Encode(v); err != nil && d.err == nil {
		d.err = err
	}
	d.text(string(bytes.TrimRight(b.Bytes(), "\n")))
}

func (d *document) text(s string) {
	if d.err == nil {
		_, d.err = d.w.WriteString(s)
	}
}

func (d *document) end() error {
	if d.err != nil {
		return d.err
	}
	return d.w.Flush()
}
