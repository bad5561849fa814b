package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/pod"
	"tare/site/claim"
)

// annotationNodes names the nodes that a study measures on, with commas between them. What has it is the study's claim
// on them: its namespace or, in a namespace that studies share, its service account.
const annotationNodes = "tare/nodes"

// takeEvery is about the pause between two tries to take nodes.
const takeEvery = 3 * time.Second

// newID is the id of a study: part of the names of all that it makes.
func newID() string { return "t" + strings.ToLower(rand.Text()[:8]) }

// take claims the nodes of a study, so that no other study measures on them meanwhile: two would
// disturb each other. Each study makes its claim before it looks for those of others, and
// gives it up if it finds one. So of two that begin at once, one sees the other. With wait it
// tries again until nobody has the nodes.
func (s *Site) take(ctx context.Context, d *deployment, level string, wait bool) error {
	told := ""
	for {
		other, err := s.holder(ctx, d)
		if err == nil && other == "" {
			if err = d.claim(ctx, level); err == nil {
				other, err = s.holder(ctx, d)
			}
			if err == nil && other == "" {
				return nil
			}
			err = errors.Join(err, d.remove(ctx))
			d.name(newID(), s.Namespace) // a namespace needs a while to go, and its name with it
		}
		switch {
		case err != nil:
			return err
		case !wait:
			return &heldError{study: other, in: s.in()}
		case told != other:
			s.Say("waiting for study %s, which measures on the same nodes", other)
			told = other
		}
		if pause(ctx); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// pause waits for a random time of at least takeEvery, so that two studies that gave up together do not collide again.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(takeEvery + mathrand.N(takeEvery)): //nolint:gosec // no secret
	}
}

// heldError says that another study measures on a node of this one. It is a claim.HeldError.
type heldError struct{ study, in string }

func (e *heldError) Error() string {
	return fmt.Sprintf("study %s measures on the same nodes of the cluster; wait for it with --wait, or give the studies different nodes with node-selector (docs/cluster.md); if it is yours, `tare clean --on k8s%s --study %[1]s` ends it", e.study, e.in)
}

func (*heldError) Unwrap() error { return &claim.HeldError{} }

// holder returns another study that has a claim on one of the deployment's nodes and has not ended; "" if there is none.
func (s *Site) holder(ctx context.Context, d *deployment) (string, error) {
	var claims []metav1.ObjectMeta
	var err error
	const ours = pod.LabelManaged + "=" + pod.Managed
	if d.shared {
		var all corev1.ServiceAccountList
		err = s.api.List(ctx, d.namespace, ours, &all)
		for i := range all.Items {
			claims = append(claims, all.Items[i].ObjectMeta)
		}
	} else {
		var all corev1.NamespaceList
		err = s.api.List(ctx, "", ours, &all)
		for i := range all.Items {
			claims = append(claims, all.Items[i].ObjectMeta)
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the other studies on %s: %w", s.api.Server(), explained(err, s.Namespace))
	}
	for i := range claims {
		m := &claims[i]
		id := m.Labels[pod.LabelStudy]
		meets := slices.ContainsFunc(strings.Split(m.Annotations[annotationNodes], ","), func(n string) bool { return slices.Contains(d.nodes, n) })
		if id == d.id || m.DeletionTimestamp != nil || !meets {
			continue
		}
		in := d.namespace
		if !d.shared {
			in = m.Name
		}
		if s.unused(ctx, id, in, m.CreationTimestamp.Time) != nil && !s.resting(ctx, id, in) {
			return id, nil
		}
	}
	return "", nil
}

// resting reports whether a study's coordinator has given up its nodes. Its pod is then not ready. A coordinator that is starting
// is not ready either, so the pod must have become unready long after its start. On a lost node, the container stays ready.
func (s *Site) resting(ctx context.Context, id, namespace string) bool {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: coordinatorName(id)}}
	if s.api.Get(ctx, p) != nil || len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	c := &p.Status.ContainerStatuses[0]
	return c.State.Running != nil && !c.Ready && slices.ContainsFunc(p.Status.Conditions, func(is corev1.PodCondition) bool {
		return is.Type == corev1.PodReady && is.Status == corev1.ConditionFalse && is.LastTransitionTime.Sub(c.State.Running.StartedAt.Time) >= lonely
	})
}

// claim makes what claims the deployment's nodes. A namespace of its own meets a level of the Pod Security Standards.
func (d *deployment) claim(ctx context.Context, level string) error {
	if d.shared {
		return d.createAll(ctx, d.account())
	}
	return d.makeNamespace(ctx, d.namespace, level)
}
