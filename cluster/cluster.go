// Package cluster is a Kubernetes cluster as a site: trials are made in pods.
//
// The data path: 1. Discover reads the nodes and RuntimeClasses; 2. Connect creates a namespace
// with a coordinator in a pod, forwards its port and speaks to it as to another machine
// (site/remote); 3. the coordinator (coordinator.go) makes the trials: its sandboxes are pods,
// whose agents dial it (cluster/control, cluster/pod); 4. Close deletes the namespace.
//
// Nothing measured passes through the user's machine or the API server while a trial runs.
// docs/design/0031-cluster.md says why.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/site/remote"
)

// Cluster is a cluster that can be reached, and what it has.
type Cluster struct {
	api     *kube.Client
	Classes []pod.Class
	Nodes   []record.Node
}

// Discover reads the cluster's RuntimeClasses, and its nodes that are ready and take pods.
func Discover(ctx context.Context, w kube.Where) (*Cluster, error) {
	api, err := kube.FromKubeconfig(w)
	if err != nil {
		return nil, &site.UnableError{Err: err}
	}
	c := &Cluster{api: api, Classes: []pod.Class{{Name: sandbox.Native}}}
	var classes nodev1.RuntimeClassList
	if err := api.List(ctx, "", "", &classes); err != nil {
		return nil, &site.UnableError{Err: fmt.Errorf("cannot list the RuntimeClasses of %s: %w", api.Server(), err)}
	}
	for _, k := range classes.Items {
		c.Classes = append(c.Classes, pod.Class{Name: k.Name, Class: k.Name, Handler: k.Handler})
	}
	var nodes corev1.NodeList
	if err := api.List(ctx, "", "", &nodes); err != nil {
		return nil, &site.UnableError{Err: fmt.Errorf("cannot list the nodes of %s: %w", api.Server(), err)}
	}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; usable(n) {
			c.Nodes = append(c.Nodes, describe(n))
		}
	}
	slices.SortFunc(c.Nodes, func(a, b record.Node) int { return cmp.Compare(a.Name, b.Name) })
	if len(c.Nodes) == 0 {
		return nil, &site.UnableError{Err: fmt.Errorf("none of the %d nodes of %s is ready and takes pods; `kubectl get nodes` says more", len(nodes.Items), api.Server())}
	}
	return c, nil
}

// usable reports whether a node is ready and takes pods that tolerate nothing. Nodes of a
// simulation (https://kwok.sigs.k8s.io) run nothing.
func usable(n *corev1.Node) bool {
	if n.Spec.Unschedulable || n.Annotations["kwok.x-k8s.io/node"] != "" {
		return false
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			return false
		}
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// describe is a node as results keep it. Its name is the label by which pods choose it.
func describe(n *corev1.Node) record.Node {
	i := n.Status.NodeInfo
	return record.Node{Name: cmp.Or(n.Labels[corev1.LabelHostname], n.Name), Host: record.Host{
		Hostname: n.Name, OS: i.OSImage, Kernel: i.KernelVersion, Arch: i.Architecture,
		Threads: int(n.Status.Capacity.Cpu().Value()), MemoryBytes: n.Status.Capacity.Memory().Value(),
		Tools: map[string]string{"kubelet": i.KubeletVersion, "container runtime": i.ContainerRuntimeVersion},
	}}
}

// Kinds are the sandboxes that a study can name here: they describe, and start nothing.
func (c *Cluster) Kinds() []sandbox.Kind {
	var out []sandbox.Kind
	for _, k := range c.Classes {
		out = append(out, pod.New(k, nil, nil, nil))
	}
	return out
}

// Setup is what Connect needs beside the cluster.
type Setup struct {
	Image string // of tare
	Takes remote.Takes
	Heard func(string) // tells the user what the coordinator said
}

// upWithin is how long the coordinator may take to run: its image may have to be pulled.
const upWithin = 3 * time.Minute

// Connect starts a coordinator and connects to it. remove ends it and deletes what was made; it
// says what is left.
func (c *Cluster) Connect(ctx context.Context, s Setup) (m *remote.Machine, remove func() error, err error) {
	d := deployment{api: c.api, id: "t" + strings.ToLower(rand.Text()[:8])}
	d.namespace = "tare-" + d.id
	remove = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return d.remove(ctx)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, upWithin, fmt.Errorf("the coordinator was not ready within %s", upWithin))
	defer cancel()
	user, err := d.create(ctx, Brief{ID: d.id, Namespace: d.namespace, Image: s.Image, Classes: c.Classes, Nodes: c.Nodes, Agents: agentSecret})
	if err != nil {
		return nil, remove, &site.UnableError{Err: err}
	}
	raw, err := c.api.Forward(d.namespace, coordinatorPod, port)
	if err != nil {
		return nil, remove, &site.UnableError{Err: err}
	}
	conn, err := control.Join(ctx, user, raw)
	if err != nil {
		return nil, remove, &site.UnableError{Err: errors.Join(err, raw.Close())}
	}
	m, err = remote.Connect(conn, conn, way{conn}, remote.Setup{
		Name: "the coordinator in " + d.namespace, Takes: s.Takes, Heard: remote.Bounded(s.Heard),
		About: site.About{
			Flag: "--on k8s", Suffix: "-k8s", Cannot: "the cluster cannot run",
			Nothing: "the cluster can run no cell of the study; the reasons are above",
		},
	})
	return m, remove, err
}

// way is a forwarded connection as remote.Way.
type way struct{ io.Closer }

func (w way) Kill()           { _ = w.Close() }
func (way) Why(e error) error { return e }

// Names of what a study's namespace has.
const (
	coordinatorPod    = "coordinator"
	coordinatorSecret = "coordinator"
	agentSecret       = "agent"
)

// deployment is what Connect makes on a cluster.
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
