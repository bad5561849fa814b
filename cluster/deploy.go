package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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
	made          []string // namespaces
}

// namespace is the name of the namespace of a study.
func namespace(id string) string { return "tare-" + id }

// nodesNamespace has the observers, which may do more than the pods that are measured.
func (d *deployment) nodesNamespace() string { return d.namespace + "-nodes" }

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
	if err := d.makeNamespace(ctx, d.namespace, "restricted"); err != nil {
		return user, err
	}
	err = d.createAll(ctx,
		&corev1.Secret{ObjectMeta: d.meta(coordinatorSecret), Data: given},
		&corev1.Secret{ObjectMeta: d.meta(agentSecret), Data: agent.Files()},
		&corev1.ServiceAccount{ObjectMeta: d.meta(coordinatorPod)},
		&rbacv1.Role{ObjectMeta: d.meta(coordinatorPod), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "get", "watch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"watch"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: d.meta(coordinatorPod),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: coordinatorPod, Namespace: d.namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: coordinatorPod}},
		pod.Coordinator(d.meta(coordinatorPod), b.Image, coordinatorSecret, port),
	)
	if err != nil {
		return user, err
	}
	at, err := d.ready(ctx, d.namespace, coordinatorPod, "the coordinator")
	if err != nil || b.Observers == "" {
		return user, err
	}
	return user, d.observe(ctx, b, at, agent)
}

// observe starts an observer on each node. They are pods of the study and no DaemonSet, which would
// run on nodes that the study leaves out.
func (d *deployment) observe(ctx context.Context, b Brief, coordinator string, id control.Identity) error {
	ns := d.nodesNamespace()
	if err := d.makeNamespace(ctx, ns, "privileged"); err != nil {
		return err
	}
	in := func(name string) metav1.ObjectMeta {
		m := d.meta(name)
		m.Namespace = ns
		return m
	}
	objects := []kube.Object{&corev1.Secret{ObjectMeta: in(agentSecret), Data: id.Files()}}
	s := pod.Study{Image: b.Image, Secret: agentSecret, Coordinator: net.JoinHostPort(coordinator, fmt.Sprint(port))}
	for i, n := range b.Nodes {
		objects = append(objects, pod.Observer(in(observerPod(i)), n.Name, s, b.Observers))
	}
	if err := d.createAll(ctx, objects...); err != nil {
		return err
	}
	for i, n := range b.Nodes {
		if _, err := d.ready(ctx, ns, observerPod(i), "the observer on node "+n.Name); err != nil {
			return err
		}
	}
	return nil
}

// observerPod is the name of the observer's pod on the i-th node.
func observerPod(i int) string { return fmt.Sprintf("observer-%d", i) }

func (d *deployment) createAll(ctx context.Context, objects ...kube.Object) error {
	for _, obj := range objects {
		if err := d.api.Create(ctx, obj); err != nil {
			return fmt.Errorf("cannot create %T %s in namespace %s: %w", obj, obj.GetName(), obj.GetNamespace(), err)
		}
	}
	return nil
}

// makeNamespace makes a namespace whose pods meet a level of the Pod Security Standards.
func (d *deployment) makeNamespace(ctx context.Context, name, level string) error {
	ns := &corev1.Namespace{ObjectMeta: d.meta(name)}
	ns.Namespace = ""
	ns.Labels["pod-security.kubernetes.io/enforce"] = level
	if err := d.api.Create(ctx, ns); err != nil {
		return fmt.Errorf("cannot create the namespace %s: %w", name, err)
	}
	d.made = append(d.made, name)
	return nil
}

// ready waits until a pod is ready, and returns its address.
func (d *deployment) ready(ctx context.Context, namespace, name, what string) (address string, err error) {
	err = d.api.WatchPod(ctx, namespace, name, func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, fmt.Errorf("%s: the pod was deleted", what)
		}
		if err := pod.WhyNot(p); err != nil {
			return true, fmt.Errorf("%s: %w", what, err)
		}
		address = p.Status.PodIP
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	return address, err
}

func (d *deployment) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: d.namespace, Labels: map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: d.id}}
}

// remove deletes the namespaces and all that is in them.
func (d *deployment) remove(ctx context.Context) error {
	var all []error
	for _, name := range d.made {
		if err := d.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, 0); err != nil {
			all = append(all, fmt.Errorf("cannot delete the namespace %s: %w; delete it with kubectl", name, err))
		}
	}
	return errors.Join(all...)
}
