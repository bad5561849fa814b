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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/kube"
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
// tries again until nobody has the nodes. Before each claim it calls promise: the study's name is then known, and nothing is made.
// If it fails, it has removed what it made. Who lacks the right to claim learns that first, and waits for nobody.
func (s *Site) take(ctx context.Context, d *deployment, level string, wait bool, promise func() error) error {
	if err := d.mayClaim(ctx, level); err != nil {
		return err
	}
	told := ""
	for {
		other, err := s.holder(ctx, d)
		if err == nil && other == nil {
			if err = promise(); err != nil {
				return err
			}
			if err = d.claim(ctx, level); err == nil {
				other, err = s.holder(ctx, d)
			}
			if err == nil && other == nil {
				return nil
			}
			err = errors.Join(err, d.removeNow(ctx))
			d.name(newID(), s.Namespace) // a namespace needs a while to go, and its name with it
		}
		switch {
		case err != nil:
			return err
		case !wait:
			return other
		case told != other.study:
			s.Say("waiting for study %s, which measures on the same nodes", other.study)
			told = other.study
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
	return fmt.Sprintf("study %s measures on the same nodes of the cluster; wait for it with --wait, or give the studies different nodes with node-selector (docs/cluster.md); if it is yours, repeat its command to go on with it, or end it with `tare clean --on k8s%s --study %[1]s`", e.study, e.in)
}

func (*heldError) Unwrap() error { return &claim.HeldError{} }

// claimed is the claim of a study on nodes.
type claimed struct {
	metav1.ObjectMeta
	namespace string // of its coordinator
	in        string // the flags of tare clean that name the cluster and a shared namespace, each after a blank
}

// claims lists the claims of other studies and of the deployment's own: of those that have their own namespaces, and of those that share one.
// It leaves out what the user may not list, but fails if the user may not list the kind that the deployment is, in its namespace.
func (s *Site) claims(ctx context.Context, d *deployment) (out []claimed, err error) {
	const ours = pod.LabelManaged + "=" + pod.Managed
	var namespaces corev1.NamespaceList
	if err = s.api.List(ctx, "", ours, &namespaces); apierrors.IsForbidden(err) && d.shared {
		err = nil
	}
	var accounts corev1.ServiceAccountList
	if err == nil {
		err = s.api.List(ctx, "", ours, &accounts)
		switch {
		case apierrors.IsForbidden(err) && d.shared:
			err = s.api.List(ctx, d.namespace, ours, &accounts)
		case apierrors.IsForbidden(err):
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the other studies on %s: %w", s.api.Server(), explained(err, s.Namespace))
	}
	for i := range namespaces.Items {
		out = append(out, claimed{ObjectMeta: namespaces.Items[i].ObjectMeta, namespace: namespaces.Items[i].Name, in: s.api.Flags})
	}
	for i := range accounts.Items {
		a := &accounts.Items[i]
		out = append(out, claimed{ObjectMeta: a.ObjectMeta, namespace: a.Namespace, in: s.api.Flags + " -n " + a.Namespace})
	}
	return out, nil
}

// holder returns another study that has a claim on one of the deployment's nodes and has not ended. It returns nil if there is none.
func (s *Site) holder(ctx context.Context, d *deployment) (*heldError, error) {
	claims, err := s.claims(ctx, d)
	if err != nil {
		return nil, err
	}
	for i := range claims {
		c := &claims[i]
		id := c.Labels[pod.LabelStudy]
		meets := slices.ContainsFunc(strings.Split(c.Annotations[annotationNodes], ","), func(n string) bool { return slices.Contains(d.nodes, n) })
		if id == d.id || c.DeletionTimestamp != nil || !meets {
			continue
		}
		if s.unused(ctx, id, c.namespace, c.CreationTimestamp.Time) != nil && !s.resting(ctx, id, c.namespace) {
			return &heldError{study: id, in: c.in}, nil
		}
	}
	return nil, nil
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

// mayClaim has the API server judge the object that claims the nodes, and returns why it refuses it. Another error shows when the object is made.
func (d *deployment) mayClaim(ctx context.Context, level string) error {
	var first kube.Object = d.labelled(d.namespace, level)
	if d.shared {
		first = d.account()
	}
	if err := d.api.Try(ctx, first); apierrors.IsForbidden(err) {
		return d.cannotCreate(first, err)
	}
	return nil
}

// claim makes what claims the deployment's nodes. A namespace of its own meets a level of the Pod Security Standards.
func (d *deployment) claim(ctx context.Context, level string) error {
	if d.shared {
		return d.createAll(ctx, d.account())
	}
	return d.makeNamespace(ctx, d.namespace, level)
}
