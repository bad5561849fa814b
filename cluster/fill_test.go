package cluster

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/trial"
)

// kubelets are nodes on which every pod runs at once.
type kubelets struct {
	mu         sync.Mutex
	pods       map[string]*corev1.Pod
	made       int
	phase      corev1.PodPhase
	full       string                        // a node that takes no more
	unanswered bool                          // of pods that may not pull, no container is heard of
	have       func(node, image string) bool // whether a node has an image, of pods that may not pull it
}

func (k *kubelets) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := path.Base(r.URL.Path)
	switch p := k.pods[name]; {
	case r.Method == http.MethodPost:
		p = &corev1.Pod{}
		_ = json.NewDecoder(r.Body).Decode(p)
		k.made++
		p.UID, p.Status.Phase = types.UID(p.Name), k.phase
		if p.Spec.NodeSelector[corev1.LabelHostname] == k.full {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Too many pods."}}}
		}
		for _, c := range p.Spec.Containers {
			if s := (corev1.ContainerStatus{Name: c.Name}); c.ImagePullPolicy == corev1.PullNever && !k.unanswered {
				if !k.have(p.Spec.NodeSelector[corev1.LabelHostname], c.Image) {
					s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}
				}
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
			}
		}
		k.pods[p.Name] = p
		_ = json.NewEncoder(w).Encode(p)
	case p == nil:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	case r.Method == http.MethodDelete:
		delete(k.pods, name)
		_ = json.NewEncoder(w).Encode(p)
	default:
		_ = json.NewEncoder(w).Encode(p)
	}
}

// on counts the pods of a node.
func (k *kubelets) on(node string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.Spec.NodeSelector[corev1.LabelHostname] == node {
			n++
		}
	}
	return n
}

func newKubelets(t *testing.T, machines ...record.Node) (*kubelets, place) {
	t.Helper()
	k := &kubelets{pods: map[string]*corev1.Pod{}, phase: corev1.PodRunning}
	api, room := apiServer(t, k.serve), map[string]int{}
	for _, n := range machines {
		room[n.Name] = 10
	}
	study := &pod.Study{ID: "t1", Namespace: "ns", Machines: machines, Owner: &metav1.OwnerReference{Kind: "Pod", Name: "coordinator"}}
	return k, place{at: machines, fill: newFillers(api, study, nil, room), claims: &claims{api: api, study: study, trials: map[string]bool{}}}
}

// TestFill: a node has just so many fillers as a trial wants. They stay for the next trial that wants as many, and are made again
// if they have ended. Each ends with the coordinator or by itself.
func TestFill(t *testing.T) {
	k, p := newKubelets(t, record.Node{Name: "a", Machine: "one"}, record.Node{Name: "b", Machine: "two"})
	for i, c := range []struct {
		percent int
		phase   corev1.PodPhase // of all pods that are there
		on      int
		made    int // in all
		said    string
	}{
		{0, corev1.PodRunning, 0, 0, ""}, {35, corev1.PodRunning, 3, 3, "3 of 10 pods"}, {35, corev1.PodRunning, 3, 3, "3 of 10 pods"}, {50, corev1.PodRunning, 5, 5, "5 of 10 pods"},
		{20, corev1.PodRunning, 2, 5, "2 of 10 pods"}, {20, corev1.PodFailed, 2, 7, "2 of 10 pods"}, {0, corev1.PodRunning, 0, 7, ""},
	} {
		for _, p := range k.pods {
			p.Status.Phase = c.phase
		}
		said, err := p.Fill(t.Context(), "t1-1", "a", c.percent)
		if err != nil || said != c.said || k.on("a") != c.on || k.made != c.made {
			t.Fatalf("step %d, %d %%: %q, %v; %d pods, %d made", i, c.percent, said, err, k.on("a"), k.made)
		}
		for _, p := range k.pods {
			if p.Labels[pod.LabelStudy] != "t1" || len(p.OwnerReferences) != 1 || *p.Spec.ActiveDeadlineSeconds <= 0 || p.Spec.Containers[0].Command[0] != "/tare-pause" {
				t.Errorf("a filler that may stay for ever: %+v", p)
			}
		}
		p.Release(t.Context(), "t1-1")
	}
}

// TestFillBesideOthers: a node is emptied when a trial begins on another one of the same machine, unless a trial uses it. The
// study's end empties all.
func TestFillBesideOthers(t *testing.T) {
	k, p := newKubelets(t, record.Node{Name: "a", Machine: "one"}, record.Node{Name: "b", Machine: "one"}, record.Node{Name: "c", Machine: "two"})
	fill := func(trial, node string, percent int) {
		t.Helper()
		if _, err := p.Fill(t.Context(), trial, node, percent); err != nil {
			t.Fatal(err)
		}
	}
	fill("t1-1", "a", 20)
	fill("t1-2", "c", 20)
	fill("t1-3", "b", 30)
	if k.on("a") != 2 || k.on("b") != 3 || k.on("c") != 2 {
		t.Errorf("of nodes in use: %d, %d, %d", k.on("a"), k.on("b"), k.on("c"))
	}
	p.Release(t.Context(), "t1-1")
	p.Release(t.Context(), "t1-2")
	p.Release(t.Context(), "t1-3")
	fill("t1-4", "b", 30)
	if k.on("a") != 0 || k.on("b") != 3 || k.on("c") != 2 {
		t.Errorf("after the trials: %d, %d, %d", k.on("a"), k.on("b"), k.on("c"))
	}
	(&insideSession{fill: p.fill}).Close()
	if len(k.pods) != 0 {
		t.Errorf("after the study: %d pods", len(k.pods))
	}
}

// TestFillHasNoRoom: a node that cannot be filled says why, whether tare knows it before or not.
func TestFillHasNoRoom(t *testing.T) {
	k, p := newKubelets(t, record.Node{Name: "a"})
	k.full = "a"
	if _, err := p.Fill(t.Context(), "t1-1", "a", 80); err == nil || !strings.Contains(err.Error(), "8 idle pods on node a: the pod cannot run: Unschedulable: 0/1 nodes are available: 1 Too many pods.; if others") || errors.Is(err, sandbox.ErrNodeLost) {
		t.Errorf("a full node: %v", err)
	}
	if _, err := p.Fill(t.Context(), "t1-1", "a", 0); err != nil || len(k.pods) != 0 {
		t.Errorf("then emptied: %v, %d pods", err, len(k.pods))
	}
	for _, c := range []struct {
		fill, beside int
		fits         bool
	}{{0, 64, true}, {80, 1, true}, {80, 2, false}, {95, 1, false}} {
		err := p.Check(trial.Demand{Fill: c.fill, Beside: c.beside})
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "give a smaller node-fill or burst") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := p.Fill(t.Context(), "t1-1", "unknown", 80); err == nil || !strings.Contains(err.Error(), "does not say how many pods") {
		t.Errorf("a node of which nothing is known: %v", err)
	}
}
