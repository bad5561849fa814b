package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
)

// Names of what a study's namespace has.
const (
	coordinatorPod    = "coordinator"
	coordinatorSecret = "coordinator"
	agentSecret       = "agent"
)

// deployment is what a connection makes on a cluster.
type deployment struct {
	api           *kube.Client
	id, namespace string
	made          bool
}

// create makes the namespace and starts the coordinator in it. It returns the user's identity.
func (d *deployment) create(ctx context.Context, b Brief) (control.Identity, error) {
	coordinator, agent, user, err := control.NewStudy()
	if err != nil {
		return user, err
	}
	brief, err := json.Marshal(b)
	if err != nil {
		return user, err
	}
	given := coordinator.Files()
	given[briefFile] = brief
	ns := &corev1.Namespace{ObjectMeta: d.meta(d.namespace)}
	ns.Namespace = ""
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := d.api.Create(ctx, ns); err != nil {
		return user, fmt.Errorf("cannot create the namespace %s: %w", d.namespace, err)
	}
	d.made = true
	for _, obj := range []kube.Object{
		&corev1.Secret{ObjectMeta: d.meta(coordinatorSecret), Data: given},
		&corev1.Secret{ObjectMeta: d.meta(agentSecret), Data: agent.Files()},
		&corev1.ServiceAccount{ObjectMeta: d.meta(coordinatorPod)},
		&rbacv1.Role{ObjectMeta: d.meta(coordinatorPod), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "get", "watch", "delete"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: d.meta(coordinatorPod),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: coordinatorPod, Namespace: d.namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: coordinatorPod}},
		pod.Coordinator(d.meta(coordinatorPod), b.Image, coordinatorSecret, port),
	} {
		if err := d.api.Create(ctx, obj); err != nil {
			return user, fmt.Errorf("cannot create %T %s in namespace %s: %w", obj, obj.GetName(), d.namespace, err)
		}
	}
	return user, d.api.WatchPod(ctx, d.namespace, coordinatorPod, func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, errors.New("the coordinator's pod was deleted")
		}
		if err := pod.WhyNot(p); err != nil {
			return true, fmt.Errorf("the coordinator: %w", err)
		}
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		return ready, nil
	})
}

func (d *deployment) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: d.namespace, Labels: map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: d.id}}
}

// remove deletes the namespace and all that is in it.
func (d *deployment) remove(ctx context.Context) error {
	if !d.made {
		return nil
	}
	if err := d.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}, 0); err != nil {
		return fmt.Errorf("cannot delete the namespace %s: %w; delete it with kubectl", d.namespace, err)
	}
	return nil
}
