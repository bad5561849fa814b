package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/site"
	"tare/site/claim"
)

// goneWithin is how long a namespace may take to go: its pods end first.
const goneWithin = time.Minute

// Clean deletes the namespaces of studies that have ended, and waits until they are gone. With dry
// it only lists them. Only namespaces with tare's label count. A namespace whose coordinator still runs is
// in use: a coordinator without a user ends on its own. In Site.Namespace, Clean deletes the objects of studies.
// With the ID of a study, it deletes only that study, even if it is running.
func (s *Site) Clean(ctx context.Context, study string, dry bool) ([]claim.Leftover, error) {
	out, err := s.clean(ctx, study, dry)
	if err == nil && study != "" && len(out) == 0 {
		where := "on " + s.api.Server()
		if s.Namespace != "" {
			where = "in namespace " + s.Namespace + " of " + s.api.Server()
		}
		err = &NoStudyError{fmt.Errorf("study %s does not exist %s; `tare clean --on k8s%s --dry-run` lists the studies", study, where, s.in())}
	}
	return out, err
}

// NoStudyError says that a study that was named does not exist.
type NoStudyError struct{ error }

func (e *NoStudyError) Unwrap() error { return e.error }

func (s *Site) clean(ctx context.Context, study string, dry bool) ([]claim.Leftover, error) {
	ours := labels.Set{pod.LabelManaged: pod.Managed}
	if study != "" {
		ours[pod.LabelStudy] = study
	}
	selector, err := labels.ValidatedSelectorFromSet(ours)
	if err != nil {
		return nil, &NoStudyError{fmt.Errorf("--study %s is not a study ID, which has only letters and digits; `tare clean --on k8s%s --dry-run` lists the studies", study, s.in())}
	}
	which := selector.String()
	if s.Namespace != "" {
		return s.cleanShared(ctx, which, study != "", dry)
	}
	var all corev1.NamespaceList
	if err := s.api.List(ctx, "", which, &all); err != nil {
		also := ""
		if kube.IsForbidden(err) {
			also = "; if your studies have -n NAMESPACE, so must this command"
		}
		return nil, &site.UnableError{Err: fmt.Errorf("cannot list the namespaces of %s: %w%s", s.api.Server(), explained(err, s.Namespace), also)}
	}
	var out []claim.Leftover
	removed := map[string]bool{}
	for i := range all.Items {
		n := &all.Items[i]
		var err error
		if n.DeletionTimestamp == nil && study == "" { // else it is going, or is to go
			err = s.unused(ctx, n.Labels[pod.LabelStudy], namespace(n.Labels[pod.LabelStudy]), n.CreationTimestamp.Time)
		}
		switch {
		case err != nil:
		case dry:
			err = s.mayDelete(ctx, n)
		default:
			err = explained(s.delete(ctx, n), s.Namespace)
			removed[n.Name] = err == nil
		}
		left := claim.Leftover{Kind: KindNamespace, Name: n.Name, Err: err, Kept: errors.As(err, new(usedError))}
		if dry && n.DeletionTimestamp != nil {
			left.Err, left.Kept = errors.New("the cluster is already removing it"), true
		}
		out = append(out, left)
	}
	return append(out, s.volumesOf(ctx, removed)...), nil
}

// volumesOf waits until the volumes of claims in removed namespaces are gone, and returns those that remain. It returns none if the user
// may not list volumes. Only the provisioner removes volumes: if tare deleted a volume's object, the storage could stay behind, unnamed.
func (s *Site) volumesOf(ctx context.Context, removed map[string]bool) (out []claim.Leftover) {
	if len(removed) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	for {
		var all corev1.PersistentVolumeList
		if err := s.api.List(limited, "", "", &all); err != nil {
			if kube.IsForbidden(err) {
				return nil
			}
			break // out has the volumes of the last list
		}
		out = nil
		for i := range all.Items {
			v := &all.Items[i]
			if of := v.Spec.ClaimRef; of != nil && removed[of.Namespace] {
				out = append(out, claim.Leftover{Kind: "PersistentVolume", Name: v.Name, Err: fmt.Errorf("it is %s and still exists after %s; run `kubectl describe pv %s` to see why", v.Status.Phase, minutes(goneWithin), v.Name)})
			}
		}
		if len(out) == 0 {
			return nil
		}
		select {
		case <-limited.Done():
			return out
		case <-time.After(500 * time.Millisecond):
		}
	}
	return out
}

// cleanShared cleans a namespace that is not tare's own. A study is known by its service
// account, which it makes before its pods, or by its pods. With any, one that runs is deleted too.
func (s *Site) cleanShared(ctx context.Context, which string, any, dry bool) ([]claim.Leftover, error) {
	studies := map[string]time.Time{}
	var accounts corev1.ServiceAccountList
	var pods corev1.PodList
	for _, list := range []runtime.Object{&accounts, &pods} {
		if err := s.api.List(ctx, s.Namespace, which, list); err != nil {
			return nil, &site.UnableError{Err: fmt.Errorf("cannot list the objects in namespace %s of %s: %w", s.Namespace, s.api.Server(), explained(err, s.Namespace))}
		}
	}
	for i := range accounts.Items {
		studies[accounts.Items[i].Labels[pod.LabelStudy]] = accounts.Items[i].CreationTimestamp.Time
	}
	for i := range pods.Items {
		studies[pods.Items[i].Labels[pod.LabelStudy]] = pods.Items[i].CreationTimestamp.Time
	}
	if len(studies) == 0 {
		if err := s.missing(ctx); err != nil {
			return nil, &site.UnableError{Err: err}
		}
	}
	var out []claim.Leftover
	for _, id := range slices.Sorted(maps.Keys(studies)) {
		var err error
		if !any {
			err = s.unused(ctx, id, s.Namespace, studies[id])
		}
		if err == nil {
			var names []claim.Leftover
			d := deployment{api: s.api, id: id, namespace: s.Namespace, shared: true}
			names, err = d.removed(ctx, dry)
			out = append(out, names...)
		}
		out = append(out, claim.Leftover{Kind: "study", Name: id, Err: err, Kept: errors.As(err, new(usedError))})
	}
	return out, nil
}

// missing says that the namespace of -n does not exist, or takes nothing new; nil if it does, or if the user may not find out. The API
// server lists a missing namespace like an empty one, and the roles of a shared namespace do not allow reading the namespace.
func (s *Site) missing(ctx context.Context) error {
	try := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: pod.Managed + "-try"}}
	switch err := s.api.Try(ctx, try); {
	case kube.IsGone(err):
		return fmt.Errorf("namespace %s does not exist on %s; check the name given with -n, or create it with `kubectl create namespace %[1]s`; without -n, each study creates its own", s.Namespace, s.api.Server())
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("namespace %s of %s is being deleted; wait until it is gone and create it again, or give another one with -n; without -n, each study creates its own", s.Namespace, s.api.Server())
	}
	return nil
}

// KindNamespace is Clean's word for a namespace of the cluster.
const KindNamespace = "namespace"

// usedError says why a study may be in use.
type usedError string

func (e usedError) Error() string { return string(e) }

// unused returns why a study that began at a time may be in use, as a usedError; nil if it has ended. Another error says that this is unknown.
func (s *Site) unused(ctx context.Context, id, namespace string, begun time.Time) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: coordinatorName(id)}}
	switch err := s.api.Get(ctx, p); {
	case kube.IsGone(err) && time.Since(begun) < upWithin: // its coordinator may be about to be made
		return usedError(fmt.Sprintf("a study may be starting there; try again in %s", minutes(upWithin)))
	case kube.IsGone(err):
		return nil
	case err != nil:
		return fmt.Errorf("cannot tell whether it is in use: %w", explained(err, s.Namespace))
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if !ended && p.DeletionTimestamp == nil {
		return usedError(fmt.Sprintf("a study uses it; repeat the study's command to go on with it, or end it with `tare clean --on k8s%s --study %s`", s.in(), id))
	}
	return nil
}

// mayDelete says that the user has no right to delete a namespace.
func (s *Site) mayDelete(ctx context.Context, n *corev1.Namespace) error {
	allowed, err := s.may(ctx, n.Name, "delete", "", "namespaces")
	if err == nil && !allowed {
		err = errors.New("you may not delete it; `tare rbac` prints the role to ask for")
	}
	return err
}

// in is the flags that select the cluster and the namespace that studies share, each after a blank.
func (s *Site) in() string {
	if s.Namespace == "" {
		return s.api.Flags
	}
	return s.api.Flags + " -n " + s.Namespace
}

func (s *Site) delete(ctx context.Context, n *corev1.Namespace) error {
	late := errors.New("late")
	ctx, cancel := context.WithTimeoutCause(ctx, goneWithin, late)
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
			if err := context.Cause(ctx); !errors.Is(err, late) {
				return err
			}
			why, _ := kube.Held(n)
			return fmt.Errorf("it still exists after %s: %s", minutes(goneWithin), cmp.Or(why, "`kubectl describe namespace "+n.Name+"` shows why"))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
