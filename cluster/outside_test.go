package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/catalogue"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/workload"
	"tare/workload/ingress"
	"tare/workload/ingress/routes"
)

// answering is a cluster that answers lists: by path, and with a selector PATH?LABELS. It has nothing at other paths, and refuses what is
// "forbidden".
func answering(t *testing.T, answers map[string]string) *Site {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		path := r.URL.Path
		if l := r.URL.Query().Get("labelSelector"); l != "" {
			path += "?" + l
		}
		text, is := answers[path]
		code := http.StatusOK
		switch {
		case !is:
			code = http.StatusNotFound
		case text == "forbidden":
			code = http.StatusForbidden
		}
		if code != http.StatusOK {
			w.WriteHeader(code)
			text = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"%s: no"}`, code, strings.ReplaceAll(http.StatusText(code), " ", ""), path)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", h.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Site{Observe: true, Say: t.Logf}
	if err := s.Reach(kube.Where{Kubeconfig: file, QPS: 1000}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node1", "node2"} {
		s.ready = append(s.ready, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "host-" + name}}})
	}
	return s
}

// TestRoutes: the routes of a cluster become a file that package routes reads. What no route needs stays in the cluster.
func TestRoutes(t *testing.T) {
	const ingresses = `{"kind":"IngressList","apiVersion":"networking.k8s.io/v1","metadata":{},"items":[{"metadata":{"name":"shop","namespace":"web",
"annotations":{"haproxy-ingress.github.io/ssl-passthrough":"true","auth":"secret"}},"spec":{"rules":[{"host":"a.example.com","http":{"paths":[{"path":"/","backend":{"service":{"name":"cart"}}}]}}]},
"status":{"loadBalancer":{}}}]}`
	const openshift = `{"kind":"RouteList","apiVersion":"route.openshift.io/v1","metadata":{},"items":[{"metadata":{"name":"r","namespace":"web"},
"spec":{"host":"b.example.com","tls":{"termination":"edge","key":"secret"},"to":{"kind":"Service","name":"x"}},"status":{"ingress":[{"routerName":"default","host":"h"}]}}]}`
	s := answering(t, map[string]string{
		"/apis/networking.k8s.io/v1/namespaces/web/ingresses":         ingresses,
		"/apis/networking.k8s.io/v1/ingresses?app=shop":               ingresses,
		"/apis/networking.k8s.io/v1/namespaces/none/ingresses":        `{"kind":"IngressList","apiVersion":"networking.k8s.io/v1","metadata":{},"items":[]}`,
		"/api/v1/namespaces/none":                                     `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"none"}}`,
		"/api/v1/namespaces/hidden":                                   "forbidden",
		"/apis/networking.k8s.io/v1/namespaces/closed/ingresses":      "forbidden",
		"/apis/route.openshift.io/v1/namespaces/web/routes":           openshift,
		"/apis/gateway.networking.k8s.io/v1/namespaces/web/tlsroutes": "forbidden",
		"/apis/gateway.networking.k8s.io/v1/namespaces/web/httproutes": `{"kind":"HTTPRouteList","apiVersion":"gateway.networking.k8s.io/v1","metadata":{},
"items":[{"metadata":{"name":"h","namespace":"web"},"spec":{"parentRefs":[{"name":"gw","namespace":"infra"}],"hostnames":["c.example.com"]}}]}`,
		"/apis/gateway.networking.k8s.io/v1beta1/gateways": `{"kind":"GatewayList","apiVersion":"gateway.networking.k8s.io/v1beta1","metadata":{},
"items":[{"metadata":{"name":"gw","namespace":"infra"},"spec":{"listeners":[{"name":"s","protocol":"HTTPS"}]}},{"metadata":{"name":"unused","namespace":"infra"},"spec":{"listeners":[]}}]}`,
	})
	for from, c := range map[string]struct {
		targets int
		err     string
	}{
		"web": {3, ""}, "*/app=shop": {1, ""}, "none": {0, "Route in the namespace none; write another namespace after cluster:, or name"},
		"none/app=x": {0, "Route in the namespace none with the labels app=x; write other labels after the namespace, or leave /app=x out"},
		"gone":       {0, "has no namespace gone; write another namespace after cluster:"}, "hidden": {0, "Route in the namespace hidden; write"},
		"*": {0, "Route in any namespace; create one, or name a file with such objects"}, "*/app=x": {0, "Route in any namespace with the labels app=x; write other labels"},
		"closed": {0, "cannot read the routes"}, "Web": {0, "write * for all namespaces"}, "web/a b": {0, "is not a selector"},
	} {
		text, err := s.Routes(t.Context(), from)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %s", from, err, c.err)
			}
			continue
		}
		list, err := routes.Parse(string(text))
		if err != nil || len(list.Targets) != c.targets || list.Targets[0].TLS != routes.Passthrough {
			t.Errorf("%s: %v, %+v\n%s", from, err, list, text)
		}
		if strings.Contains(string(text), "secret") || strings.Contains(string(text), "loadBalancer") {
			t.Errorf("%s: it has too much:\n%s", from, text)
		}
		if from == "web" && (len(list.Pods) != 2 || list.Targets[1].TLS != routes.Edge || list.Targets[2].TLS != routes.Edge || strings.Contains(string(text), "unused")) {
			t.Errorf("%+v", list)
		}
	}
}

// TestNeighbours: the pods that a load passes through are found by their labels, by a Service or by its address. They get an observer on
// their nodes.
func TestNeighbours(t *testing.T) {
	pods := func(all ...string) string {
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for _, one := range all {
			name, node, _ := strings.Cut(one, "@")
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "infra", UID: "u"}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			if name == "done" {
				p.Status.Phase = corev1.PodSucceeded
			}
			list.Items = append(list.Items, p)
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("p%02d@node1", i))
	}
	const slice = `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[{"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.2"],"targetRef":{"kind":"Pod","name":"b"}}]}]}`
	s := answering(t, map[string]string{
		"/api/v1/namespaces/infra/pods?app=one":  pods("a@node1", "b@node2", "done@node1", "far@node9"),
		"/api/v1/namespaces/infra/pods?app=many": pods(append(many, "z@node2")...),
		"/api/v1/namespaces/infra/pods?app=none": pods(),
		"/api/v1/namespaces/infra/pods":          pods("a@node1", "b@node2"),
		"/api/v1/services":                       `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"name":"x","namespace":"infra"},"spec":{"clusterIPs":["10.96.0.9"]},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}]}`,
		"/apis/discovery.k8s.io/v1/namespaces/infra/endpointslices?kubernetes.io/service-name=x": slice,
		"/apis/discovery.k8s.io/v1/namespaces/web/endpointslices?kubernetes.io/service-name=y":   "forbidden",
	})
	loads := map[string]workload.Workload{"ingress": ingress.New()}
	const objects = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: shop, namespace: infra}\nspec: {rules: [{host: a.example.com, http: {paths: [{path: /, backend: {service: {name: x}}}]}}]}\n"
	for more, c := range map[string]struct{ controller, backend, err string }{
		"address: 10.0.0.1, controller: infra/app=one":  {"infra/a@host-node1 infra/b@host-node2", "infra/b@host-node2", ""},
		"address: 10.0.0.1, controller: infra/app=none": {"", "", "no pod with these labels runs"},
		"address: 192.0.2.7":                            {"infra/b@host-node2", "infra/b@host-node2", ""},
		"address: 10.0.0.1":                             {"no Service has the address 10.0.0.1; write controller: NAMESPACE/LABELS", "infra/b@host-node2", ""},
		"address: 10.0.0.1, controller: infra/app=many": {"infra/p00@host-node1 infra/z@host-node2 infra/p01@host-node1 infra/p02@host-node1 infra/p03@host-node1 infra/p04@host-node1 infra/p05@host-node1 infra/p06@host-node1 of 21", "infra/b@host-node2", ""},
	} {
		text := "study: s\nfactors: {sandbox: [process, other]}\nworkloads:\n  w: {kind: ingress, objects: o, " + more + "}\n"
		cat := catalogue.Of([]workload.Workload{ingress.New()}, (&Brief{Classes: []pod.Class{{Name: sandbox.Native}, {Name: "other", Class: "other", Handler: "other"}}}).Kinds(), nil)
		cat.ReadFile = func(string) ([]byte, error) { return []byte(objects), nil }
		st, err := study.Parse("s.yaml", []byte(text), cat, nil)
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.neighbours(t.Context(), site.Request{Study: st, Catalogue: cat}, loads)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %s", more, err, c.err)
			}
			continue
		}
		for key, n := range found {
			said := n.Why
			for i, p := range n.Pods {
				said += map[bool]string{true: " "}[i > 0] + p.Name + "@" + p.Node
			}
			if n.All > len(n.Pods) {
				said += fmt.Sprintf(" of %d", n.All)
			}
			want := c.controller
			if strings.Contains(key, `"backend"`) {
				want = c.backend
			}
			if said != want {
				t.Errorf("%s: %s: %s, want %s", more, key, said, want)
			}
		}
		b := Brief{Nodes: []record.Node{{Name: "host-node1"}}, Neighbours: found}
		if got := strings.Join(b.observed(), " "); got != "host-node1 host-node2" {
			t.Errorf("%s: observers on %s", more, got)
		}
	}
}
