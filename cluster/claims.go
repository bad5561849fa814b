package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/workload"
)

// storage reads the cluster's StorageClasses; nil where the user may not.
func (s *Site) storage(ctx context.Context) ([]pod.StorageClass, error) {
	var all storagev1.StorageClassList
	switch err := s.api.List(ctx, "", "", &all); {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot list the StorageClasses of %s: %w", s.api.Server(), explained(err, s.Namespace))
	}
	out := []pod.StorageClass{}
	for i := range all.Items {
		c := &all.Items[i]
		out = append(out, pod.StorageClass{
			Name: c.Name, Default: c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true",
			Keeps: c.ReclaimPolicy != nil && *c.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain,
			Waits: c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer,
		})
	}
	return out, nil
}

// claimsNot says why claims that a load makes would stay unbound; "" if they would not, or the cluster's StorageClasses are not known.
func claimsNot(want *workload.Claims, has []pod.StorageClass) string {
	if want == nil || has == nil {
		return ""
	}
	var all, immediate []string
	for _, c := range has {
		all = append(all, c.Name)
		if !c.Waits {
			immediate = append(immediate, c.Name)
		}
	}
	write := func(names []string) string {
		if len(names) == 0 {
			return "make one"
		}
		return "write storage: and one of " + strings.Join(names, ", ")
	}
	i := slices.IndexFunc(has, func(c pod.StorageClass) bool {
		return want.Class == "" && c.Default || want.Class != "" && c.Name == want.Class
	})
	switch {
	case i < 0 && want.Class == "":
		return "the cluster has no default StorageClass; " + write(all)
	case i < 0:
		return fmt.Sprintf("the cluster has no StorageClass %q; %s", want.Class, write(all))
	case want.Immediate && has[i].Waits:
		return fmt.Sprintf("StorageClass %s binds a claim only when a pod uses it; write consumer: pod, or a class that binds at once: %s", has[i].Name, write(immediate))
	}
	return ""
}

// claims makes the claims of trials, and removes them. Not every trial has some.
type claims struct {
	api   *kube.Client
	study *pod.Study

	mu     sync.Mutex
	trials map[string]bool
}

// provide makes the claims of a sandbox, unless another one of its role has made them.
func (c *claims) provide(ctx context.Context, want *sandbox.Want) error {
	for _, claim := range c.study.Claims(want) {
		c.mu.Lock()
		c.trials[want.Trial] = true
		c.mu.Unlock()
		if _, err := c.api.CreateOnceFree(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create the claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// remove deletes a trial's claims and waits until they are gone, so that the next trial does not find
// the storage busy with them.
func (c *claims) remove(ctx context.Context, trial string) []error {
	c.mu.Lock()
	has := c.trials[trial]
	delete(c.trials, trial)
	c.mu.Unlock()
	if !has {
		return nil
	}
	labels := pod.LabelStudy + "=" + c.study.ID + "," + pod.LabelTrial + "=" + trial
	var left corev1.PersistentVolumeClaimList
	err := c.api.DeleteAll(ctx, c.study.Namespace, labels, &left, false)
	for err == nil {
		if err = c.api.List(ctx, c.study.Namespace, labels, &left); err == nil && len(left.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return []error{fmt.Errorf("the claims of trial %s: %w", trial, err)}
}
