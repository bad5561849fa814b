package objects

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tare/workload/objects"
)

// TestControlPlane: parts of the control plane are summed over their static pods, whatever else runs in their namespaces. One that was not
// read long enough is left out.
func TestControlPlane(t *testing.T) {
	seconds := 0.0 // since the first reading
	begin := time.Now().Add(-time.Minute)
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			if r.URL.Query().Get("labelSelector") != controlLabel {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = fmt.Fprint(w, `{"items":[{"metadata":{"name":"cp2"}},{"metadata":{"name":"cp1"}}]}`)
			return
		}
		node, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/"), "/")
		if rest != "proxy/metrics/resource" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		at := begin.Add(time.Duration(seconds * float64(time.Second))).UnixMilli()
		say := func(namespace, pod string, cpu, memory float64, at int64) {
			_, _ = fmt.Fprintf(w, "%s{namespace=%q,pod=%q} %g %d\n%s{namespace=%[2]q,pod=%[3]q} %[7]g %[5]d\n", metricPodCPU, namespace, pod, cpu, at, metricPodMemory, memory)
		}
		say("kube-system", "etcd-"+node, 100+0.25*seconds, 1e8, at)
		say("kube-system", "coredns-"+node, 100+seconds, 1e8, at)
		say("default", "kube-scheduler-"+node, 100+seconds, 1e8, at)
		say("openshift-kube-scheduler", "openshift-kube-scheduler-"+node, 7+0.1*seconds, 2e7, at)
		say("kube-system", "kube-controller-manager-"+node, 7+seconds, 3e7, begin.UnixMilli()) // no newer reading
	})
	c := findControlPlane(t.Context(), a)
	first := c.read(t.Context())
	seconds = 20
	now := c.read(t.Context())
	first.at, now.at = begin, begin.Add(22*time.Second)
	got := ""
	for _, p := range c.since(first, now) {
		got += fmt.Sprintf("%s %d %.3g %.3g; ", p.Name, p.Pods, p.Cores, p.Memory)
	}
	if want := "etcd 2 0.5 2e+08; scheduler 2 0.2 4e+07; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	now.at = begin.Add(time.Hour) // the readings say nothing about such a long step
	if got := c.since(first, now); len(got) > 0 {
		t.Error(got)
	}
	delete(first.pods, "etcd-cp1") // it came later
	now.at = begin.Add(22 * time.Second)
	if got := c.since(first, now); len(got) != 1 || got[0].Name != objects.PartScheduler {
		t.Error(got)
	}
}
