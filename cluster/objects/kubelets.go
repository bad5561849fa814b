package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/collect"
	"tare/collect/disk"
	"tare/collect/system"
	"tare/record"
	"tare/workload/objects"
)

// kubelets are the nodes that may take the load's pods, and what reads them. The load reads real nodes through the API server, which reaches every
// kubelet and checks the load's right to it. The kubelets themselves ask for less (get nodes/metrics), but the load would have to send its
// token to servers whose certificates most clusters do not sign.
type kubelets struct {
	api       *api
	all       bool // all nodes that take pods are simulated
	simulated map[string]bool
	nodes     []*worker // real ones, of which some are read
	own       *machine  // nil: the load does not see a node's kernel
	why       string    // why kubelets are not read; ""
}

// worker is a real node.
type worker struct {
	name       string
	processors float64
	own        bool // the load runs on its kernel, and reads that
}

// Bounds of what is read of nodes: how many, how many at once, and the bytes of each answer. A list of 5,000 nodes has about 10 MB.
const (
	maxKubelets = 20
	kubeletsAt  = 8
	maxNodes    = 64 << 20
	maxKubelet  = 64 << 20
	kubeletTime = 10 * time.Second
)

// metadataType is the media type of a list of objects without spec and status.
const metadataType = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// findKubelets finds the nodes of a load. If it cannot find some, the load goes on without their readings.
func findKubelets(ctx context.Context, a *api, o *options) *kubelets {
	k := &kubelets{api: a, all: o.nodes == objects.Simulated, simulated: map[string]bool{}}
	if k.all {
		return k
	}
	ctx, cancel := context.WithTimeout(ctx, 2*kubeletTime)
	defer cancel()
	var names []string
	if o.nodes == objects.Own {
		names = []string{o.node}
	} else if err := k.list(ctx, &names); err != nil {
		k.why = "the load could not list the nodes: " + bounded(err.Error())
		return k
	}
	names = names[:min(len(names), maxKubelets)]
	boot := ownBoot()
	for _, name := range names {
		var n corev1.Node
		if err := a.get(ctx, "/api/v1/nodes/"+name, usualType, maxNode, &n); err != nil {
			k.why = fmt.Sprintf("the load could not read the node %s: %s", name, bounded(err.Error()))
			continue
		}
		w := &worker{name: name, processors: n.Status.Capacity.Cpu().AsApproximateFloat64()}
		w.own = boot != "" && n.Status.NodeInfo.BootID == boot
		k.nodes = append(k.nodes, w)
		if w.own && k.own == nil {
			k.own = openMachine(ctx)
		}
	}
	return k
}

// list appends the names of real nodes, and notes simulated ones.
func (k *kubelets) list(ctx context.Context, names *[]string) error {
	var l metav1.PartialObjectMetadataList
	if err := k.api.get(ctx, "/api/v1/nodes?resourceVersion=0", metadataType, maxNodes, &l); err != nil {
		return err
	}
	for i := range l.Items {
		n := &l.Items[i]
		if n.Labels[objects.NodeType] == objects.Simulated {
			k.simulated[n.Name] = true
		} else {
			*names = append(*names, n.Name)
		}
	}
	return nil
}

// get reads a JSON answer of limited length.
func (a *api) get(ctx context.Context, path, format string, most int64, into any) error {
	resp, err := a.open(ctx, path, format)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	return json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(into)
}

// ownBoot is the boot ID of the load's kernel; "": it has none.
func ownBoot() string {
	b, _ := os.ReadFile(bootID) // gVisor has none
	return strings.TrimSpace(string(b))
}

// nodesReading is what nodes say at a moment.
type nodesReading struct {
	at  time.Time
	of  map[string]*kubeletReading
	why map[string]string // by node: why it is missing
	own *usage            // nil: not known
}

// read reads the nodes.
func (k *kubelets) read(ctx context.Context) *nodesReading {
	out := &nodesReading{of: map[string]*kubeletReading{}, why: map[string]string{}}
	ctx, cancel := context.WithTimeout(ctx, kubeletTime)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	free := make(chan struct{}, kubeletsAt)
	for _, w := range k.nodes {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			r, err := k.api.kubelet(ctx, w.name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.why[w.name] = unread(w.name, err)
				return
			}
			out.of[w.name] = r
		})
	}
	all.Wait()
	out.at, out.own = time.Now(), k.own.usage()
	return out
}

// unread says why a kubelet was not read.
func unread(name string, err error) string {
	if isCode(err, http.StatusForbidden) && strings.Contains(err.Error(), "nodes/proxy") {
		return "the load lacks the right to get nodes/proxy, so it could not read the kubelets' metrics"
	}
	return fmt.Sprintf("the kubelet of node %s could not be read: %s", name, bounded(err.Error()))
}

// kubeletReading is what a kubelet's metrics say, since the kubelet began
// (https://kubernetes.io/docs/reference/instrumentation/metrics/).
type kubeletReading struct {
	began  float64
	took   map[string]float64 // by what; s
	count  map[string]float64
	used   float64 // s of the node's processors
	usedAt float64 // when the kubelet read them, s since 1970
}

// Requests to the runtime that the start of a pod needs, and what the kubelet itself does.
const (
	opSandbox = "run_podsandbox"
	opCreate  = "create_container"
	opBegin   = "start_container"
	opPull    = "pull_image"
	opQueue   = "queue"
	opPoll    = "poll"
)

// Metrics of a kubelet. Their histograms have a sum and a count. kubelet_run_podsandbox_duration_seconds would distinguish runtime classes, but
// Kubernetes 1.34 stops its clock before the request begins, so the metric shows microseconds.
const (
	metricBegan   = "process_start_time_seconds"
	metricRuntime = "kubelet_runtime_operations_duration_seconds"
	metricQueue   = "kubelet_pod_worker_start_duration_seconds"
	metricPoll    = "kubelet_pleg_relist_interval_seconds"
	metricUsed    = "node_cpu_usage_seconds_total"
)

// kubelet reads the metrics of a node's kubelet through the API server.
func (a *api) kubelet(ctx context.Context, node string) (*kubeletReading, error) {
	r := &kubeletReading{took: map[string]float64{}, count: map[string]float64{}}
	for _, path := range []string{"metrics", "metrics/resource"} {
		resp, err := a.open(ctx, "/api/v1/nodes/"+node+"/proxy/"+path, "text/plain")
		if err != nil {
			return nil, err
		}
		err = r.parse(io.LimitReader(resp.Body, maxKubelet))
		_ = resp.Body.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("its metrics: %w", err)
		}
	}
	if r.began == 0 {
		return nil, errors.New("its metrics do not say when it started")
	}
	return r, nil
}

// parse adds what metrics in the text format of Prometheus say.
func (r *kubeletReading) parse(in io.Reader) error {
	families, err := scan(in, func(name string) bool {
		name, of := strings.CutSuffix(name, "_sum")
		if !of {
			name, of = strings.CutSuffix(name, "_count")
		}
		return of == slices.Contains([]string{metricRuntime, metricQueue, metricPoll}, name) && (of || name == metricBegan || name == metricUsed)
	})
	if err != nil {
		return err
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			v := m.GetUntyped().GetValue()
			switch {
			case math.IsNaN(v):
			case name == metricBegan:
				r.began = v
			case name == metricUsed:
				r.used, r.usedAt = v, float64(m.GetTimestampMs())/1000
			case strings.HasSuffix(name, "_sum"):
				r.took[what(name, m)] += v
			case strings.HasSuffix(name, "_count"):
				r.count[what(name, m)] += v
			}
		}
	}
	return nil
}

// what names the operation whose time a metric has.
func what(name string, m *dto.Metric) string {
	switch {
	case strings.HasPrefix(name, metricQueue):
		return opQueue
	case strings.HasPrefix(name, metricPoll):
		return opPoll
	}
	for _, l := range m.GetLabel() {
		if l.GetName() == "operation_type" {
			return l.GetValue()
		}
	}
	return ""
}

// since returns what the nodes did since an earlier reading, of those that took pods.
func (k *kubelets) since(earlier, now *nodesReading, all []*start) *objects.Kubelets {
	out, took := &objects.Kubelets{}, map[string]bool{}
	for _, s := range all {
		switch simulated := k.all || k.simulated[s.node]; {
		case s.ran.IsZero():
			continue
		case simulated && !took[s.node]:
			out.Simulated++
			fallthrough
		case simulated:
			out.SimulatedPods++
		default:
			out.RealPods++
		}
		took[s.node] = true
	}
	step := now.at.Sub(earlier.at).Seconds()
	if out.RealPods == 0 || step <= 0 {
		return out
	}
	sums, counts, own, read := map[string]float64{}, map[string]float64{}, 0.0, 0
	for _, w := range k.nodes {
		if !took[w.name] {
			continue
		}
		a, b := earlier.of[w.name], now.of[w.name]
		if w.own {
			own = w.processors // nodes of one kernel share its processors
		} else if used := b.cores(a, earlier.at, now.at); used >= 0 {
			out.Cores, out.Processors = out.Cores+used, out.Processors+w.processors
		}
		read++
		switch {
		case a == nil || b == nil:
			out.Missing = cmp.Or(now.why[w.name], earlier.why[w.name])
		case a.began != b.began:
			out.Missing = "the kubelet of node " + w.name + " restarted"
		default:
			out.Nodes++
			for op, n := range b.count {
				counts[op] += max(0, n-a.count[op])
				sums[op] += max(0, b.took[op]-a.took[op])
			}
		}
	}
	if n := len(took) - out.Simulated; read < n && out.Missing == "" {
		out.Missing = cmp.Or(k.why, fmt.Sprintf("the load reads %d nodes at most, and %d took pods", maxKubelets, n))
	}
	if cpu, busiest := now.own.since(earlier.own); own > 0 && cpu >= 0 {
		out.Cores, out.Processors, out.Disk = out.Cores+cpu/step, out.Processors+own, min(1, busiest/step)
	}
	if n := counts[opSandbox]; n > 0 {
		out.Pods, out.Sandbox, out.Create, out.Begin, out.Pull = n, sums[opSandbox]/n, sums[opCreate]/n, sums[opBegin]/n, sums[opPull]/n
	}
	if n := counts[opQueue]; n > 0 {
		out.Queued = sums[opQueue] / n
	}
	if n := counts[opPoll]; n > 0 {
		out.Poll = sums[opPoll] / n
	}
	return out
}

// cores returns the cores that a node used on average, by its kubelet's last two readings; negative: not known.
func (r *kubeletReading) cores(earlier *kubeletReading, from, to time.Time) float64 {
	if r == nil || earlier == nil {
		return -1
	}
	return rate(earlier.used, r.used, earlier.usedAt, r.usedAt, from, to)
}

// rate is how much a counter of a kubelet grew in a second, from its value a at the second atA to b at atB; negative: not known. The kubelet
// reads its counters only every 10 s or so: an interval that is mostly outside from and to says nothing about that time.
func rate(a, b, atA, atB float64, from, to time.Time) float64 {
	if atB <= atA || b < a {
		return -1
	}
	begin, end := float64(from.UnixMilli())/1000, float64(to.UnixMilli())/1000
	within, took := min(end, atB)-max(begin, atA), atB-atA
	if within < took/2 || within < (end-begin)/2 {
		return -1
	}
	return (b - a) / took
}

// machine reads the processors and disks of the kernel that the load runs on.
type machine struct{ probes []collect.Probe }

// openMachine returns nil if the load does not see them.
func openMachine(ctx context.Context) *machine {
	m := &machine{}
	for _, c := range []collect.Collector{system.New(), disk.New()} {
		if p, err := c.Open(ctx, nil); err == nil {
			m.probes = append(m.probes, p)
		}
	}
	return m
}

func (k *kubelets) close() {
	if k.own != nil {
		for _, p := range k.own.probes {
			_ = p.Close() // it was only read
		}
	}
}

// usage is what processors and disks did since the kernel began, in seconds.
type usage struct {
	cpu   float64 // all processors together, without those that were idle
	disks map[record.Labels]float64
}

// usage reads the machine; nil: it cannot be read.
func (m *machine) usage() *usage {
	if m == nil {
		return nil
	}
	out := &usage{disks: map[record.Labels]float64{}}
	var buf []record.Sample
	var err error
	for _, p := range m.probes {
		if buf, err = p.Read(buf[:0]); err != nil {
			return nil
		}
		for i := range buf {
			switch x := &buf[i]; {
			case x.Name == record.SystemCPU && !slices.Contains([]string{"idle", "iowait"}, x.Labels.Get(record.LabelMode)):
				out.cpu += x.Value
			case x.Name == record.DeviceBusy:
				out.disks[x.Labels] = x.Value
			}
		}
	}
	return out
}

// since returns the time of processors, and that of the busiest disk, since an earlier reading. The first is negative if it is not known.
func (u *usage) since(earlier *usage) (cpu, busiest float64) {
	if u == nil || earlier == nil || u.cpu <= 0 {
		return -1, 0
	}
	for disk, busy := range u.disks {
		busiest = max(busiest, busy-earlier.disks[disk])
	}
	return u.cpu - earlier.cpu, busiest
}
