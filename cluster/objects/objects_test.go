package objects

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"tare/param"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

// TestManifests: each kind is one that its API knows, without a field that it does not, and bears its name and labels.
func TestManifests(t *testing.T) {
	o := options{study: "t1", image: "example.org/tare", class: "gvisor", nodes: objects.Simulated, owner: "u", space: "tare-t1"}
	for kind, into := range map[string]any{
		objects.Pod: &corev1.Pod{}, objects.Deployment: &appsv1.Deployment{}, objects.ConfigMap: &corev1.ConfigMap{}, objects.Secret: &corev1.Secret{}, objects.Service: &corev1.Service{},
		objects.VM: &virtv1.VirtualMachineInstance{},
	} {
		o.kind = kind
		m, err := newMaker(&o, "load")
		if err != nil {
			t.Fatal(err)
		}
		text := m.object("o-000001-0")
		strict(t, text, into)
		if strings.Contains(string(text), placeholder) || !strings.Contains(string(text), `"tare/study":"t1"`) || !strings.Contains(string(text), `"name":"o-000001-0"`) {
			t.Errorf("%s: %s", kind, text)
		}
		if has := strings.Contains(string(text), `"nodeSelector":{"type":"simulated"}`) && strings.Contains(string(text), `"tolerations":[{"effect"`); has != objects.HasPods(kind) {
			t.Errorf("%s: nodes are asked for: %t", kind, has)
		}
		if has := strings.Contains(string(text), `"runtimeClassName":"gvisor"`); has != (kind == objects.Pod || kind == objects.Deployment) {
			t.Errorf("%s: a class is asked for: %t", kind, has)
		}
	}
	text, err := namespace(&o, "load", "n", &loadfile.Space{})
	if err != nil {
		t.Fatal(err)
	}
	var ns corev1.Namespace
	if strict(t, text, &ns); len(ns.OwnerReferences) != 1 || ns.OwnerReferences[0].UID != "u" {
		t.Errorf("%s", text)
	}
}

// TestProtobuf: objects of the core API are the same in protobuf as in JSON, with names of any length. Others are sent in JSON.
func TestProtobuf(t *testing.T) {
	o := options{study: "t1", image: "example.org/tare", class: "gvisor", nodes: objects.Simulated}
	type both interface {
		Marshal() ([]byte, error)
		Unmarshal(text []byte) error
	}
	for kind, into := range map[string]func() both{
		objects.Pod: func() both { return &corev1.Pod{} }, objects.Claim: func() both { return &corev1.PersistentVolumeClaim{} },
		objects.ConfigMap: func() both { return &corev1.ConfigMap{} }, objects.Secret: func() both { return &corev1.Secret{} }, objects.Service: func() both { return &corev1.Service{} },
	} {
		o.kind = kind
		m, err := newMaker(&o, "load")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"o-000001-0", "o-000002-0", "o-000001-17", "o-1234567-300"} {
			body, media := m.body(name)
			raw, is := bytes.CutPrefix(body, []byte(protoPrefix))
			var of runtime.Unknown
			got, want := into(), into()
			if media != protoType || !is || of.Unmarshal(raw) != nil || got.Unmarshal(of.Raw) != nil {
				t.Fatalf("%s %s is sent as %s: %q", kind, name, media, body)
			}
			strict(t, m.object(name), want)
			wanted, err := want.Marshal()
			if err != nil || !bytes.Equal(of.Raw, wanted) || of.APIVersion != "v1" || of.Kind == "" {
				t.Errorf("%s %s is %+v (%+v), want %+v: %v", kind, name, got, of.TypeMeta, want, err)
			}
		}
	}
	o.kind = objects.Deployment
	m, err := newMaker(&o, "load")
	if err != nil {
		t.Fatal(err)
	}
	if body, media := m.body("o-1"); media != usualType || !bytes.Equal(body, m.object("o-1")) {
		t.Errorf("a deployment is sent as %s: %q", media, body)
	}
}

// TestRefusal: an answer that refuses has its reason, in JSON and in protobuf; an answer in neither has its code.
func TestRefusal(t *testing.T) {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Message: "exceeded quota: q", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
	plain, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := status.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "Status", APIVersion: "v1"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{string(plain): "exceeded quota: q", protoPrefix + string(wrapped): "exceeded quota: q", protoPrefix + "\xff": "status 403", "<html>": "status 403", "": "status 403"} {
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.WriteString(text)
		_, err := answered(w.Result(), nil)
		if err == nil || err.Error() != want || !isCode(err, http.StatusForbidden) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestBenchmark: in the benchmark, kube-burner creates the same pods as the load.
func TestBenchmark(t *testing.T) {
	file, err := os.ReadFile("../../scripts/bench/studies/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMaker(&options{kind: objects.Pod, image: "bench", nodes: objects.Simulated}, "bench")
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs corev1.Pod
	strict(t, m.object("o-1"), &ours)
	if err := yaml.UnmarshalStrict(bytes.ReplaceAll(file, []byte("{{.Iteration}}"), []byte("1")), &theirs); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(ours.Spec, theirs.Spec) || len(ours.Labels) != len(theirs.Labels) {
		t.Errorf("kube-burner's pod is %+v, ours %+v", theirs, ours)
	}
}

func strict(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// server is an api whose server answers with h.
func server(t *testing.T, h http.HandlerFunc) *api {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &api{http: s.Client(), one: s.Client(), base: s.URL, tally: map[verb]*figures{}}
}

// TestAgain: what may pass is tried again and counted apart; what is refused is not, and says why. An object that an earlier try
// had created is no error.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name                     string
		codes                    []int
		count, failed, throttled int64
		fails                    string
	}{
		{"at once", []int{201}, 1, 0, 0, ""},
		{"throttled", []int{429, 429, 201}, 1, 0, 2, ""},
		{"a server that stumbles, and had done it", []int{500, 409}, 1, 1, 0, ""},
		{"a quota", []int{403}, 0, 1, 0, "exceeded quota"},
		{"a name that is taken", []int{409}, 0, 1, 0, "exceeded quota"},
	} {
		var n atomic.Int64
		a := server(t, func(w http.ResponseWriter, _ *http.Request) {
			code := c.codes[n.Add(1)-1]
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"exceeded quota","reason":"Forbidden"}`))
		})
		v := verb{"create", "pods"}
		_, err := a.do(t.Context(), v, time.Now(), http.MethodPost, "/x", []byte("{}"))
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || int(n.Load()) != len(c.codes) {
			t.Errorf("%s: %v after %d requests", c.name, err, n.Load())
		}
		var s objects.Step
		if err := a.take(&s); err != nil || len(s.Calls) != 1 {
			t.Fatal(s, err)
		}
		if got := s.Calls[0]; got.Count != c.count || got.Errors != c.failed || got.Throttled != c.throttled {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestNoAnswerInTime: if the time ends during a request, its reason is what the server said to the one before.
func TestNoAnswerInTime(t *testing.T) {
	var n atomic.Int64
	hangs := make(chan struct{})
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) > 1 {
			select {
			case <-hangs:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"failed calling webhook x: timeout"}`))
	})
	defer close(hangs)
	ctx, cancel := context.WithTimeout(t.Context(), 2*again)
	defer cancel()
	_, err := a.do(ctx, verb{"create", "pods"}, time.Now(), http.MethodPost, "/x", []byte("{}"))
	if n.Load() != 2 || err == nil || err.Error() != "failed calling webhook x: timeout" {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}

// TestWarnings: what the server warns of is kept once each, a few of them, and only warnings.
func TestWarnings(t *testing.T) {
	var n atomic.Int64
	a := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "unknown field \"spec.containerz\""`)
		w.Header().Add("Warning", "no warning")
		w.Header().Add("Warning", fmt.Sprintf(`299 - "%d %s"`, n.Add(1), strings.Repeat("x", 2*objects.MaxWarning)))
	})
	for range 2 * objects.MaxWarnings {
		if err := a.send(t.Context(), http.MethodPost, "/x", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	got := a.warnings()
	if len(got) != objects.MaxWarnings || got[0] != `unknown field "spec.containerz"` || len(got[1]) != objects.MaxWarning || !strings.HasPrefix(got[1], "1 x") {
		t.Errorf("%q", got)
	}
}

// TestPods: a pod has run once, whatever comes twice, and the steps of its start are told apart. One that does not run keeps its
// reason.
func TestPods(t *testing.T) {
	p := newPods()
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	see := func(object, node, phase string, s float64) {
		var e event[seenPod]
		text := `{"type":"MODIFIED","object":{"metadata":{"labels":{"tare/object":"` + object + `"}},"spec":{"nodeName":"` + node + `"},"status":{"phase":"` + phase + `",
			"conditions":[{"type":"PodScheduled","status":"False","message":"no room"}]}}}`
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		p.see(&e, at(s))
	}
	for _, name := range []string{"a", "b", "c", "never"} {
		p.expect(name, at(0), 1)
	}
	p.answered("a", at(1), nil)
	p.answered("b", at(1), nil)
	p.answered("c", at(1), errors.New("refused"))
	p.answered("never", at(1), nil)
	see("a", "", "Pending", 1)
	see("a", "n1", "Pending", 2)
	see("a", "n1", "Running", 5)
	see("a", "n1", "Running", 6)
	see("b", "n2", "Running", 3)
	see("stranger", "n3", "Running", 3)
	see("never", "", "Pending", 3)
	if p.left != 1 || p.running != 2 {
		t.Fatalf("%d left, %d run", p.left, p.running)
	}
	all, message := p.take()
	got, err := starts(all, at(10), message)
	if err != nil {
		t.Fatal(err)
	}
	got.Total = ""
	if want := (objects.Starts{Never: 1, Answered: 1, Placed: 1.5, Ran: 1.5, Nodes: 2, Message: "no room"}); !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, want %+v", *got, want)
	}
}

// TestGuests: a virtual machine has started when its guest runs, not when its pod does, and the parts of its start are told apart, in
// whatever order the two watches come.
func TestGuests(t *testing.T) {
	p := newPods()
	p.guests = true
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	pod := func(object, node, phase string, s int) {
		var e event[seenPod]
		e.Object.Metadata.Labels.Object, e.Object.Spec.NodeName, e.Object.Status.Phase = object, node, phase
		p.see(&e, at(s))
	}
	machine := func(kind, object, node, phase string, s int) {
		e := event[seenGuest]{Type: kind}
		m := &e.Object
		m.Metadata.Labels.Object, m.Status.NodeName, m.Status.Phase = object, node, phase
		m.Status.Conditions = []condition{{Type: "Synchronized", Status: "False", Message: "no launcher"}}
		p.boots(&e, at(s))
	}
	for _, name := range []string{"a", "behind", "never", "refused"} {
		p.expect(name, at(0), 1)
		p.answered(name, at(1), nil)
	}
	machine("ADDED", "a", "", "Pending", 1)
	pod("a", "", "Pending", 3)
	pod("a", "n1", "Pending", 4)
	pod("a", "n1", "Running", 6)
	if p.left != 4 || p.running != 0 {
		t.Fatalf("%d left, %d run, though no guest does", p.left, p.running)
	}
	machine("MODIFIED", "a", "n1", "Scheduled", 9)
	machine("MODIFIED", "a", "n1", "Running", 10)
	machine("MODIFIED", "a", "n1", "Running", 12)
	machine("MODIFIED", "behind", "n2", "Running", 10) // its pod's watch lags
	machine("MODIFIED", "never", "", "Scheduling", 10)
	machine("DELETED", "never", "", "Running", 10)
	machine("MODIFIED", "stranger", "n3", "Running", 10)
	p.answered("refused", at(1), errors.New("refused"))
	if p.left != 1 || p.running != 2 {
		t.Fatalf("%d left, %d run", p.left, p.running)
	}
	all, message := p.take()
	got, err := starts(all, at(20), message)
	if err != nil {
		t.Fatal(err)
	}
	got.Total = ""
	if want := (objects.Starts{Never: 1, Answered: 1, Launched: 1, Placed: 0.5, Ran: 1, Handed: 6, Booted: 0.5, Nodes: 2, Message: "no launcher"}); !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, want %+v", *got, want)
	}
}

// TestNoKubeVirt: on a cluster without KubeVirt, the reason says so.
func TestNoKubeVirt(t *testing.T) {
	a := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	u, _, err := newUniform(&load{options: options{kind: objects.VM, count: 1, rate: "0"}, api: a, spaces: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.create(t.Context(), 0, time.Now()); err == nil || !strings.Contains(err.Error(), "KubeVirt") {
		t.Error(err)
	}
}

// TestSchedule: requests of the open loop are due at their moments, however long the answers take.
func TestSchedule(t *testing.T) {
	l := &load{}
	var last atomic.Int64
	begin := time.Now()
	every := func(i int) time.Duration { return time.Duration(i) * 5 * time.Millisecond }
	out := l.each(t.Context(), 4, 20, every, func(_ context.Context, i int, due time.Time) (time.Duration, error) {
		if i == 19 {
			last.Store(int64(due.Sub(begin)))
		}
		if i == 3 {
			return time.Second, errors.New("refused")
		}
		return time.Second, nil
	})
	if d := time.Duration(last.Load()); d < 95*time.Millisecond || d > 95*time.Millisecond+time.Second {
		t.Errorf("the last of 20 requests at 200 a second was due after %s", d)
	}
	if out.done != 19 || out.failed != 1 || out.why != "refused" || out.busy != 20*time.Second {
		t.Errorf("%+v", out)
	}
}

// TestMetrics: sums over labels, and of etcd only what changes something.
func TestMetrics(t *testing.T) {
	f, err := os.Open("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := parseMetrics(f)
	if err != nil {
		t.Fatal(err)
	}
	if r.threads != 2 || r.cpu <= 0 || r.began < 1e9 || r.memory < 1e8 || r.queued <= 0 || r.stores <= 0 || r.store <= 0 {
		t.Errorf("%+v", r)
	}
	earlier := *r
	earlier.at, earlier.cpu = r.at.Add(-2*time.Second), r.cpu-1
	if s := r.since(&earlier); s == nil || s.Cores != 0.5 || s.Processors != 2 {
		t.Errorf("%+v", s)
	}
	earlier.began--
	if s := r.since(&earlier); s != nil {
		t.Errorf("readings of two servers are compared: %+v", s)
	}
}

func FuzzMetrics(f *testing.F) {
	for _, name := range []string{"metrics", "kubelet"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("process_cpu_seconds_total{ 1\nprocess_cpu_seconds_total}{ 1\nprocess_cpu_seconds_total{} \n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parseMetrics(strings.NewReader(text))
		_ = (&kubeletReading{took: map[string]float64{}, count: map[string]float64{}}).parse(strings.NewReader(text))
	})
}

// TestRestarted: a server that was away may refuse everything for a while; what it refuses without that, it refuses for good.
func TestRestarted(t *testing.T) {
	for _, c := range []struct {
		name  string
		away  bool
		count int64
	}{{"after an outage", true, 1}, {"without one", false, 0}} {
		var n atomic.Int64
		a := server(t, func(w http.ResponseWriter, _ *http.Request) {
			switch n.Add(1) {
			case 1:
				if c.away {
					panic(http.ErrAbortHandler) // the connection breaks
				}
				w.WriteHeader(http.StatusForbidden)
			case 2, 3:
				w.WriteHeader(http.StatusForbidden)
			default:
				w.WriteHeader(http.StatusCreated)
			}
		})
		_, err := a.do(t.Context(), verb{"create", "pods"}, time.Now(), http.MethodPost, "/x", []byte("{}"))
		var s objects.Step
		if err := a.take(&s); err != nil || len(s.Calls) != 1 {
			t.Fatal(s, err)
		}
		if (err == nil) != c.away || s.Calls[0].Count != c.count || (s.Down > 0) != c.away {
			t.Errorf("%s: %v, %+v", c.name, err, s)
		}
	}
}

// TestHeldNamespace: a namespace that a finalizer holds is not waited for until the end. The load ends with its results, and says what holds it.
func TestHeldNamespace(t *testing.T) {
	c := &cluster{has: map[string]bool{}}
	h := func(w http.ResponseWriter, r *http.Request) {
		if name, is := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"); is && !strings.Contains(name, "/") && r.Method != http.MethodPost {
			n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &metav1.Time{Time: time.Now().Add(-time.Minute)}}}
			n.Status.Conditions = []corev1.NamespaceCondition{
				{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: configmaps. has 1 resource instances"},
				{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource instances"},
			}
			_ = json.NewEncoder(w).Encode(n)
			return
		}
		c.ServeHTTP(w, r)
	}
	var out strings.Builder
	l, err := newLoad(options{study: "t", kind: objects.ConfigMap, count: 1, steps: 1, namespaces: 1, rate: "0", workers: 2, timeout: 10 * time.Second}, server(t, h), func(l objects.Line) error {
		return json.NewEncoder(&out).Encode(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	l.stuck = 300 * time.Millisecond
	if err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := param.Fill(objects.New().Params(), param.Values{"object": objects.ConfigMap, "count": "1", "steps": "1"})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := objects.New().Parse("load", v, strings.NewReader(out.String()))
	if err != nil || len(rd.Warnings) != 1 || !strings.Contains(rd.Warnings[0].Text, ": the finalizer example.org/hold holds 1 configmaps; remove the finalizer") {
		t.Errorf("%v %v: %s", err, rd.Warnings, out.String())
	}
}

// TestChurn: objects that a step replaces are deleted and created, in the words of the API.
func TestChurn(t *testing.T) {
	c := &cluster{has: map[string]bool{}}
	var last *objects.Step
	l, err := newLoad(options{study: "t", kind: objects.ConfigMap, count: 4, steps: 1, namespaces: 1, rate: "0", workers: 2, churn: 50, timeout: 10 * time.Second}, server(t, c.ServeHTTP), func(l objects.Line) error {
		last = cmp.Or(l.Step, last)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, call := range last.Calls {
		got[call.Verb+" "+call.Resource] = call.Count
	}
	if want := map[string]int64{"create configmaps": 6, "delete configmaps": 2}; !maps.Equal(got, want) || last.Why != "" {
		t.Errorf("%v, want %v: %s", got, want, last.Why)
	}
}

// TestBadLuck: whatever makes the API server refuse requests in the second step, the first step is kept, the load ends in time with a reason, and
// the reason says what to do.
func TestBadLuck(t *testing.T) {
	for says, c := range map[string]struct {
		code int
		do   string
	}{
		`configmaps "c" is forbidden: exceeded quota: q, requested: count/configmaps=1`:  {http.StatusForbidden, "; raise the ResourceQuota"},
		`Internal error occurred: failed calling webhook "w": context deadline exceeded`: {http.StatusInternalServerError, "; repair or remove the webhook"},
		"etcdserver: mvcc: database space exceeded":                                      {http.StatusInternalServerError, "; etcd is full"},
		"Too many requests, please try again later.":                                     {http.StatusTooManyRequests, "; the API server sheds load"},
		"Unauthorized": {http.StatusUnauthorized, "; the API server no longer accepts the load's token"},
	} {
		has := &cluster{has: map[string]bool{}}
		var made atomic.Int32
		var out strings.Builder
		l, err := newLoad(options{study: "t", kind: objects.ConfigMap, count: 4, steps: 2, namespaces: 1, rate: "0", workers: 1, timeout: 600 * time.Millisecond}, server(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") && made.Add(1) > 2 {
				w.WriteHeader(c.code)
				_ = json.NewEncoder(w).Encode(metav1.Status{Message: says})
				return
			}
			has.ServeHTTP(w, r)
		}), func(l objects.Line) error { return json.NewEncoder(&out).Encode(l) })
		if err != nil {
			t.Fatal(err)
		}
		if err := l.run(t.Context()); err != nil {
			t.Errorf("%s: %v", says, err)
			continue
		}
		v, err := param.Fill(objects.New().Params(), param.Values{"object": objects.ConfigMap, "count": "4", "steps": "2"})
		if err != nil {
			t.Fatal(err)
		}
		rd, err := objects.New().Parse("load", v, strings.NewReader(out.String()))
		if err != nil || len(rd.Warnings) != 1 || !strings.Contains(rd.Warnings[0].Text, "the load ended at step 2 of 2 (4 objects): ") || !strings.Contains(rd.Warnings[0].Text, says) || !strings.Contains(rd.Warnings[0].Text, c.do) {
			t.Errorf("%s: %v %v", says, err, rd.Warnings)
		}
	}
}
