package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/host/state"
)

// goneWithin is how long a namespace may take to go: its pods end first.
const goneWithin = time.Minute

// Clean deletes the namespaces of studies that have ended, and waits until they are gone; with dry
// it only lists them. Only namespaces with tare's label count. One whose coordinator still runs is
// in use: a coordinator without a user ends by itself.
func (s *Site) Clean(ctx context.Context, dry bool) ([]state.Leftover, error) {
	var all corev1.NamespaceList
	if err := s.api.List(ctx, "", pod.LabelManaged+"="+pod.Managed, &all); err != nil {
		return nil, fmt.Errorf("cannot list the namespaces of %s: %w", s.api.Server(), err)
	}
	var out []state.Leftover
	for i := range all.Items {
		n := &all.Items[i]
		used, err := s.used(ctx, namespace(n.Labels[pod.LabelStudy]))
		switch {
		case err != nil:
		case used:
			err = errors.New("a study uses it; its coordinator ends when nobody is connected")
		case !dry:
			err = s.delete(ctx, n)
		}
		out = append(out, state.Leftover{Kind: KindNamespace, Name: n.Name, Err: err})
	}
	return out, nil
}

// KindNamespace is what Clean calls a namespace of the cluster.
const KindNamespace = "namespace"

// used reports whether the coordinator of a study's namespace has not ended.
func (s *Site) used(ctx context.Context, namespace string) (bool, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: coordinatorPod}}
	switch err := s.api.Get(ctx, p); {
	case kube.IsGone(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read its coordinator: %w", err)
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return !ended && p.DeletionTimestamp == nil, nil
}

func (s *Site) delete(ctx context.Context, n *corev1.Namespace) error {
	ctx, cancel := context.WithTimeoutCause(ctx, goneWithin, fmt.Errorf("it is not gone after %s; `kubectl describe namespace %s` says what it waits for", goneWithin, n.Name))
	defer cancel()
	if err := s.api.Delete(ctx, n, 0); err != nil {
		return err
	}
	for {
		if err := s.api.Get(ctx, n); kube.IsGone(err) {
			return nil
		} else if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
