package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/site"
	"tare/site/claim"
)

// studies is an API server that has the namespaces of studies, whose coordinators run.
type studies struct {
	mu      sync.Mutex
	all     map[string]corev1.Namespace
	listed  int
	shared  []corev1.ServiceAccount // claims of studies that share a namespace
	denied  string                  // the resource that the user may not list in the whole cluster
	rests   bool                    // the coordinators have given up their nodes
	stays   bool                    // the user may not delete namespaces
	change  func(s *studies)        // after a list or a creation; s.mu is held
	refuses string                  // what it says of each object that is to be made; "": it makes it
}

func (s *studies) begin(id, nodes string) {
	s.all[namespace(id)] = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace(id), Labels: map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: id},
		Annotations: map[string]string{annotationNodes: nodes}, CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
}

func (s *studies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api, v1, namespaces, NAME, pods, NAME
	switch {
	case len(parts) == 6: // the coordinator of any study runs
		begun, ready := time.Now().Add(-time.Hour), corev1.ConditionTrue
		since := begun
		if s.rests {
			ready, since = corev1.ConditionFalse, time.Now()
		}
		_ = json.NewEncoder(w).Encode(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: parts[5]}, Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}},
			ContainerStatuses: []corev1.ContainerStatus{{Ready: !s.rests, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(begun)}}}},
		}})
	case r.Method == http.MethodPost && s.refuses != "":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"`+s.refuses+`"}`)
	case r.Method == http.MethodPost && r.URL.Query().Has("dryRun"):
		_, _ = io.Copy(w, r.Body)
	case r.Method == http.MethodPost:
		var n corev1.Namespace
		_ = json.NewDecoder(r.Body).Decode(&n) // what is lost shows in the test
		s.all[n.Name] = n
		_ = json.NewEncoder(w).Encode(n)
		s.change(s)
	case r.Method == http.MethodDelete && s.stays:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"it is forbidden: User \"ann\" cannot delete resource \"namespaces\" in API group \"\" in the namespace \"`+parts[3]+`\""}`)
	case r.Method == http.MethodDelete:
		delete(s.all, parts[3])
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusSuccess})
	case len(parts) == 3 && parts[2] == s.denied:
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden})
	case parts[2] == "serviceaccounts":
		_ = json.NewEncoder(w).Encode(corev1.ServiceAccountList{Items: s.shared})
	default:
		var list corev1.NamespaceList
		for _, n := range s.all {
			list.Items = append(list.Items, n)
		}
		_ = json.NewEncoder(w).Encode(list)
		s.listed++
		s.change(s)
	}
}

// site is the cluster of that API server, as long as the test runs.
func (s *studies) site(t *testing.T) *Site {
	t.Helper()
	return reached(t, httptest.NewServer(s))
}

// reached is the cluster of an API server, as long as the test runs.
func reached(t *testing.T, h *httptest.Server) *Site {
	t.Helper()
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + h.URL + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &Site{Say: t.Logf}
	if err := out.Reach(kube.Where{Kubeconfig: file, QPS: 1000, Flags: " --context c"}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTake: a study begins only if nobody else measures on its nodes, also if both begin at once, and leaves no claim if it
// does not begin.
func TestTake(t *testing.T) {
	for name, c := range map[string]struct {
		before, nodes string // of a study that runs already; "": there is none
		change        func(s *studies)
		wait, rests   bool
		want          string // the error; "": it begins
	}{
		"alone":              {},
		"same node":          {before: "told", nodes: "node3,node2", want: "study told measures on the same nodes"},
		"it rests":           {before: "told", nodes: "node1", rests: true},
		"other nodes":        {before: "told", nodes: "node3"},
		"a name like a node": {before: "told", nodes: "node22"},
		"both at once": {want: "study tnew measures on the same nodes", change: func(s *studies) {
			if len(s.all) == 1 {
				s.begin("tnew", "node1")
			}
		}},
		"wait": {before: "told", nodes: "node1", wait: true, change: func(s *studies) { delete(s.all, namespace("told")) }},
	} {
		api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}, rests: c.rests}
		if c.change != nil {
			api.change = c.change
		}
		if c.before != "" {
			api.begin(c.before, c.nodes)
		}
		said := 0
		s := api.site(t)
		s.Say = func(string, ...any) { said++ }
		d := &deployment{api: s.api, nodes: []string{"node1", "node2"}}
		d.name("tmine", "")
		err := s.take(t.Context(), d, "restricted", c.wait, func() error { return nil })
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		var held *claim.HeldError
		if err != nil && !errors.As(err, &held) {
			t.Errorf("%s: %v is no HeldError, which has an exit code of its own", name, err)
		}
		api.mu.Lock()
		if got, has := api.all[d.namespace]; has != (c.want == "") || has && got.Annotations[annotationNodes] != "node1,node2" {
			t.Errorf("%s: the claim is there %t, with %v", name, has, got.Annotations)
		}
		if _, left := api.all[namespace("tmine")]; left && c.want != "" {
			t.Errorf("%s: a claim is left", name)
		}
		api.mu.Unlock()
		if (said > 0) != c.wait {
			t.Errorf("%s: said %d times that it waits", name, said)
		}
	}
}

// TestMayNotClaim: who may not make the claim learns that, and does not wait for another study or hear of objects to remove.
func TestMayNotClaim(t *testing.T) {
	for existing, refuses := range map[string]string{
		"":      `namespaces is forbidden: User \"ann\" cannot create resource \"namespaces\" in API group \"\" at the cluster scope`,
		"bench": `serviceaccounts is forbidden: User \"ann\" cannot create resource \"serviceaccounts\" in API group \"\" in the namespace \"bench\"`,
	} {
		api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}, refuses: refuses, stays: true}
		api.begin("told", "node1")
		s := api.site(t)
		d := &deployment{api: s.api, nodes: []string{"node1"}}
		d.name("tmine", existing)
		err := s.take(t.Context(), d, "restricted", true, func() error { return errors.New("promised") })
		if err == nil || !strings.HasPrefix(err.Error(), "cannot create the ") || !strings.Contains(err.Error(), `user "ann" may not create `) || strings.Contains(err.Error(), "may not delete") {
			t.Errorf("%q: %v", existing, err)
		}
	}
}

// TestPromise: the key of a study is kept before the study makes anything. If it cannot be kept, nothing is made.
func TestPromise(t *testing.T) {
	api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}}
	s := api.site(t)
	s.Image, s.Observe = "tare:1", true
	var card []byte
	c := &connection{site: s, made: deployment{api: s.api, nodes: []string{"node1"}}, keep: func(text []byte) error {
		if card = text; len(api.all) > 0 {
			t.Error("something is there before the key")
		}
		return nil
	}}
	c.made.name("tmine", "")
	full := errors.New("the disk is full")
	if err := s.take(t.Context(), &c.made, "restricted", true, func() error { return full }); !errors.Is(err, full) || len(api.all) > 0 {
		t.Errorf("%v, %d namespaces", err, len(api.all))
	}
	if err := s.take(t.Context(), &c.made, "restricted", false, c.promise); err != nil || len(api.all) != 1 {
		t.Fatalf("%v, %d namespaces", err, len(api.all))
	}
	api.begin("tmine-nodes", "")
	// A tare that was killed here comes back.
	if back, err := s.reconnect(t.Context(), card); back != nil || err != nil || len(api.all) > 0 {
		t.Errorf("%v, %v, %d namespaces are left", back, err, len(api.all))
	}
}

// TestCloseLeft: what cannot be removed at the end of a study is told with the command that removes it, and that command stays known. Who
// then comes back cannot begin before it is removed.
func TestCloseLeft(t *testing.T) {
	api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}}
	s := api.site(t)
	left, said := "", ""
	s.Left = func(command string) { left = command }
	s.Say = func(format string, args ...any) { said = fmt.Sprintf(format, args...) }
	c := &connection{site: s, made: deployment{api: s.api, id: "told", namespace: namespace("told"), made: []string{namespace("told")}}}
	for _, api.stays = range []bool{true, false} {
		api.begin("told", "node1")
		const clean = "tare clean --on k8s --context c --study told"
		if c.close(); api.stays && (left != clean || !strings.Contains(said, `user "ann" may not delete namespaces`) || !strings.Contains(said, "`"+clean+"`")) || !api.stays && left != "" {
			t.Errorf("stays %t: left %q, said %s", api.stays, left, said)
		}
	}
	api.begin("told", "node1")
	api.stays = true
	back, err := s.reconnect(t.Context(), []byte(`{"id": "told", "namespace": "tare-told", "made": ["tare-told"], "starting": true}`))
	if unable := (*site.UnableError)(nil); back != nil || !errors.As(err, &unable) || !strings.Contains(err.Error(), "`tare clean --on k8s --context c --study told`") {
		t.Errorf("%v, %v", back, err)
	}
}

// TestEnded: a coordinator that ended or was deleted is told from one that may still run.
func TestEnded(t *testing.T) {
	now := metav1.Now()
	ended := func(s corev1.PodStatus) *corev1.Pod { return &corev1.Pod{Status: s} }
	for name, c := range map[string]struct {
		pod  *corev1.Pod // nil: the API server has no such pod
		want string      // "": it may run
	}{
		"runs":          {ended(corev1.PodStatus{Phase: corev1.PodRunning}), ""},
		"gone":          {nil, " was deleted"},
		"being deleted": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, " was deleted"},
		"evicted":       {ended(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}), " has ended (Evicted)"},
		"killed": {ended(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled"}}}}}), " has ended (OOMKilled)"},
		"done": {ended(corev1.PodStatus{Phase: corev1.PodSucceeded}), " has ended"},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if c.pod != nil {
				_ = json.NewEncoder(w).Encode(c.pod)
				return
			}
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
		}))
		s := reached(t, h)
		err := s.ended(t.Context(), &deployment{id: "t1", namespace: "tare-t1"})
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != "the study's coordinator in namespace tare-t1"+c.want {
			t.Errorf("%s: %s, want %q", name, got, c.want)
		}
	}
}

// TestHolderElsewhere: studies in a namespace that they share and studies with a namespace of their own see each other, if the user may list both.
func TestHolderElsewhere(t *testing.T) {
	api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}}
	api.shared = []corev1.ServiceAccount{{ObjectMeta: metav1.ObjectMeta{
		Name: "tare-tshared", Namespace: "bench", Labels: map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: "tshared"},
		Annotations: map[string]string{annotationNodes: "node1"}, CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}}
	s := api.site(t)
	own := &deployment{api: s.api, nodes: []string{"node1"}}
	own.name("tmine", "")
	if other, err := s.holder(t.Context(), own); err != nil || other == nil || !strings.Contains(other.Error(), "study tshared") || !strings.Contains(other.Error(), "`tare clean --on k8s --context c -n bench --study tshared`") {
		t.Errorf("%v, %v", other, err)
	}
	api.begin("town", "node1")
	sharing := &deployment{api: s.api, nodes: []string{"node1"}}
	sharing.name("tshared", "bench")
	if other, err := s.holder(t.Context(), sharing); err != nil || other == nil || other.study != "town" || other.in != " --context c" {
		t.Errorf("%v, %v", other, err)
	}
	delete(api.all, namespace("town"))
	api.denied = "serviceaccounts"
	if other, err := s.holder(t.Context(), own); err != nil || other != nil {
		t.Errorf("without the right to list accounts: %v, %v", other, err)
	}
	api.denied = "namespaces"
	if _, err := s.Clean(t.Context(), "", true); err == nil || !strings.HasSuffix(err.Error(), "; if your studies have -n NAMESPACE, so must this command") {
		t.Errorf("who may not list namespaces: %v", err)
	}
	if _, err := s.holder(t.Context(), sharing); err != nil {
		t.Errorf("in a shared namespace, without the right to list namespaces: %v", err)
	}
	if _, err := s.holder(t.Context(), own); err == nil || !strings.Contains(err.Error(), "cannot find the other studies") {
		t.Errorf("a study with its own namespace needs that right: %v", err)
	}
}

// TestReturnKeepsOff: tare refuses to return to a study if another study holds its nodes, or if the flags differ. It removes nothing.
func TestReturnKeepsOff(t *testing.T) {
	api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}}
	api.begin("told", "node1")
	api.begin("tmine", "node1,node2")
	s := api.site(t)
	s.Image = "tare:1"
	const ticket = `{"id": "tmine", "namespace": "tare-tmine", "made": ["tare-tmine"], "nodes": ["node1", "node2"], "flags": "--on k8s --tare-image tare:1"}`
	c, err := s.reconnect(t.Context(), []byte(ticket))
	var held *claim.HeldError
	if c != nil || !errors.As(err, &held) || !strings.Contains(err.Error(), "keeps its results") || !strings.Contains(err.Error(), "study told") {
		t.Errorf("%v", err)
	}
	s.Observe = true
	_, err = s.reconnect(t.Context(), []byte(ticket))
	var flags *site.FlagsError
	if !errors.As(err, &flags) || !strings.Contains(err.Error(), "repeat the command with `--on k8s --tare-image tare:1`") || !strings.Contains(err.Error(), "tare clean --on k8s --context c --study tmine") {
		t.Errorf("with other flags: %v", err)
	}
	if len(api.all) != 2 {
		t.Errorf("%d studies are left", len(api.all))
	}
}

// TestDoctorKeepsOff: doctor finds the study that its pods would disturb, and makes nothing.
func TestDoctorKeepsOff(t *testing.T) {
	api := &studies{all: map[string]corev1.Namespace{}, change: func(*studies) {}}
	api.begin("told", "node1")
	s := api.site(t)
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	n.Name = "node1"
	s.ready = append(s.ready, n)
	if err := s.disturbs(t.Context()); err == nil || !strings.Contains(err.Error(), "study told measures on these nodes") {
		t.Errorf("with a study: %v", err)
	}
	n.Name = "node2"
	if err := s.disturbs(t.Context()); err != nil || len(api.all) != 1 {
		t.Errorf("on other nodes: %v, %d namespaces", err, len(api.all))
	}
}
