package objects

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures are of the load generator on a lab (docs/lab.md) with two nodes.
func cases() []workloadtest.Case {
	out := func(load string) map[string]string { return map[string]string{roleLoad: "testdata/" + load} }
	return []workloadtest.Case{
		{Name: "pods", Params: param.Values{"count": "12"}, Outputs: out("pods.jsonl")},
		{Name: "configmaps", Params: param.Values{"object": ConfigMap, "count": "90", "churn": "10"}, Outputs: out("configmaps.jsonl")},
		{Name: "a rate", Params: param.Values{"object": ConfigMap, "count": "30", "steps": "2", "rate": "50"}, Outputs: out("rate.jsonl")},
		{Name: "its own node", Params: own(), Outputs: out("own.jsonl")},
		{Name: "kubelets", Params: param.Values{"count": "20", "steps": "2", "class": "runc"}, Outputs: out("kubelets.jsonl")},
		{Name: "virtual machines", Params: param.Values{"object": VM, "count": "200", "steps": "4", "nodes": Simulated}, Outputs: out("vms.jsonl")},
		{Name: "a class of virtual machines", Params: param.Values{"object": VM, "class": "gvisor"}, Refused: true},
		{Name: "built images of virtual machines", Params: param.Values{"object": VM, "build": "example.org/x"}, Refused: true},
		{Name: "a class of objects without pods", Params: param.Values{"object": Secret, "class": "gvisor"}, Refused: true},
		{Name: "nodes of objects without pods", Params: param.Values{"object": Service, "nodes": Any}, Refused: true},
		{Name: "a class on nodes that run nothing", Params: param.Values{"nodes": Simulated, "class": "gvisor"}, Refused: true},
		{Name: "more steps than objects", Params: param.Values{"count": "2"}, Refused: true},
		{Name: "more namespaces than objects", Params: param.Values{"namespaces": "61"}, Refused: true},
	}
}

// own are the parameters of a capture of gVisor's pods on one node; most readings within its steps are left out.
func own() param.Values {
	return param.Values{"count": "18", "steps": "6", "nodes": Own, "pause": "1s", "class": "gvisor"}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

// TestImpossible: lines that contradict each other or the study are refused.
func TestImpossible(t *testing.T) {
	b, err := os.ReadFile("testdata/pods.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	first, rest, _ := strings.Cut(text, "\n")
	for what, changed := range map[string]string{
		"a step is missing":         rest,
		"the end is missing":        text[:strings.LastIndex(strings.TrimSpace(text), "\n")],
		"a step comes twice":        first + "\n" + text,
		"a step after the end":      text + first,
		"another number of objects": strings.Replace(text, `"objects":4`, `"objects":5`, 1),
		"more objects than asked":   strings.Replace(text, `"made":4`, `"made":5`, 1),
		"calls without a latency":   strings.Replace(text, `"count":4`, `"count":5`, 1),
		"a negative time":           strings.Replace(text, `"create_s":`, `"create_s":-`, 1),
		"a verb that is none":       strings.Replace(text, `"verb":"create"`, `"verb":"cr=eate"`, 1),
		"pods without starts":       strings.Replace(text, `"start":`, `"x":`, 1),
		"no starts":                 strings.ReplaceAll(text, `"never":0`, `"never":100`),
		"two loads":                 text + text,
		"something else":            text + "{}",
	} {
		if changed == text {
			t.Fatalf("%s: the capture does not have it", what)
		}
		if _, err := workloadtest.Parse(t, New(), roleLoad, param.Values{"count": "12"}, changed); err == nil {
			t.Errorf("%s: it is accepted", what)
		}
	}
}

// TestEnded: a load that ended before its last step has a warning with the reason, and keeps what it reached. What the API server
// warned of is a warning too.
func TestEnded(t *testing.T) {
	b, err := os.ReadFile("testdata/pods.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	lines[1] = strings.Replace(lines[1], `{"step":{`, `{"step":{"ended":true,"why":"the quota is reached",`, 1)
	text := strings.Join(append(lines[:2:2], lines[3:]...), "\n")
	text = strings.Replace(text, `{"end":{`, `{"end":{"warnings":["unknown field \"spec.containerz\""],`, 1)
	v, err := param.Fill(New().Params(), param.Values{"count": "12"})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := New().Parse(roleLoad, v, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"objects-ended": "step 2 of 3 (8 objects): the quota is reached", "objects-api": `the API server warned: unknown field "spec.containerz"`}
	for _, w := range rd.Warnings {
		if text := want[w.Code]; text != "" && strings.Contains(w.Text, text) {
			delete(want, w.Code)
		}
	}
	if len(want) > 0 {
		t.Errorf("warnings: %v", rd.Warnings)
	}
}

// TestSimulatedGuests: figures of guests that nothing booted say so.
func TestSimulatedGuests(t *testing.T) {
	b, err := os.ReadFile("testdata/vms.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for nodes, want := range map[string]bool{Simulated: true, Untainted: false} {
		v, err := param.Fill(New().Params(), param.Values{"object": VM, "count": "200", "steps": "4", "nodes": nodes})
		if err != nil {
			t.Fatal(err)
		}
		rd, err := New().Parse(roleLoad, v, strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if says := slices.ContainsFunc(rd.Warnings, func(w record.Warning) bool { return w.Code == "objects-simulated" }); says != want {
			t.Errorf("nodes %s: %v", nodes, rd.Warnings)
		}
	}
}

// TestAllRefused: a load whose every object the API server refused says so. A load of which it refused a part has the objects that there are.
func TestAllRefused(t *testing.T) {
	b, err := os.ReadFile("testdata/rate.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	v, err := param.Fill(New().Params(), param.Values{"object": ConfigMap, "count": "30", "steps": "2", "rate": "50"})
	if err != nil {
		t.Fatal(err)
	}
	latency := NewHistogram()
	for made := range 2 {
		for range made {
			Note(latency, time.Millisecond)
		}
		text, err := Encode(latency)
		if err != nil {
			t.Fatal(err)
		}
		step, err := json.Marshal(Line{Step: &Step{
			Number: 1, Objects: 15, Made: made, Failed: 15 - made, Create: 1, Busy: 1, Ended: true, Why: "the policy says no",
			Calls: []Call{{Verb: "create", Resource: "configmaps", Count: int64(made), Errors: 1, Latency: text, Server: text}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		rd, err := New().Parse(roleLoad, v, strings.NewReader(string(step)+"\n"+strings.Join(lines[2:], "\n")))
		refused := (*workload.Refused)(nil)
		switch {
		case made == 0 && (!errors.As(err, &refused) || refused.Why != "the API server refused every object: the policy says no"):
			t.Errorf("all refused: %v", err)
		case made > 0 && err != nil:
			t.Error(err)
		case made > 0:
			i := slices.IndexFunc(rd.Samples, func(s record.Sample) bool { return s.Name == "objects" })
			if i < 0 || rd.Samples[i].Value != 1 {
				t.Errorf("one of 15 objects was created: %+v", rd.Samples)
			}
		}
	}
}

// TestPodsRefused: a load that created other objects, and whose every pod the API server refused, says so.
func TestPodsRefused(t *testing.T) {
	b, err := os.ReadFile("testdata/pods.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	v, err := param.Fill(New().Params(), param.Values{"count": "12"})
	if err != nil {
		t.Fatal(err)
	}
	none, err := Encode(NewHistogram())
	if err != nil {
		t.Fatal(err)
	}
	one := NewHistogram()
	Note(one, time.Millisecond)
	latency, err := Encode(one)
	if err != nil {
		t.Fatal(err)
	}
	step, err := json.Marshal(Line{Step: &Step{
		Number: 1, Objects: 4, Made: 1, Failed: 3, Create: 1, Busy: 1, Ended: true, Why: "maximum memory usage is 16Mi", Start: &Starts{Total: none},
		Calls: []Call{{Verb: "create", Resource: "pods", Count: 1, Errors: 3, Latency: latency, Server: latency}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New().Parse(roleLoad, v, strings.NewReader(string(step)+"\n"+strings.Join(lines[3:], "\n")))
	if refused := (*workload.Refused)(nil); !errors.As(err, &refused) || refused.Why != "the API server refused every pod: maximum memory usage is 16Mi" {
		t.Error(err)
	}
}

// TestBound: each verdict, by the readings that lead to it.
func TestBound(t *testing.T) {
	calls := func(n, throttled int64) []Call {
		return []Call{{Verb: "create", Resource: "pods", Count: n, Throttled: throttled}}
	}
	for _, c := range []struct {
		rate float64
		s    Step
		want By
		says string
	}{
		{0, Step{Made: 5, Failed: 5, Why: "exceeded quota"}, ByRefusal, "5 objects were not created: exceeded quota"},
		{0, Step{Made: 5, Start: &Starts{Never: 2, Message: "Insufficient cpu", Ran: 1}}, ByRoom, "Insufficient cpu"},
		{0, Step{Made: 5, Pods: 5, Start: &Starts{Answered: 0.1, Placed: 0.2, Ran: 2, Nodes: 2}}, ByNodes, "2 s until it ran; 2 nodes ran 5 pods"},
		{0, Step{Made: 5, Start: &Starts{Answered: 0.1, Placed: 3, Ran: 2}}, ByScheduler, "3 s until it had a node"},
		{0, Step{Made: 5, Start: &Starts{Answered: 0.1, Launched: 2, Placed: 1, Ran: 1.9, Handed: 1, Booted: 0.5}}, ByController, "2 s until virt-controller had created its pod, 1 s until that had a node, 1.9 s until it ran, 1 s until virt-controller had handed"},
		{0, Step{Made: 5, Pods: 5, Start: &Starts{Answered: 0.1, Launched: 1, Placed: 1, Ran: 1.5, Handed: 1, Booted: 1, Nodes: 2}}, ByNodes, "1 s until the guest ran; 2 nodes ran 5 guests"},
		{0, Step{Made: 25, Create: 11.5, Paced: 11.4, Settle: 0.1, Start: &Starts{Answered: 0.01, Placed: 0.01, Ran: 0.03}}, BySchedule, "30 ms until it ran; the file's schedule took 11.4 s of 11.5 s"},
		{0, Step{Made: 25, Create: 11.5, Paced: 11.4, Settle: 30, Start: &Starts{Answered: 0.01, Placed: 0.01, Ran: 30}}, ByNodes, "30 s until it ran"},
		{20, Step{Made: 200, Create: 10, Late: 0.001, Settle: 2, Start: &Starts{Answered: 0.01, Placed: 0.01, Ran: 2}}, BySchedule, "requests were sent when they were due"},
		{20, Step{Made: 200, Create: 10, Late: 0.001, Settle: 12, Start: &Starts{Answered: 0.01, Placed: 0.01, Ran: 14}}, ByNodes, "14 s until it ran"},
		{0, Step{Made: 5, Start: &Starts{Answered: 5, Placed: 3, Ran: 2}, Create: 1, Busy: 3.9, Calls: calls(100, 0)}, ByAnswers, "all 4 workers waited"},
		{0, Step{Made: 5, Create: 1, Busy: 3.9, Calls: calls(100, 20)}, ByFairness, "429 to 20 requests"},
		{0, Step{Made: 5, Create: 1, Busy: 3.9, Calls: calls(100, 0), Server: &Server{Queued: 1}}, ByFairness, "waited 1 s in the API server's queues"},
		{0, Step{Made: 5, Create: 2, Busy: 1, Limited: 7, Calls: calls(100, 0)}, ByClient, "held requests back for 7 s in all"},
		{50, Step{Made: 5, Create: 2, Busy: 1, Late: 0.0001, Calls: calls(100, 0)}, BySchedule, "sent when they were due"},
		{50, Step{Made: 5, Create: 2, Busy: 7.9, Late: 1, Calls: calls(100, 0)}, ByAnswers, "all 4 workers"},
		{0, Step{Made: 5, Create: 2, Busy: 1, Calls: calls(100, 0)}, ByWorkers, "only 12 % of the time"},
		{0, Step{Made: 5, Create: 2, Asked: 1.1, Busy: 1, Calls: calls(100, 0)}, ByAnswers, "waited for answers"}, // most workers had nothing to do
		{0, Step{Made: 5, Create: 2, Paced: 1.8, Busy: 1, Calls: calls(100, 0)}, BySchedule, "the file's schedule took 1.8 s of 2 s"},
		{0, Step{Made: 5, Create: 2, Paused: 9.5, Busy: 1, Calls: calls(100, 0)}, BySchedule, "the file's pauses took 9.5 s of 11.5 s"},
		{0, Step{Made: 5, Create: 2, Busy: 7.9, Calls: calls(100, 0), Server: &Server{Cores: 1.9, Processors: 2, Store: 7}}, ByServer, "1.90 cores"},
		{0, Step{Made: 5, Create: 2, Busy: 7.9, Calls: calls(100, 0), Server: &Server{Cores: 0.2, Processors: 2, Store: 7, Stores: 100}}, ByStore, "a write to etcd took 70 ms of the 79 ms that a request took"},
		// Others wrote to etcd for longer than all requests took.
		{0, Step{Made: 60, Create: 0.065, Asked: 0.52, Busy: 0.518, Calls: calls(60, 0), Server: &Server{Cores: 0.2, Processors: 2, Store: 7.38, Stores: 3000}}, ByAnswers, "etcd 2.46 ms a write"},
	} {
		b := c.s.Bound(c.rate, 4)
		if b.By != c.want || !strings.Contains(b.Text, c.says) || b.Share <= 0 || b.Share > 1 {
			t.Errorf("%+v, want %s and %q", b, c.want, c.says)
		}
	}
}

// TestNodesBound: what bound pods in their nodes, by the readings of kubelets, processors and disks.
func TestNodesBound(t *testing.T) {
	k := Kubelets{RealPods: 5, Nodes: 2, Pods: 5, Sandbox: 0.41, Create: 0.1, Begin: 0.12, Cores: 1, Processors: 4, Poll: 1.1}
	with := func(change func(k *Kubelets)) *Kubelets {
		out := k
		change(&out)
		return &out
	}
	for name, c := range map[string]struct {
		k    *Kubelets
		ran  float64
		want By
		says string
	}{
		"older than the readings": {nil, 2, ByNodes, "2 s until it ran; 2 nodes ran 5 pods"},
		"no right":                {&Kubelets{RealPods: 5, Missing: "the load lacks the right to get nodes/proxy"}, 2, ByNodes, "ran 5 pods; the load lacks the right to get nodes/proxy"},
		"no right, own node":      {&Kubelets{RealPods: 5, Missing: "the load lacks the right to get nodes/proxy", Cores: 1.9, Processors: 2}, 2, ByNodeCPU, "1.9 of 2 processors were busy; the load lacks"},
		"a restart":               {&Kubelets{RealPods: 5, Missing: "the kubelet of node n1 restarted"}, 2, ByNodes, "n1 restarted"},
		"simulated":               {&Kubelets{Simulated: 2, SimulatedPods: 5}, 2, ByNodes, "2 s until it ran; 2 simulated nodes (kwok) ran 5 pods: kwok's own delay, no runtime"},
		"mostly simulated":        {with(func(k *Kubelets) { k.Simulated, k.SimulatedPods, k.Cores = 1, 6, 4 }), 2, ByNodes, "1 simulated node (kwok) ran 6 pods"},
		"the kubelet":             {&k, 1.9, ByKubelet, "on 2 nodes: 410 ms to create the sandbox, 220 ms to create and start containers, 0 ms to pull images, and 1.27 s that the kubelet and its watch took; the kubelet polled the runtime every 1.1 s; 1.0 of 4 processors were busy"},
		"the runtime":             {&k, 1, ByRuntime, "370 ms that the kubelet"},
		"a pull":                  {with(func(k *Kubelets) { k.Pull = 3 }), 4, ByPull, "3 s to pull images"},
		"processors":              {with(func(k *Kubelets) { k.Cores = 3.3 }), 1, ByNodeCPU, "3.3 of 4 processors"},
		"more than a poll":        {with(func(k *Kubelets) { k.Cores = 3.3 }), 1.9, ByNodeCPU, "1.27 s that the kubelet"},
		"a poll":                  {with(func(k *Kubelets) { k.Cores = 3.3 }), 1.7, ByKubelet, "1.07 s that the kubelet"},
		"a disk":                  {with(func(k *Kubelets) { k.Disk = 0.9 }), 1, ByDisk, "the busiest disk of the load's node was busy for 90 % of the step"},
		"more than it took":       {with(func(k *Kubelets) { k.Sandbox = 9 }), 1, ByRuntime, "0 ms that the kubelet"},
	} {
		s := Step{Made: 5, Pods: 5, Start: &Starts{Answered: 0.1, Placed: 0.2, Ran: c.ran, Nodes: 2}, Kubelets: c.k}
		if b := s.Bound(0, 4); b.By != c.want || !strings.Contains(b.Text, c.says) || b.Share <= 0 || b.Share > 1 {
			t.Errorf("%s: %+v, want %s and %q", name, b, c.want, c.says)
		}
	}
}

// TestKubelets: what kubelets said is among the samples of its step; what they cannot say is refused.
func TestKubelets(t *testing.T) {
	b, err := os.ReadFile("testdata/pods.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	v, err := param.Fill(New().Params(), param.Values{"count": "12"})
	if err != nil {
		t.Fatal(err)
	}
	with := func(k string) (record.Reading, error) {
		return New().Parse(roleLoad, v, strings.NewReader(strings.Replace(string(b), `{"step":{`, `{"step":{"kubelets":{`+k+`},`, 1)))
	}
	rd, err := with(`"nodes":2,"pods":4,"sandbox_s":0.5,"cores":1.5,"processors":2,"disk":0.25`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"kubelets": 2, "start_sandbox": 0.5, "nodes_cpu": 1.5, "node_disk_busy": 0.25}
	for _, s := range rd.Samples {
		if v, is := want[s.Name]; is && s.Value == v && s.Labels == record.MakeLabels(record.LabelStep, "1") {
			delete(want, s.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no sample has %v", want)
	}
	for _, k := range []string{`"nodes":-1`, `"simulated_pods":1000001`, `"sandbox_s":-1`, `"pull_s":86401`, `"cores":-1`, `"disk":3`, `"missing":"` + strings.Repeat("x", maxText+1) + `"`} {
		if _, err := with(k); err == nil {
			t.Errorf("%.40s: it is accepted", k)
		}
	}
}

// TestControl: what the control plane used becomes samples by step. What no kubelet says is refused.
func TestControl(t *testing.T) {
	b, err := os.ReadFile("testdata/pods.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	v, err := param.Fill(New().Params(), param.Values{"count": "12"})
	if err != nil {
		t.Fatal(err)
	}
	with := func(parts string) (record.Reading, error) {
		return New().Parse(roleLoad, v, strings.NewReader(strings.Replace(string(b), `{"step":{`, `{"step":{"control":[`+parts+`],`, 1)))
	}
	rd, err := with(`{"name":"etcd","pods":3,"cores":0.5,"memory_bytes":1e8},{"name":"controller","pods":1,"cores":0.25,"memory_bytes":2e7}`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"etcd_cpu": 0.5, "etcd_memory": 1e8, "controller_cpu": 0.25, "controller_memory": 2e7}
	for _, s := range rd.Samples {
		if v, is := want[s.Name]; is && s.Value == v && s.Labels == record.MakeLabels(record.LabelStep, "1") {
			delete(want, s.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no sample has %v", want)
	}
	etcd := `{"name":"etcd","pods":1,"cores":0.5,"memory_bytes":1}`
	for _, parts := range []string{etcd + "," + etcd, `{"name":"coredns","pods":1}`, `{"name":"etcd","pods":0}`, `{"name":"etcd","pods":1,"cores":-1}`, `{"name":"scheduler","pods":1},` + etcd} {
		if _, err := with(parts); err == nil {
			t.Errorf("%s: it is accepted", parts)
		}
	}
}

// TestPipelineBound: the longest part of an image's way to its pod binds the step. If images wait longer for a worker than they take, it is what the
// workers do.
func TestPipelineBound(t *testing.T) {
	for _, c := range []struct {
		waited, built, pushed, answered, placed, pulled, ran float64
		want                                                 By
		kubelets                                             *Kubelets
	}{
		{0, 3, 1, 0.1, 0.1, 1, 2, ByBuild, nil},
		{0, 1, 3, 0.1, 0.1, 1, 2, ByPush, nil},
		{0, 1, 1, 0.1, 0.1, 3, 4, ByPull, nil},
		{0, 1, 1, 0.1, 0.1, 1, 5, ByNodes, nil},
		{0, 1, 1, 0.1, 0.1, 1, 5, ByRuntime, &Kubelets{RealPods: 1, Nodes: 1, Pods: 1, Sandbox: 2.5, Pull: 9}}, // the pull is a part of its own
		{0, 1, 1, 0.1, 5, 1, 2, ByScheduler, nil},
		{20, 1, 2, 0.1, 5, 1, 2, ByPush, nil},
		{20, 2, 1, 0.1, 5, 1, 2, ByBuild, nil},
	} {
		s := Step{Kubelets: c.kubelets, Start: &Starts{Answered: c.answered, Placed: c.placed, Ran: c.ran, Image: []Stage{{Name: Waited, Part: c.waited}, {Name: Built, Part: c.built}, {Name: Pushed, Part: c.pushed}, {Name: Pulled, Part: c.pulled}}}}
		if b := s.Bound(1, 8); b.By != c.want || b.Share <= 0 || b.Share > 1 {
			t.Errorf("%+v: bound by %+v", c, b)
		}
	}
}

// TestOutage: a step in which the API server was away for a tenth of the time is bound by that, with the reason why it ended.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		down float64
		want By
	}{{0, ByRefusal}, {0.5, ByRefusal}, {2, ByOutage}} {
		s := Step{Create: 8, Settle: 2, Down: c.down, Made: 3, Failed: 1, Why: "connection refused"}
		if b := s.Bound(0, 8); b.By != c.want || !strings.Contains(b.Text, "connection refused") {
			t.Errorf("down for %g s: %+v", c.down, b)
		}
	}
}
