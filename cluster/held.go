package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
)

// The user is told of a load's namespace that is Terminating for heldAfter. The API server is asked no more often than every heldEvery: another
// load may measure it meanwhile.
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

// heldOne says what keeps the first namespace of which that was not told yet. A namespace that goes slowly is told of once, and once more if a
// finalizer holds it.
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
