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
	"tare/record"
	"tare/trial"
	"tare/workload"
)

// copies are images for cold starts. A node pulls each of them once: layers that a node has are not pulled again, and only the kubelet
// removes them, when its disk is nearly full.
type copies struct {
	api   *kube.Client
	study *pod.Study
	steps *pod.Steps                     // nil: nobody hears of starts
	of    map[string]map[string][]string // references by an image's name, "" for tare's own, and by processor

	mu    sync.Mutex
	left  map[imageOn]*unused
	looks int // pods that have looked, for their names
}

// imageOn is an image on a node.
type imageOn struct{ image, node string }

// unused are the copies of an image that a node does not have.
type unused struct {
	mu     sync.Mutex // held while the node is looked at
	looked bool
	refs   []string
}

// check says why an image has no copies for a trial that wants so many.
func (c *copies) check(img string, want int, nodes []record.Node) error {
	for i := range nodes {
		switch has := len(c.of[img][nodes[i].Host.Arch]); {
		case has == 0:
			return fmt.Errorf("image: cold: the registry of %s has no copies of it for the node %s, or does not answer from here; %s", called(img), nodes[i].Name, pushMore(img, want))
		case has < want:
			return fmt.Errorf("image: cold: %s has %d copies for the node %s, and a trial takes %d; %s", called(img), has, nodes[i].Name, want, pushMore(img, want))
		}
	}
	return nil
}

// called is an image in messages.
func called(img string) string {
	if img == "" {
		return "tare's image"
	}
	return "the image " + img
}

// pushMore is what to do about missing copies.
func pushMore(img string, want int) string {
	const why = "docs/workloads/startup.md says how many a study takes"
	if img == "" {
		return fmt.Sprintf("push it with `tare image push tare REFERENCE --cold %d` or more, and give what that prints as --tare-image (%s)", want, why)
	}
	return fmt.Sprintf("push it with `tare image push %s REFERENCE --cold %d` or more, and give what that prints with --app %s=REFERENCE (%s)", img, want, img, why)
}

// need says how many copies each pass of a study takes: they may run out, and a user sees before the first trial when.
func (c *copies) need(m *trial.Maker, nodes []record.Node) (lines []string, err error) {
	takes := map[string]int{} // by image
	_, err = m.Wanted(func(r workload.Role) []string {
		if r.Cold {
			takes[r.Image] += r.Launches()
		}
		return nil
	})
	for _, img := range slices.Sorted(maps.Keys(takes)) {
		lines = append(lines, fmt.Sprintf("cold starts: each pass over the study takes %d copies of %s on the node that makes it; the registry has %d (docs/workloads/startup.md)", takes[img], called(img), len(c.of[img][nodes[0].Host.Arch])))
	}
	return lines, err
}

// Copy implements trial.Copier.
func (p place) Copy(ctx context.Context, img, node string) (string, error) {
	c := p.cold
	refs := c.of[img][p.arch(node)]
	c.mu.Lock()
	n := c.left[imageOn{img, node}]
	if n == nil {
		n = &unused{}
		c.left[imageOn{img, node}] = n
	}
	c.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.looked {
		var err error
		if n.refs, err = c.absent(ctx, node, refs); err != nil {
			return "", fmt.Errorf("cannot find out which images node %s has: %w", node, err)
		}
		n.looked = true
	}
	if len(n.refs) == 0 {
		return "", fmt.Errorf("node %s has pulled all %d copies of %s; %s", node, len(refs), called(img), pushMore(img, 2*len(refs)))
	}
	ref := n.refs[0]
	n.refs = n.refs[1:]
	return ref, nil
}

// arch is the processor of a node.
func (p place) arch(node string) string {
	for i := range p.at {
		if p.at[i].Name == node {
			return p.at[i].Host.Arch
		}
	}
	return ""
}

// looksAtOnce bounds the containers of a pod that looks for images.
const looksAtOnce = 100

// absent are the images that a node does not have. A study that goes on has used some, and another one before it may have.
func (c *copies) absent(ctx context.Context, node string, refs []string) (out []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upWithin, fmt.Errorf("the kubelet did not say so within %s", upWithin))
	defer cancel()
	for some := range slices.Chunk(refs, looksAtOnce) {
		c.mu.Lock()
		c.looks++
		p := c.study.Look(fmt.Sprintf("%s-look-%d", c.study.ID, c.looks), node, some)
		c.mu.Unlock()
		has, err := c.look(ctx, p)
		if err != nil {
			return nil, err
		}
		for i := range some {
			if !has[p.Spec.Containers[i].Name] {
				out = append(out, some[i])
			}
		}
	}
	return out, nil
}

// look starts a pod that looks for images, reads what it shows, and deletes it.
func (c *copies) look(ctx context.Context, p *corev1.Pod) (has map[string]bool, err error) {
	err = c.api.Create(ctx, p)
	if err != nil && len(pod.Limit(p, err)) > 0 {
		err = c.api.Create(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the pod: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		if derr := c.api.Delete(ctx, p, time.Second); derr != nil {
			err = errors.Join(err, fmt.Errorf("cannot delete the pod %s: %w", p.Name, derr))
		}
		if c.steps != nil {
			ended, end := context.WithCancel(ctx)
			end()
			c.steps.Forget(ended, p.UID)
		}
	}()
	err = c.api.WatchPod(ctx, p.Namespace, p.Name, func(now *corev1.Pod) (bool, error) {
		if now == nil {
			return true, errors.New("the pod was deleted")
		}
		var known bool
		if has, known = pod.LooksAt(now); known {
			return true, nil
		}
		return false, unscheduled(now)
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return has, err
}

// unscheduled says why a pod gets no node; nil if it has one or may get one. The states of a look's containers are its answer.
func unscheduled(p *corev1.Pod) error {
	bare := p.DeepCopy()
	bare.Status.ContainerStatuses = nil
	return pod.WhyNot(bare)
}
