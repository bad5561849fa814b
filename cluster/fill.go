package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/sandbox"
)

// fillers keep nodes as full of idle pods as trials want them (pod.NodeFill). They stay until a trial wants another
// number on their node. Like all pods of the study they belong to its coordinator, and go with it.
type fillers struct {
	api   *kube.Client
	study *pod.Study
	room  map[string]int64 // pods that a node can have

	mu sync.Mutex
	at map[string]int // how many there are, by node
}

// fillWithin bounds how long a node may take to be filled, or emptied.
const fillWithin = 2 * time.Minute

// provide fills a sandbox's node as its options say. nil does nothing: no pod is made there.
func (f *fillers) provide(ctx context.Context, want *sandbox.Want) error {
	percent, err := strconv.Atoi(want.Options[pod.NodeFill])
	if f == nil || err != nil {
		return nil //nolint:nilerr // an end that says nothing of it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int(f.room[want.Node]) * percent / 100
	if f.room[want.Node] == 0 && percent > 0 {
		return fmt.Errorf("%s %d: the node %s does not say how many pods it can have", pod.NodeFill, percent, want.Node)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fillWithin, fmt.Errorf("it took longer than %s", fillWithin))
	defer cancel()
	if err := f.set(ctx, want.Node, n); err != nil {
		return fmt.Errorf("cannot fill the node %s with %d pods of the %d that it can have (%s %d): %w; ask for less", want.Node, n, f.room[want.Node], pod.NodeFill, percent, err)
	}
	return nil
}

// set makes the number of a node's fillers n.
func (f *fillers) set(ctx context.Context, node string, n int) error {
	now := f.at[node]
	f.at[node] = max(now, n) // what may be there, if the rest fails
	for i := now; i < n; i++ {
		if err := f.api.Create(ctx, f.study.Filler(node, i)); err != nil {
			return err
		}
	}
	for i := n; i < now; i++ {
		if err := f.api.Delete(ctx, f.study.Filler(node, i), 0); err != nil {
			return err
		}
	}
	for i := n; i < now; i++ {
		p := f.study.Filler(node, i)
		if err := f.api.WatchPod(ctx, p.Namespace, p.Name, func(p *corev1.Pod) (bool, error) { return p == nil, nil }); err != nil {
			return err
		}
	}
	if n > now {
		if err := f.run(ctx, node, n); err != nil {
			return err
		}
	}
	f.at[node] = n
	return nil
}

// run waits until the node's n fillers run.
func (f *fillers) run(ctx context.Context, node string, n int) error {
	runs := map[string]bool{}
	return f.api.WatchPods(ctx, f.study.Namespace, f.study.Fillers(node), func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, errors.New("one of these pods was deleted")
		}
		if why := pod.WhyNot(p); why != nil {
			return true, why
		}
		runs[p.Name] = runs[p.Name] || p.Status.Phase == corev1.PodRunning
		count := 0
		for _, is := range runs {
			if is {
				count++
			}
		}
		return count == n, nil
	})
}
