package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
)

// fillers are idle pods that fill nodes up to a share of the pods that these take. They stay from trial to trial until one wants
// another share of its node: the trials of a block mostly want the same.
type fillers struct {
	api   *kube.Client
	study *pod.Study
	steps *pod.Steps     // nil: nobody hears of their starts
	room  map[string]int // pods that each node takes

	mu    sync.Mutex
	on    map[string]*filled
	inUse map[string]string // the trial on each node
}

// filled is one node.
type filled struct {
	mu    sync.Mutex // held while the node is filled
	pods  []*corev1.Pod
	since time.Time // the first of them was made
	made  int       // so far, for their names
}

// fillersEnd is the age from which fillers are made again: they must outlive a trial, and all pods have a deadline.
const fillersEnd = pod.Ends / 2

// pace is the pause between two requests for fillers, so that they leave the API server, and tare's own limit, to the pods that
// are timed.
const pace = 25 * time.Millisecond

// quiet bounds the wait for the kubelet's events of the fillers.
const quiet = 10 * time.Second

// fillersOf are how many pods are this share of a node, in percent.
func fillersOf(room, percent int) int { return room * percent / 100 }

// newFillers are those of a study on nodes that take so many pods.
func newFillers(api *kube.Client, study *pod.Study, steps *pod.Steps, room map[string]int) *fillers {
	return &fillers{api: api, study: study, steps: steps, room: room, on: map[string]*filled{}, inUse: map[string]string{}}
}

// use fills a node for a trial. Nodes of the same machine are emptied, because their kubelets look after idle pods too, unless
// another trial is on them.
func (f *fillers) use(ctx context.Context, trial, node string, percent int) (int, error) {
	for _, other := range f.beside(trial, node) {
		if _, err := f.fill(ctx, other, 0); err != nil {
			return 0, err
		}
	}
	return f.fill(ctx, node, percent)
}

// beside are the filled nodes of the same machine that no trial uses. From now on the trial uses the node.
func (f *fillers) beside(trial, node string) (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inUse[node] = trial
	machine := f.machine(node)
	for other := range f.on {
		if other != node && f.inUse[other] == "" && f.machine(other) == machine {
			out = append(out, other)
		}
	}
	return out
}

// machine is the one that a node is on.
func (f *fillers) machine(node string) string {
	if i := f.index(node); i < len(f.study.Machines) {
		return f.study.Machines[i].On()
	}
	return node
}

// leave says that a trial has ended.
func (f *fillers) leave(trial string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.inUse, func(_, by string) bool { return by == trial })
}

// fill has the share of a node taken by fillers that run, and returns how many they are.
func (f *fillers) fill(ctx context.Context, node string, percent int) (int, error) {
	if percent > 0 && f.room[node] == 0 {
		return 0, fmt.Errorf("node %s does not say how many pods it takes; `kubectl describe node` shows it under Allocatable", node)
	}
	f.mu.Lock()
	n := f.on[node]
	if n == nil {
		n = &filled{}
		f.on[node] = n
	}
	f.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	want := fillersOf(f.room[node], percent)
	keep := min(want, len(n.pods))
	if keep > 0 && (time.Since(n.since) > fillersEnd || f.run(ctx, n.pods[:keep]) != nil) {
		keep = 0
	}
	if err := f.remove(ctx, n, keep); err != nil {
		return 0, fmt.Errorf("fillers of node %s: %w", node, err)
	}
	if err := f.add(ctx, n, node, want); err != nil {
		return 0, fmt.Errorf("%d idle pods on node %s: %w; if others need the room, give a smaller node-fill", want, node, err)
	}
	return want, nil
}

// add makes fillers until there are so many, and waits until all run. n has each that was made, even on an error.
func (f *fillers) add(ctx context.Context, n *filled, node string, want int) error {
	from := len(n.pods)
	for len(n.pods) < want {
		if len(n.pods) == 0 {
			n.since = time.Now()
		}
		n.made++
		// Names of nodes may be longer than a pod's may be.
		p := f.study.Filler(fmt.Sprintf("%s-fill-%d-%d", f.study.ID, f.index(node), n.made), node)
		err := f.api.Create(ctx, p)
		if err != nil && len(pod.Limit(p, err)) > 0 {
			err = f.api.Create(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("cannot create the pod: %w", err)
		}
		n.pods = append(n.pods, p)
		if err := rest(ctx); err != nil {
			return err
		}
	}
	if err := f.run(ctx, n.pods[from:]); err != nil || f.steps == nil {
		return err
	}
	// A kubelet sends its events one after another: those of the timed pods would queue behind these.
	limited, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	for _, p := range n.pods[from:] {
		f.steps.Forget(limited, p.UID)
	}
	return nil
}

// index is the place of a node among those of the study.
func (f *fillers) index(node string) int {
	for i := range f.study.Machines {
		if f.study.Machines[i].Name == node {
			return i
		}
	}
	return len(f.study.Machines)
}

// run waits until all pods run. It says why one will not.
func (f *fillers) run(ctx context.Context, pods []*corev1.Pod) error {
	for _, of := range pods {
		err := f.api.WatchPod(ctx, of.Namespace, of.Name, func(p *corev1.Pod) (bool, error) {
			switch {
			case p == nil || p.UID != of.UID || p.DeletionTimestamp != nil:
				return true, errors.New("the pod was deleted")
			case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
				return true, errors.New("the pod has ended")
			}
			return p.Status.Phase == corev1.PodRunning, pod.WhyNot(p)
		})
		if err == nil {
			err = rest(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes fillers until so many are left, and waits until the others are gone.
func (f *fillers) remove(ctx context.Context, n *filled, keep int) error {
	for _, p := range n.pods[keep:] {
		if err := f.api.Delete(ctx, p, time.Second); err != nil {
			return fmt.Errorf("cannot delete the pod %s: %w", p.Name, err)
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
	for _, of := range slices.Backward(n.pods[keep:]) {
		err := f.api.WatchPod(ctx, of.Namespace, of.Name, func(p *corev1.Pod) (bool, error) { return p == nil || p.UID != of.UID, nil })
		if err == nil {
			err = rest(ctx)
		}
		if err != nil {
			return fmt.Errorf("the pod %s is not gone: %w", of.Name, err)
		}
	}
	n.pods = n.pods[:keep]
	return nil
}

// end deletes all fillers. Nobody waits until they are gone: the study's end takes what is left.
func (f *fillers) end(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.on {
		n.mu.Lock()
		for _, p := range n.pods {
			_ = f.api.Delete(ctx, p, time.Second)
		}
		n.pods = nil
		n.mu.Unlock()
	}
}

func rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pace):
		return nil
	}
}
