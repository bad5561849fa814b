package objects

import (
	"context"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/workload/objects"
)

// controlPlane are the nodes whose kubelets run parts of the control plane as static pods, as kubeadm and OpenShift do. On other
// clusters, such as managed ones, no node has the label, and nothing is read.
type controlPlane struct {
	api   *api
	nodes []string
}

const (
	controlLabel = "node-role.kubernetes.io/control-plane"
	maxControl   = 7 // members of etcd in a large cluster
)

func findControlPlane(ctx context.Context, a *api) *controlPlane {
	c := &controlPlane{api: a}
	ctx, cancel := context.WithTimeout(ctx, kubeletTime)
	defer cancel()
	var l metav1.PartialObjectMetadataList
	if a.get(ctx, "/api/v1/nodes?resourceVersion=0&labelSelector="+url.QueryEscape(controlLabel), metadataType, maxNodes, &l) != nil {
		return c // the load goes on without
	}
	for i := range l.Items {
		c.nodes = append(c.nodes, l.Items[i].Name)
	}
	slices.Sort(c.nodes)
	c.nodes = c.nodes[:min(len(c.nodes), maxControl)]
	return c
}

// podUse is what a pod uses.
type podUse struct{ cpu, at, memory float64 } // s since it began, read at that second since 1970; bytes

// controlReading is what the parts of the control plane use at a moment, by their pods.
type controlReading struct {
	at   time.Time
	pods map[string]podUse
}

// read reads the kubelets one after another: they are few.
func (c *controlPlane) read(ctx context.Context) *controlReading {
	out := &controlReading{pods: map[string]podUse{}}
	ctx, cancel := context.WithTimeout(ctx, kubeletTime)
	defer cancel()
	for _, node := range c.nodes {
		resp, err := c.api.open(ctx, "/api/v1/nodes/"+node+"/proxy/metrics/resource", "text/plain")
		if err != nil {
			continue // not known: the load may lack the right
		}
		_ = out.parse(node, io.LimitReader(resp.Body, maxKubelet)) // what cannot be read is not known either
		_ = resp.Body.Close()
	}
	out.at = time.Now()
	return out
}

// Metrics of pods (https://kubernetes.io/docs/reference/instrumentation/node-metrics/).
const (
	metricPodCPU    = "pod_cpu_usage_seconds_total"
	metricPodMemory = "pod_memory_working_set_bytes"
)

// parse adds what a node's kubelet says of the parts of the control plane.
func (r *controlReading) parse(node string, in io.Reader) error {
	families, err := scan(in, func(name string) bool { return name == metricPodCPU || name == metricPodMemory })
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var pod, namespace string
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "pod":
					pod = l.GetValue()
				case "namespace":
					namespace = l.GetValue()
				}
			}
			v := m.GetUntyped().GetValue()
			if part(namespace, pod, node) == "" || math.IsNaN(v) {
				continue
			}
			use := r.pods[pod]
			if name == metricPodCPU {
				use.cpu, use.at = v, float64(m.GetTimestampMs())/1000
			} else {
				use.memory = v
			}
			r.pods[pod] = use
		}
	}
	return err
}

// part is the part of the control plane that a static pod is; "": none. The kubelet adds the name of its node to that of a static pod.
func part(namespace, pod, node string) string {
	name, static := strings.CutSuffix(pod, "-"+node)
	if !static || namespace != "kube-system" && !strings.HasPrefix(namespace, "openshift-") {
		return ""
	}
	switch name {
	case "etcd":
		return objects.PartEtcd
	case "kube-scheduler", "openshift-kube-scheduler":
		return objects.PartScheduler
	case "kube-controller-manager":
		return objects.PartController
	}
	return ""
}

// since returns what the parts of the control plane used since an earlier reading, each summed over its pods. A part is left out if the
// kubelets' own readings were mostly outside of this time.
func (c *controlPlane) since(earlier, now *controlReading) (out []objects.Part) {
	for _, name := range objects.Parts() {
		p, known := objects.Part{Name: name}, true
		for _, node := range c.nodes {
			for pod, b := range now.pods {
				if part("kube-system", pod, node) != name {
					continue
				}
				a, was := earlier.pods[pod]
				cores := rate(a.cpu, b.cpu, a.at, b.at, earlier.at, now.at)
				known = known && was && cores >= 0
				p.Pods, p.Cores, p.Memory = p.Pods+1, p.Cores+cores, p.Memory+b.memory
			}
		}
		if known && p.Pods > 0 {
			out = append(out, p)
		}
	}
	return out
}
