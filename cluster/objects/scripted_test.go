package objects

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"tare/param"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

var objectName = regexp.MustCompile(`o-[0-9]+-[0-9]+`)

// cluster is a server that keeps objects by their path, and what was asked of it.
type cluster struct {
	mu   sync.Mutex
	has  map[string]bool
	said []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	path := r.URL.Path
	if r.Method == http.MethodPost {
		var o struct {
			Metadata struct{ Name string }
		}
		_ = json.Unmarshal(body, &o)
		path += "/" + cmp.Or(o.Metadata.Name, string(objectName.Find(body))) // or it is protobuf
	}
	exists := c.has[path]
	switch {
	case path == "/metrics":
		w.WriteHeader(http.StatusForbidden)
		return
	case r.Method == http.MethodPost && exists:
		w.WriteHeader(http.StatusConflict)
	case r.Method == http.MethodPost:
		c.has[path] = true
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		for p := range c.has {
			if p == path || strings.HasPrefix(p, path+"/") {
				delete(c.has, p)
			}
		}
	}
	kind := ""
	if r.Method == http.MethodPatch {
		kind = " " + r.Header.Get("Content-Type") + " " + string(body)
	}
	c.said = append(c.said, r.Method+" "+r.URL.Path+kind)
}

// TestScripted: the requests of a file reach the server in their order, its steps are printed as the workload expects them, and
// nothing is left.
func TestScripted(t *testing.T) {
	const jobs = `
jobs:
  - {name: make, jobIterations: 2, namespace: n, objects: [{objectTemplate: c.yml, replicas: 2}]}
  - name: change
    jobType: patch
    objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: make}, objectTemplate: p.yml, patchType: application/merge-patch+json}]
  - {name: look, jobType: read, objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: make}}]}
  - {name: drop, jobType: delete, objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: make, kube-burner.io/replica: "2"}}]}
`
	file := param.Bundle{Text: jobs, Files: map[string]string{
		"c.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-{{.Replica}}}\n", "p.yml": "data: {a: b}\n",
	}}.Value()
	c := &cluster{has: map[string]bool{}}
	var out strings.Builder
	l, err := newLoad(options{study: "t", file: file, workers: 3, timeout: 10 * time.Second}, server(t, c.ServeHTTP), func(l objects.Line) error {
		return json.NewEncoder(&out).Encode(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.has) != 0 {
		t.Errorf("left: %v", c.has)
	}
	count := func(of string) (n int) {
		for _, s := range c.said {
			if strings.HasPrefix(s, of) {
				n++
			}
		}
		return n
	}
	path := func(space, name string) string {
		return "/api/v1/namespaces/" + l.spaces[space[0]-'0'] + "/configmaps" + name
	}
	for of, want := range map[string]int{
		"POST " + path("0", ""): 2, "POST " + path("1", ""): 2, "POST /api/v1/namespaces": 6,
		"PATCH " + path("1", "/c-2") + ` application/merge-patch+json {"data":{"a":"b"}}`: 1,
		"GET " + path("0", "/c-1"): 1, "DELETE " + path("0", "/c-2"): 1, "DELETE " + path("0", "/c-1"): 0,
	} {
		if got := count(of); got != want {
			t.Errorf("%d requests %s, want %d: %v", got, of, want, c.said)
		}
	}
	first := slices.IndexFunc(c.said, func(s string) bool { return strings.HasPrefix(s, "PATCH") })
	if last := slices.IndexFunc(c.said, func(s string) bool { return strings.HasPrefix(s, "DELETE") }); first < 6 || last < first+8 {
		t.Errorf("the order of the requests: %v", c.said)
	}
	v, err := param.Fill(objects.New().Params(), param.Values{loadfile.Param: file})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := objects.New().Parse("load", v, strings.NewReader(out.String()))
	if err != nil || len(rd.Warnings) > 0 {
		t.Errorf("%v %v: %s", err, rd.Warnings, out.String())
	}
}

// TestDress: pods of a file bear the load's labels, and are placed and run as the study says; the object stays one that its API knows.
func TestDress(t *testing.T) {
	const text = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {
		"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"x": "y"}, "initContainers": [{"name": "i"}],
		"containers": [{"name": "c", "image": "example.org/c", "args": ["x"], "env": [{"name": "E", "value": "1"}], "readinessProbe": {"httpGet": {"port": 1}}}]}}}}`
	o := options{study: "t1", image: "example.org/tare", class: "gvisor", nodes: objects.Untainted, containers: objects.AsWritten}
	dressed := func(o options) *appsv1.Deployment {
		r := &loadfile.Request{Kind: &loadfile.Kinds()[8], Name: "d"}
		if err := json.Unmarshal([]byte(text), &r.Fields); err != nil {
			t.Fatal(err)
		}
		b, err := (&load{options: o, id: "id"}).dress(r, "0-7")
		if err != nil {
			t.Fatal(err)
		}
		var d appsv1.Deployment
		strict(t, b, &d)
		return &d
	}
	d := dressed(o)
	spec := d.Spec.Template.Spec
	if d.Labels[labelLoad] != "id" || d.Spec.Template.Labels[labelObject] != "0-7" || d.Spec.Template.Labels["a"] != "b" || d.Spec.Selector.MatchLabels[labelObject] != "" {
		t.Errorf("labels: %v, %v", d.Labels, d.Spec.Template.Labels)
	}
	if *spec.RuntimeClassName != "gvisor" || spec.NodeSelector["x"] != "y" || spec.Containers[0].Image != "example.org/c" || spec.Containers[0].ReadinessProbe == nil {
		t.Errorf("as written: %+v", spec)
	}
	o.containers, o.nodes, o.class = objects.Pause, objects.Simulated, ""
	spec = dressed(o).Spec.Template.Spec
	c := spec.Containers[0]
	if c.Image != "example.org/tare" || c.Command[0] != "/tare-pause" || len(c.Args) > 0 || c.ReadinessProbe != nil || len(c.Env) != 1 || len(spec.InitContainers) > 0 || *spec.TerminationGracePeriodSeconds != 1 {
		t.Errorf("pause: %+v", c)
	}
	if len(spec.NodeSelector) != 1 || spec.NodeSelector["type"] != "simulated" || len(spec.Tolerations) != 1 || spec.RuntimeClassName != nil {
		t.Errorf("simulated: %+v", spec)
	}
}

// TestManyPods: an object counts when all of its pods run. One that a controller makes in the place of another counts, one too many
// does not.
func TestManyPods(t *testing.T) {
	p := newPods()
	see := func(kind, name, phase string) {
		var e event[seenPod]
		e.Type, e.Object.Metadata.Name, e.Object.Metadata.Labels.Object, e.Object.Status.Phase = kind, name, "d", phase
		p.see(&e, time.Now())
	}
	p.expect("d", time.Now(), 3)
	see("ADDED", "a", "Running")
	see("ADDED", "b", "Pending")
	see("ADDED", "c", "Pending")
	see("DELETED", "b", "Pending")
	see("ADDED", "e", "Succeeded")
	see("ADDED", "f", "Running")
	if p.left != 1 || p.running != 2 {
		t.Errorf("%d left, %d run", p.left, p.running)
	}
	see("MODIFIED", "c", "Running")
	if p.left != 0 || p.none != nil {
		t.Errorf("%d left", p.left)
	}
	p.answered("d", time.Now(), nil)
	if all, _ := p.take(); len(all) != 3 {
		t.Errorf("%d starts", len(all))
	}
}
