package objects

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"tare/collect/system"
	"tare/record"
	"tare/workload/objects"
)

// TestKubeletMetrics: the sums and counts in the text of a real kubelet, without the lines of other metrics.
func TestKubeletMetrics(t *testing.T) {
	text, err := os.ReadFile("testdata/kubelet.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := &kubeletReading{took: map[string]float64{}, count: map[string]float64{}}
	if err := r.parse(strings.NewReader(string(text))); err != nil {
		t.Fatal(err)
	}
	for op, want := range map[string][2]float64{
		opSandbox: {112.481704676, 225}, opCreate: {8.910336475000001, 225}, opBegin: {51.94328307900002, 225}, opPull: {8.920807281000002, 3},
		opQueue: {2.670732253, 225}, opPoll: {1393.806678878999, 1379},
	} {
		if got := [2]float64{r.took[op], r.count[op]}; got != want {
			t.Errorf("%s: %v, want %v", op, got, want)
		}
	}
	if r.began != 1.79595856694e9 || r.used != 53162.885713443 || r.usedAt != 1795959955.693 {
		t.Errorf("%+v", *r)
	}
	if err := r.parse(strings.NewReader(metricUsed + " many\n")); err == nil {
		t.Error("a word passes for a number")
	}
}

// lab is an API server with two real nodes and a simulated one.
type lab struct {
	pods   float64 // that the kubelets started
	began  float64
	denies string // the node whose kubelet the load may not read
	boot   string // of node n1
}

func (l *lab) serve(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/"), "/")
	switch {
	case r.URL.Path == "/api/v1/nodes":
		if r.Header.Get("Accept") != metadataType {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		_, _ = fmt.Fprint(w, `{"items":[{"metadata":{"name":"n1","labels":{"type":"real"}}},{"metadata":{"name":"n2"}},{"metadata":{"name":"s1","labels":{"type":"simulated"}}}]}`)
	case rest == "":
		_, _ = fmt.Fprintf(w, `{"status":{"capacity":{"cpu":"4"},"nodeInfo":{"bootID":%q}}}`, name+l.boot)
	case name == l.denies:
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","message":"nodes \"%s\" is forbidden: User \"u\" cannot get resource \"nodes/proxy\" in API group \"\" at the cluster scope"}`, name)
	case rest == "proxy/metrics":
		_, _ = fmt.Fprintf(w, "%s %g\n", metricBegan, l.began)
		for op, each := range map[string]float64{opSandbox: 0.5, opCreate: 0.1, opBegin: 0.2, "list_containers": 7} {
			_, _ = fmt.Fprintf(w, "%s_bucket{operation_type=%[2]q,le=\"1\"} 9\n%[1]s_sum{operation_type=%[2]q} %[3]g\n%[1]s_count{operation_type=%[2]q} %[4]g\n", metricRuntime, op, each*l.pods, l.pods)
		}
		_, _ = fmt.Fprintf(w, "%s_sum %g\n%[1]s_count %[3]g\n", metricQueue, l.pods/4, l.pods)
	default:
		_, _ = fmt.Fprintf(w, "%s %g %d\n", metricUsed, 100*l.pods, time.Now().UnixMilli())
	}
}

// TestReadKubelets: means for a pod over the nodes that took some, and the reason if a kubelet could not be read or restarted.
func TestReadKubelets(t *testing.T) {
	on := func(names ...string) (all []*start) {
		for _, n := range names {
			all = append(all, &start{node: n, ran: time.Now()})
		}
		return append(all, &start{}) // which did not run
	}
	for name, c := range map[string]struct {
		at      string // nodes of the load
		denies  string
		restart bool
		pods    []*start
		want    objects.Kubelets
	}{
		"two nodes":    {objects.Untainted, "", false, on("n1", "n2", "n2"), objects.Kubelets{RealPods: 3, Nodes: 2, Pods: 4, Sandbox: 0.5, Create: 0.1, Begin: 0.2, Queued: 0.25}},
		"one of two":   {objects.Untainted, "n2", false, on("n1"), objects.Kubelets{RealPods: 1, Nodes: 1, Pods: 2, Sandbox: 0.5, Create: 0.1, Begin: 0.2, Queued: 0.25}},
		"no right":     {objects.Untainted, "n2", false, on("n2"), objects.Kubelets{RealPods: 1, Missing: "the load lacks the right to get nodes/proxy, so it could not read the kubelets' metrics"}},
		"a restart":    {objects.Untainted, "", true, on("n1"), objects.Kubelets{RealPods: 1, Missing: "the kubelet of node n1 restarted"}},
		"a new node":   {objects.Untainted, "", false, on("n9"), objects.Kubelets{RealPods: 1, Missing: "the load reads 20 nodes at most, and 1 took pods"}},
		"both kinds":   {objects.Any, "", false, on("n1", "s1", "s1"), objects.Kubelets{Simulated: 1, SimulatedPods: 2, RealPods: 1, Nodes: 1, Pods: 2, Sandbox: 0.5, Create: 0.1, Begin: 0.2, Queued: 0.25}},
		"simulated":    {objects.Simulated, "", false, on("s1", "s2", "s2"), objects.Kubelets{Simulated: 2, SimulatedPods: 3}},
		"its own node": {objects.Own, "", false, on("n1"), objects.Kubelets{RealPods: 1, Nodes: 1, Pods: 2, Sandbox: 0.5, Create: 0.1, Begin: 0.2, Queued: 0.25}},
		"none ran":     {objects.Untainted, "", false, on(), objects.Kubelets{}},
	} {
		l := &lab{pods: 5, began: 1, denies: c.denies}
		k := findKubelets(t.Context(), server(t, l.serve), &options{nodes: c.at, node: "n1"})
		before := k.read(t.Context())
		l.pods += 2
		if c.restart {
			l.began++
		}
		got := k.since(before, k.read(t.Context()), c.pods)
		got.Cores, got.Processors = 0, 0
		round := func(x *float64) { *x = float64(int(*x*1000+0.5)) / 1000 }
		for _, x := range []*float64{&got.Sandbox, &got.Create, &got.Begin, &got.Queued} {
			round(x)
		}
		if *got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, c.want)
		}
	}
}

// TestNodeProcessors: a node's use of its processors counts if the kubelet read it in the step; that of the load's own kernel is read there.
func TestNodeProcessors(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		from, to float64 // when the kubelet read the node
		want     float64
	}{
		"in the step":     {1000, 1010, 2},
		"mostly":          {996, 1008, 2},
		"mostly earlier":  {985, 1004, -1},
		"a small part":    {1000, 1004, -1},
		"no new readings": {1000, 1000, -1},
	} {
		early, late := &kubeletReading{used: 10, usedAt: c.from}, &kubeletReading{used: 10 + 2*(c.to-c.from), usedAt: c.to}
		if got := late.cores(early, begin, begin.Add(10*time.Second)); got != c.want {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	if got := (*kubeletReading)(nil).cores(nil, begin, begin); got != -1 {
		t.Errorf("nothing: %g", got)
	}
	busy := func(x float64) *usage {
		return &usage{cpu: 10 * x, disks: map[record.Labels]float64{"a": x, "b": x / 2}}
	}
	if cpu, disk := busy(5).since(busy(2)); cpu != 30 || disk != 3 {
		t.Errorf("%g s of processors, %g s of a disk", cpu, disk)
	}
	if cpu, _ := busy(5).since(nil); cpu >= 0 {
		t.Errorf("without an earlier reading: %g", cpu)
	}
	if system.New().Check() != nil {
		t.Skip("this system does not say how its processors are used")
	}
	k := &kubelets{own: openMachine(t.Context())}
	defer k.close()
	if u := k.own.usage(); u == nil || u.cpu <= 0 {
		t.Errorf("%+v", u)
	}
}
