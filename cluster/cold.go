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

// copies are images for cold starts. A node pulls each copy only once. It does not pull layers again that it has, and only the kubelet
// removes them, when the disk is nearly full.
type copies struct {
	api   *kube.Client
	study *pod.Study
	steps *pod.Steps                     // nil: nobody follows the events of starts
	of    map[string]map[string][]string // references, by the image's name ("" for tare's own) and by processor

	mu    sync.Mutex
	left  map[imageOn]*unused
	looks int // number of look pods so far, for their names
}

// imageOn names an image on a node.
type imageOn struct{ image, node string }

// unused has the copies of an image that a node does not have.
type unused struct {
	mu     sync.Mutex // held while a pod looks at the node
	looked bool
	refs   []string
}

// check returns an error if an image has fewer copies than a trial needs on one of the nodes.
func (c *copies) check(img string, want int, nodes []record.Node) error {
	for i := range nodes {
		switch has := len(c.of[img][nodes[i].Host.Arch]); {
		case has == 0:
			return fmt.Errorf("image: cold: no copies of %s for the node %s; its registry has none, or does not answer from here; %s", called(img), nodes[i].Name, pushMore(img, want))
		case has < want:
			return fmt.Errorf("image: cold: %s has %d copies for the node %s, but a trial needs %d; %s", called(img), has, nodes[i].Name, want, pushMore(img, want))
		}
	}
	return nil
}

// called returns an image's name for messages.
func called(img string) string {
	if img == "" {
		return "tare's image"
	}
	return "the image " + img
}

// pushMore says how to push the missing copies.
func pushMore(img string, want int) string {
	const why = "docs/workloads/startup.md says how many a study needs"
	if img == "" {
		return fmt.Sprintf("push it with `tare image push tare REFERENCE --cold %d` or more, and pass the printed reference as --tare-image (%s)", want, why)
	}
	return fmt.Sprintf("push it with `tare image push %s REFERENCE --cold %d` or more, and pass the printed reference with --app %s=REFERENCE (%s)", img, want, img, why)
}

// need says how many copies each pass of a study uses. So a user sees before the first trial when they will run out.
func (c *copies) need(m *trial.Maker, nodes []record.Node) (lines []string, err error) {
	takes := map[string]int{} // by image
	_, err = m.Wanted(func(r workload.Role) []string {
		if r.Cold {
			takes[r.Image] += r.Launches()
		}
		return nil
	})
	for _, img := range slices.Sorted(maps.Keys(takes)) {
		lines = append(lines, fmt.Sprintf("cold starts: each pass over the study uses %d copies of %s on its node; the registry has %d (docs/workloads/startup.md)", takes[img], called(img), len(c.of[img][nodes[0].Host.Arch])))
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
			return "", fmt.Errorf("cannot find out which images the node %s has: %w", node, err)
		}
		n.looked = true
	}
	if len(n.refs) == 0 {
		return "", fmt.Errorf("the node %s has pulled all %d copies of %s; %s", node, len(refs), called(img), pushMore(img, 2*len(refs)))
	}
	ref := n.refs[0]
	n.refs = n.refs[1:]
	return ref, nil
}

// arch returns the processor architecture of a node.
func (p place) arch(node string) string {
	for i := range p.at {
		if p.at[i].Name == node {
			return p.at[i].Host.Arch
		}
	}
	return ""
}

// looksAtOnce is the most containers of a pod that looks for images.
const looksAtOnce = 100

// absent returns the images that a node does not have. A continued study has already used some, and so may an earlier study.
func (c *copies) absent(ctx context.Context, node string, refs []string) (out []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upWithin, fmt.Errorf("the kubelet did not report them within %s", minutes(upWithin)))
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

// look starts a pod that looks for images, reads the result from its status, and deletes the pod.
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

// unscheduled says why a pod gets no node; nil if it has one or may still get one. It ignores the containers' states: those are the
// result of a look.
func unscheduled(p *corev1.Pod) error {
	bare := p.DeepCopy()
	bare.Status.ContainerStatuses = nil
	return pod.WhyNot(bare)
}
