package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// asked is a request as the rights of RBAC see it
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb).
type asked struct {
	verb, group, resource string
	whole                 bool // without a namespace
}

func (a asked) String() string {
	return strings.TrimSpace(a.verb + " " + strings.Trim(a.group+"/"+a.resource, "/"))
}

// fakeAPI is an API server that does what it is asked, as far as tare needs it: a pod that was
// created is ready at once, or fails. It notes what it was asked.
type fakeAPI struct {
	fails  bool              // pods fail
	denies string            // a resource that the user has no rights on
	lacks  string            // a namespace that does not exist
	quota  string            // what a quota demands of pods that state nothing
	bounds [2]string         // the items of the lists of ResourceQuotas and of LimitRanges, in JSON
	others map[string]string // pods, in JSON, by the field selector that lists them
	vms    string            // what KubeVirt's webhook answers; "": there is no KubeVirt
	starts func(*corev1.Pod) // what a pod does that is created; nil: nothing

	mu    sync.Mutex
	asked map[asked]bool
	pods  map[string]*corev1.Pod // by path
	brief []byte                 // of the last coordinator

	grants string               // a resource on which the user can give no right; "": he can give all
	roles  []rbacv1.ClusterRole // that were sent
}

// elsewhereNamespace is not the study's.
const elsewhereNamespace = "infra"

func newFake(t *testing.T) (*fakeAPI, kube.Where) {
	t.Helper()
	s := &fakeAPI{asked: map[asked]bool{}, pods: map[string]*corev1.Pod{}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", h.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, kube.Where{Kubeconfig: file, QPS: 1000}
}

// ServeHTTP answers one request.
func (s *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /api/v1/... or /apis/GROUP/VERSION/..., then [namespaces/NAME/]RESOURCE[/NAME[/SUBRESOURCE]].
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	a := asked{whole: true}
	if len(parts) == 1 { // the list of groups, which everybody may read
		if s.vms == "" {
			_, _ = w.Write([]byte(`{"groups": []}`))
		} else {
			_, _ = w.Write([]byte(`{"groups": [{"name": "kubevirt.io"}]}`))
		}
		return
	}
	if parts[0] == "apis" {
		a.group, parts = parts[1], parts[3:]
	} else {
		parts = parts[2:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		a.whole, parts = parts[1] == elsewhereNamespace, parts[2:] // a right there is one in all namespaces
	}
	a.resource = parts[0]
	if len(parts) > 2 {
		a.resource += "/" + parts[2]
	}
	watch := r.URL.Query().Get("watch") != ""
	switch named := len(parts) > 1; {
	case r.Method == http.MethodPost:
		a.verb = "create"
	case r.Method == http.MethodDelete && named:
		a.verb = "delete"
	case r.Method == http.MethodDelete:
		a.verb = "deletecollection"
	case watch:
		a.verb = "watch"
	case named:
		a.verb = "get"
	default:
		a.verb = "list"
	}
	w.Header().Set("Content-Type", "application/json")
	if a.resource == "selfsubjectaccessreviews" { // which everybody may create
		var review authorizationv1.SelfSubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Allowed = review.Spec.ResourceAttributes.Resource != s.denies
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	s.mu.Lock()
	s.asked[a] = true
	s.mu.Unlock()
	s.answer(w, r, a)
}

func (s *fakeAPI) answer(w http.ResponseWriter, r *http.Request, a asked) {
	kinds := map[string]string{"pods": "PodList", "nodes": "NodeList", "namespaces": "NamespaceList", "serviceaccounts": "ServiceAccountList", "storageclasses": "StorageClassList", "resourcequotas": "ResourceQuotaList", "limitranges": "LimitRangeList", "persistentvolumeclaims": "PersistentVolumeClaimList",
		"ingresses": "IngressList", "gateways": "GatewayList", "httproutes": "HTTPRouteList", "tlsroutes": "TLSRouteList", "backendtlspolicies": "BackendTLSPolicyList", "routes": "RouteList", "endpointslices": "EndpointSliceList", "services": "ServiceList"}
	version := "v1"
	if a.group != "" {
		version = a.group + "/v1"
	}
	gone := func() {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.resource == "pods/portforward":
		gone()
	case a.verb == "create" && s.lacks != "" && strings.Contains(r.URL.Path, "/namespaces/"+s.lacks+"/"):
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"namespaces %q not found","details":{"name":%[1]q,"kind":"namespaces"}}`, s.lacks)
	case a.verb == "create" && a.resource == "pods":
		p := &corev1.Pod{}
		_ = json.NewDecoder(r.Body).Decode(p)
		if s.quota != "" && len(p.Spec.Containers[0].Resources.Limits) == 0 {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden: failed quota: q: must specify %s for: tare"}`, s.quota)
			return
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		if s.fails {
			p.Status.Conditions = nil
		} else if p.Spec.Containers[0].Command[2] == "noop" {
			p.Status.Phase = corev1.PodSucceeded
		}
		if r.URL.Query().Get("dryRun") == "" {
			if s.starts != nil {
				s.starts(p)
			}
			s.pods[r.URL.Path+"/"+p.Name] = p
		}
		_ = json.NewEncoder(w).Encode(p)
	case a.resource == "virtualmachineinstances" && s.vms != admits:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":400}`, s.vms)
	case a.resource == "kubevirts":
		_, _ = io.WriteString(w, `{"kind":"KubeVirtList","apiVersion":"kubevirt.io/v1","items":[{"status":{"observedKubeVirtVersion":"v1.6.0"}}]}`)
	case a.verb == "create" && a.resource == "clusterroles":
		var role rbacv1.ClusterRole
		_ = json.NewDecoder(r.Body).Decode(&role)
		if s.roles = append(s.roles, role); slices.ContainsFunc(role.Rules, func(p rbacv1.PolicyRule) bool { return slices.Contains(p.Resources, s.grants) }) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"attempting to grant RBAC permissions not currently held"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(role)
	case a.verb == "create":
		body, _ := io.ReadAll(r.Body)
		var secret corev1.Secret
		if json.Unmarshal(body, &secret) == nil && secret.Data[briefFile] != nil {
			s.brief = secret.Data[briefFile]
		}
		_, _ = w.Write(body)
	case a.verb == "watch" && a.resource == "pods" && s.fails:
		for _, p := range s.pods {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
		}
	case a.verb == "watch": // it ends at once
	case a.whole && a.verb == "list" && a.resource == s.denies:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case a.verb == "list" && a.resource == "nodes":
		_ = json.NewEncoder(w).Encode(corev1.NodeList{Items: []corev1.Node{node("node1"), node("node2")}})
	case a.resource == "runtimeclasses":
		_, _ = io.WriteString(w, `{"kind":"RuntimeClassList","apiVersion":"node.k8s.io/v1","items":[{"metadata":{"name":"gvisor"},"handler":"runsc"}]}`)
	case a.verb == "list":
		items := map[string]string{"resourcequotas": s.bounds[0], "limitranges": s.bounds[1], "pods": s.others[r.URL.Query().Get("fieldSelector")]}[a.resource]
		fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"items":[%s]}`, kinds[a.resource], version, items)
	case a.resource == "pods" && a.verb == "get" && s.pods[r.URL.Path] != nil:
		_ = json.NewEncoder(w).Encode(s.pods[r.URL.Path])
	case a.verb == "get":
		gone()
	default: // a deletion
		maps.DeleteFunc(s.pods, func(path string, _ *corev1.Pod) bool { return strings.HasPrefix(path, r.URL.Path) })
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}
}

// admits is the answer of a webhook that does.
const admits = "yes"

func node(name string) corev1.Node {
	n := corev1.Node{}
	n.Name = name
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// granted are the requests that rules allow.
func granted(rules []Rule) map[asked]bool {
	out := map[asked]bool{}
	for _, r := range rules {
		if r.Only != "" {
			continue
		}
		for _, g := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					out[asked{verb, g, resource, r.Whole}] = true
				}
			}
		}
	}
	return out
}

// agree compares what was asked with what is granted: nothing may be missing, and nothing superfluous.
func agree(t *testing.T, what string, s *fakeAPI, granted map[asked]bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.asked {
		if !granted[a] {
			t.Errorf("%s: tare asks for %q, and no rule allows it", what, a)
		}
	}
	for a := range granted {
		if !s.asked[a] {
			t.Errorf("%s: a rule allows %q, and tare never asks for it", what, a)
		}
	}
}

// TestUserRules: what a study, `tare clean` and `tare doctor` ask of the API server is what UserRules allow, no more and
// no less.
func TestUserRules(t *testing.T) {
	for _, own := range []bool{true, false} {
		for _, observe := range []bool{true, false} {
			what := fmt.Sprintf("own %t, observe %t", own, observe)
			fake, where := newFake(t)
			s := &Site{Image: "registry/tare", Observe: observe, Say: t.Logf}
			if !own {
				s.Namespace = "bench"
			}
			if err := s.Reach(where); err != nil {
				t.Fatal(err)
			}
			if err := s.Discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if has := s.Has(); len(has.Nodes) == 0 || len(has.Runtimes) != len(s.classes)-1 || has.Storage == nil {
				t.Errorf("for loads, the cluster has %+v", has)
			}
			if _, err := s.Examine(t.Context(), untold); err != nil {
				t.Error(err)
			}
			if _, err := s.connect(t.Context(), site.Request{Study: &study.Study{}}); err == nil || !strings.Contains(err.Error(), "forward") {
				t.Errorf("%s: the connection ends at the forwarded port, with %v", what, err)
			}
			if _, err := s.rooms(t.Context(), ask{}, &chosen{nodes: s.untainted()}); err != nil {
				t.Error(err)
			}
			if _, err := s.Routes(t.Context(), "*"); err == nil || !strings.Contains(err.Error(), "has no Ingress") {
				t.Errorf("%s: routes of a cluster without some: %v", what, err)
			}
			for _, o := range []workload.Outside{{Namespace: elsewhereNamespace, Labels: "app=x"}, {Services: []string{elsewhereNamespace + "/x"}}, {Address: "192.0.2.1"}} {
				if !observe {
					break
				}
				if _, err := s.podsOf(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Clean(t.Context(), "", false); err != nil {
				t.Error(err)
			}
			if own {
				n := &corev1.Namespace{}
				n.Name = "tare-t1"
				if err := errors.Join(s.unused(t.Context(), "t1", n.Name, time.Time{}), s.delete(t.Context(), n)); err != nil {
					t.Error(err)
				}
			}
			rules := granted(UserRules(Tier{Own: own, Observe: observe}))
			for a := range granted(CoordinatorRules()) {
				if !rules[a] {
					t.Errorf("%s: the user does not have %q, and so cannot give it to the coordinator", what, a)
				}
				fake.asked[a] = true // the coordinator does
			}
			agree(t, what, fake, rules)
		}
	}
}

// TestCoordinatorRules: what the coordinator asks of the API server is what its role allows.
func TestCoordinatorRules(t *testing.T) {
	fake, where := newFake(t)
	fake.fails = true
	api, err := kube.FromKubeconfig(where)
	if err != nil {
		t.Fatal(err)
	}
	id, _, _, err := control.NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := control.NewHub(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := pod.New(pod.Class{Name: "gvisor", Class: "gvisor"}, api, hub, &pod.Study{ID: "t1", Namespace: "tare-t1", Image: "registry/tare"})
	if _, err := k.Start(t.Context(), sandbox.Spec{Want: sandbox.Want{Name: "t1-1"}}); err == nil || !strings.Contains(err.Error(), "Evicted") {
		t.Errorf("a pod that fails: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var steps pod.Steps
	_ = steps.Watch(ctx, api, "tare-t1")
	volumes := &claims{api: api, study: &pod.Study{ID: "t1", Namespace: "tare-t1"}, trials: map[string]bool{}}
	on := sandbox.Want{Trial: "t1-1", Role: "main", Options: map[string]string{"storage-class": "default", "claim-size": "1GiB"}, Volumes: []volume.Volume{{Name: "data"}}}
	if err := errors.Join(append(volumes.remove(t.Context(), "t1-2"), volumes.provide(t.Context(), &on))...); err != nil {
		t.Error(err)
	}
	if errs := volumes.remove(t.Context(), "t1-1"); len(errs) > 0 {
		t.Error(errs)
	}
	agree(t, "the coordinator", fake, granted(CoordinatorRules()))
}

// TestVMRules: who runs studies with virtual machines can give their coordinators what these need.
func TestVMRules(t *testing.T) {
	for _, own := range []bool{true, false} {
		has := granted(UserRules(Tier{Own: own, VMs: true}))
		for a := range granted((&Brief{VMs: true}).rules()) {
			if !has[a] {
				t.Errorf("own namespace %t: the user does not have %q, and so cannot give it to the coordinator", own, a)
			}
		}
		without := granted(UserRules(Tier{Own: own}))
		for a := range granted(VMRules()) {
			if without[a] && a.resource != "persistentvolumeclaims" {
				t.Errorf("own namespace %t: %q is granted without virtual machines", own, a)
			}
		}
	}
}

// TestRoles: what is printed grants what the rules say, with a reason each.
func TestRoles(t *testing.T) {
	for _, namespace := range []string{"", "bench"} {
		for _, tier := range []Tier{{}, {Observe: true}, {VMs: true}, {Observe: true, VMs: true}} {
			text, err := Roles(namespace, tier)
			if err != nil {
				t.Fatal(err)
			}
			got, want := map[string]bool{}, map[string]bool{}
			note := func(into map[string]bool, whole bool, r rbacv1.PolicyRule) {
				into[fmt.Sprint(whole, r.APIGroups, r.Resources, r.ResourceNames, r.Verbs)] = true
			}
			documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
			for i := range 2 {
				var role rbacv1.ClusterRole // which has all fields of a Role
				if err := documents.Decode(&role); errors.Is(err, io.EOF) && i > 0 {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if wholeRole := namespace == "" || i == 1; (role.Kind == "ClusterRole") != wholeRole || !wholeRole && role.Namespace != namespace {
					t.Errorf("role %d of %q is a %s in %q", i, namespace, role.Kind, role.Namespace)
				}
				for _, r := range role.Rules {
					note(got, role.Kind == "ClusterRole", r)
				}
			}
			tier.Own = namespace == ""
			for _, r := range UserRules(tier) {
				note(want, namespace == "" || r.Whole, r.PolicyRule)
				if !strings.Contains(text, "# "+r.Why) && !strings.Contains(text, ": "+r.Why) {
					t.Errorf("%q is not in:\n%s", r.Why, text)
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%q, %+v: printed %v, want %v", namespace, tier, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		}
	}
	if _, err := Roles("a\nb: c", Tier{}); err == nil {
		t.Error("a name with a newline passes")
	}
}

// TestLoadRules: who runs a load on objects has each right that the load gets, or else the API server refuses to give it; the
// load has none on what others keep secret.
func TestLoadRules(t *testing.T) {
	user := granted(UserRules(Tier{Own: true, Objects: true}))
	for a := range granted(LoadRules()) {
		if powerful := a.resource == "nodes/proxy"; user[a] == powerful {
			t.Errorf("the user has %q: %t; without it, he cannot give it", a, powerful)
		}
		if a.resource == "secrets" && a.verb != "create" && a.verb != "delete" {
			t.Errorf("the load may %q", a)
		}
	}
	if _, err := Roles("bench", Tier{Objects: true}); err == nil || !strings.Contains(err.Error(), "leave -n out") {
		t.Errorf("roles in a namespace that exists: %v", err)
	}
	if text, err := Roles("", Tier{Objects: true}); err != nil || !strings.Contains(text, "nonResourceURLs: [/metrics]") {
		t.Errorf("%v: %s", err, text)
	}
}
