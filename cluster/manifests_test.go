package cluster

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"tare/catalogue"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/workload"
	workloadall "tare/workload/all"
)

var update = flag.Bool("update", false, "write the manifests anew")

const planned = `study: planned
sandboxes:
  queues: {kind: pod, class: kata-qemu, annotations: {example.org/queues: $queues}, tolerations: [bench], priority: high, request: {cpu: 250m}, networks: [fast]}
  host: {kind: pod, network: host, namespaces: host, node-selector: {disk: ssd}}
factors: {sandbox: [process, queues, host], queues: [4], default_vcpus: [all], cpu-limit: [1], memory-limit: [64MiB]}
workloads: {rr: {kind: net, mode: rr, connections: [1, 2]}}
sentinel: off
`

// made are the manifests of the study above, at a site.
func made(t *testing.T, s *Site, cat study.Catalogue) []Manifest { return madeOf(t, planned, s, cat) }

func madeOf(t *testing.T, text string, s *Site, cat study.Catalogue) []Manifest {
	t.Helper()
	st, err := study.Parse("planned.yaml", []byte(text), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.api == nil {
		s.Without(st)
	}
	loads := map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		loads[w.Name()] = w
	}
	all, skips, err := s.Manifests(site.Request{Study: st, Catalogue: cat}, loads)
	if err != nil || len(skips) > 0 {
		t.Fatal(skips, err)
	}
	return all
}

// without is what studies can be made of where no cluster is known.
func without() study.Catalogue {
	cat := catalogue.Of(workloadall.Workloads(), []sandbox.Kind{pod.New(pod.Class{Name: sandbox.Native}, nil, nil, nil)}, nil)
	cat.Others = pod.ParamsOf
	cat.Elsewhere = pod.ParamsOf("kata")
	return cat
}

// TestManifests holds all that a study makes on a cluster. `go test ./cluster -run Manifests -update`
// writes it anew.
func TestManifests(t *testing.T) {
	var texts []string
	for _, m := range made(t, &Site{Image: "registry.example.org/tare@sha256:1", Observe: true}, without()) {
		text, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	got, file := strings.Join(texts, "---\n"), filepath.Join("testdata", "manifests.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-%s +made)\n%s", file, d)
	}
	if n := strings.Count(got, "\ndata:"); n != 0 {
		t.Errorf("%d Secrets have data", n)
	}
}

// TestManifestsOfTwoNodes: without a cluster, too, the ends have a node each.
func TestManifestsOfTwoNodes(t *testing.T) {
	const text = "study: two\nfactors: {sandbox: [process], link-path: [nodes]}\nworkloads: {rr: {kind: net, mode: rr}}\nsentinel: off\n"
	on := map[string]string{}
	for _, m := range madeOf(t, text, &Site{}, without()) {
		if p, is := m.Object.(*corev1.Pod); is && p.Labels[pod.LabelRole] != "" {
			on[p.Labels[pod.LabelRole]] = p.Spec.NodeSelector[corev1.LabelHostname]
		}
	}
	if want := map[string]string{"server": someNode, "client": otherNode}; !maps.Equal(on, want) {
		t.Errorf("the ends are on %v, want %v", on, want)
	}
}

// TestManifestsOfSpreadCopies: without a cluster, too, copies are on different nodes.
func TestManifestsOfSpreadCopies(t *testing.T) {
	const text = "study: two\nfactors: {sandbox: [process], copies: [3], copies-on: [spread]}\nworkloads: {cpu: {}}\nsentinel: off\n"
	on := map[string]string{}
	cat := without()
	cat.Nodes = true
	for _, m := range madeOf(t, text, &Site{}, cat) {
		if p, is := m.Object.(*corev1.Pod); is && p.Labels[pod.LabelRole] != "" {
			on[p.Labels[pod.LabelRole]] = p.Spec.NodeSelector[corev1.LabelHostname]
		}
	}
	if want := map[string]string{"main": someNode, "main-2": otherNode, "main-3": someNode}; !maps.Equal(on, want) {
		t.Errorf("the copies are on %v, want %v", on, want)
	}
}

// TestManifestsShared: in an existing namespace, no namespace and no quota is made.
func TestManifestsShared(t *testing.T) {
	for _, m := range made(t, &Site{Namespace: "bench", Observe: true}, without()) {
		kind, err := kube.KindOf(m.Object)
		if err != nil || kind.Kind == "Namespace" || kind.Kind == "ResourceQuota" || m.Object.GetNamespace() != "bench" {
			t.Errorf("%s %s in %q: %v", kind.Kind, m.Object.GetName(), m.Object.GetNamespace(), err)
		}
	}
}

// server is an API server that refuses pods on the host's network, and notes what is made and deleted.
type server struct {
	mu            sync.Mutex
	made, deleted []string
	tried         int
}

func (v *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body) // what is lost shows in the test
	switch {
	case r.Method == http.MethodDelete:
		v.deleted = append(v.deleted, r.URL.Path)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case r.URL.Query().Get("dryRun") != "All":
		v.made = append(v.made, r.URL.Path)
		_, _ = w.Write(body)
	case strings.HasSuffix(r.URL.Path, "/rolebindings"): // as for a user who is not an administrator
		v.tried++
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": `roles.rbac.authorization.k8s.io "c" not found`})
	case strings.Contains(string(body), `"hostNetwork":true`):
		v.tried++
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "violates PodSecurity"})
	default:
		v.tried++
		_, _ = w.Write(body)
	}
}

// TestJudge: each object is judged by a dry run, and nothing but the namespaces is made and deleted again.
func TestJudge(t *testing.T) {
	v := &server{}
	at := httptest.NewServer(v)
	defer at.Close()
	config := filepath.Join(t.TempDir(), "config")
	err := os.WriteFile(config, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "`+at.URL+`"}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := aSite()
	s.Observe = true
	s.classes = append(s.classes, pod.Class{Name: "gvisor", Class: "gvisor", Handler: "runsc"}, pod.Class{Name: "kata-qemu", Class: "kata-qemu", Handler: "kata"})
	if err := s.Reach(kube.Where{Kubeconfig: config}); err != nil {
		t.Fatal(err)
	}
	all := made(t, s, catalogue.Of(workloadall.Workloads(), s.Kinds(), nil))
	said, err := s.Judge(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i, j := range said {
		text, err := all[i].Text()
		if err != nil {
			t.Fatal(err)
		}
		if (j.Unjudged != "") != (j.Kind == "RoleBinding") {
			t.Errorf("%s %s is unjudged: %q", j.Kind, j.Name, j.Unjudged)
		}
		if onHost := strings.Contains(text, "hostNetwork: true"); onHost != (j.Refused != "") {
			t.Errorf("%s %s: %q", j.Kind, j.Name, j.Refused)
		} else if onHost {
			refused++
		}
	}
	if len(said) != len(all) || v.tried != len(all) || refused == 0 || strings.Join(v.made, " ") != "/api/v1/namespaces /api/v1/namespaces" || len(v.deleted) != 2 {
		t.Errorf("%d of %d judged, %d refused, made %v, deleted %v", len(said), len(all), refused, v.made, v.deleted)
	}
}
