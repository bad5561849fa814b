package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
)

// tare tells the user about a load's namespace that has been Terminating for heldAfter. It asks the API server at most once every heldEvery,
// because another load may measure the server at the same time.
const (
	heldAfter = 30 * time.Second
	heldEvery = 20 * time.Second
)

// held tells the user what keeps namespaces of a study's loads from going, until ctx ends. A user who may not list namespaces is not told.
func (s *Site) held(ctx context.Context, id string) {
	told := map[any]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(heldEvery):
		}
		var all corev1.NamespaceList
		if err := s.api.List(ctx, "", pod.LabelStudy+"="+id, &all); kube.IsForbidden(err) {
			return
		}
		if text := heldOne(all.Items, time.Now(), told); text != "" {
			s.Say("%s", text)
		}
	}
}

// heldOne says what keeps the first namespace that the user was not told about. It names a slow namespace once, and once more if a finalizer
// holds the namespace.
func heldOne(all []corev1.Namespace, now time.Time, told map[any]bool) string {
	type key struct {
		name    string
		lasting bool
	}
	for i := range all {
		n := &all[i]
		if n.DeletionTimestamp == nil || now.Sub(n.DeletionTimestamp.Time) < heldAfter {
			continue
		}
		why, lasting := kube.Held(n)
		if k := (key{n.Name, lasting}); why != "" && !told[k] {
			told[k] = true
			return kube.Terminating(n, now) + ": " + why
		}
	}
	return ""
}
