package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/site"
	"tare/site/claim"
	"tare/trial"
	"tare/workload"
)

// deployment is what a connection makes on a cluster: in a namespace of its own or, with shared, in one
// that exists.
type deployment struct {
	api           *kube.Client
	id, namespace string
	shared        bool
	nodes         []string  // that it measures on
	hosts         []string  // networks (CIDR) that pods on the nodes' own network are seen from; nil: the study has none
	made          []string  // namespaces
	uid           types.UID // of its own namespace
}

// Names of what a study has on a cluster. A namespace may have several studies.
func namespace(id string) string       { return "tare-" + id }
func coordinatorName(id string) string { return "tare-" + id + "-coordinator" } // pod, Secret, service account, role
func agentSecret(id string) string     { return "tare-" + id + "-agent" }

// observerPod is the name of the observer's pod on the i-th node.
func observerPod(id string, i int) string { return fmt.Sprintf("tare-%s-observer-%d", id, i) }

// nodesNamespace has the observers, which may do more than the pods that are measured.
func (d *deployment) nodesNamespace() string {
	if d.shared {
		return d.namespace
	}
	return d.namespace + "-nodes"
}

// name gives the deployment an id, and a namespace after it unless studies share an existing one.
func (d *deployment) name(id, existing string) {
	d.id, d.namespace, d.shared, d.made = id, cmp.Or(existing, namespace(id)), existing != "", nil
}

// existing is the namespace of -n; "": the study has its own.
func (d *deployment) existing() string {
	if d.shared {
		return d.namespace
	}
	return ""
}

// create starts the coordinator of a study whose claim is made, with its identity and that of the agents.
func (d *deployment) create(ctx context.Context, b Brief, coordinator, agent control.Identity) error {
	brief, err := json.Marshal(b)
	if err != nil {
		return err
	}
	given := coordinator.Files()
	given[briefFile] = brief
	if !d.shared {
		if err := d.createAll(ctx, d.quota(b), d.account()); err != nil {
			return err
		}
	}
	if err := d.createAll(ctx, d.objects(b, given, agent.Files())...); err != nil {
		return err
	}
	at, err := d.ready(ctx, d.namespace, coordinatorName(d.id), "the coordinator")
	if err != nil || b.Observers == "" {
		return err
	}
	return d.observe(ctx, b, at, agent)
}

// quota bounds the pods of the study's own namespace.
func (d *deployment) quota(b Brief) kube.Object {
	most := 1
	for _, n := range b.Nodes {
		most += max(podsANode, b.Pods[n.Name])
	}
	return &corev1.ResourceQuota{ObjectMeta: d.meta("tare"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(int64(most), resource.DecimalSI),
	}}}
}

// account is the coordinator's identity.
func (d *deployment) account() kube.Object {
	out := &corev1.ServiceAccount{ObjectMeta: d.meta(coordinatorName(d.id))}
	if d.shared {
		out.Annotations = map[string]string{annotationNodes: strings.Join(d.nodes, ",")}
	}
	return out
}

// objects are what the study has in its namespace beside the account, the coordinator last: its Secret has given, that of the
// agents has their identity.
func (d *deployment) objects(b Brief, given, agent map[string][]byte) []kube.Object {
	name := coordinatorName(d.id)
	var rules []rbacv1.PolicyRule
	for _, r := range b.rules() {
		rules = append(rules, r.PolicyRule)
	}
	out := []kube.Object{
		d.policy(),
		&corev1.Secret{ObjectMeta: d.meta(name), Data: given},
		&corev1.Secret{ObjectMeta: d.meta(agentSecret(d.id)), Data: agent},
		&rbacv1.Role{ObjectMeta: d.meta(name), Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: d.meta(name),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: d.namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	}
	if b.API && !d.shared {
		out = append(out, d.load()...)
	}
	return append(out, elsewhere(pod.Coordinator(d.meta(name), b.Image, name, holdPort), b))
}

// load returns the service account of roles that use the cluster's API, and its rights. The study's namespace owns the
// ClusterRole and its binding, so they go with it, whoever deletes it.
func (d *deployment) load() []kube.Object {
	name := pod.LoadAccount(d.id)
	meta := d.meta(name)
	meta.Namespace = ""
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: d.namespace, UID: d.uid}}
	var rules []rbacv1.PolicyRule
	for _, r := range LoadRules() {
		rules = append(rules, r.PolicyRule)
	}
	return []kube.Object{
		&corev1.ServiceAccount{ObjectMeta: d.meta(name)},
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: d.namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
	}
}

// lessened removes the optional rules of loads from a ClusterRole that the API server refused, and reports whether to try again. A user can
// give only rights that he has. Only a refusal shows which rights he lacks, because not every authorizer lists its rules.
func lessened(obj kube.Object, err error) bool {
	role, is := obj.(*rbacv1.ClusterRole)
	if !is || !apierrors.IsForbidden(err) {
		return false
	}
	all := len(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(p rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(LoadRules(), func(r Rule) bool { return r.Optional && reflect.DeepEqual(r.PolicyRule, p) })
	})
	return len(role.Rules) < all
}

// needsAPI reports whether a role of a study uses the cluster's API.
func needsAPI(r site.Request, loads map[string]workload.Workload) (bool, error) {
	uses, err := (&trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: loads}).Wanted(func(role workload.Role) []string {
		if !role.API {
			return nil
		}
		return []string{role.Name}
	})
	return len(uses) > 0, err
}

// elsewhere has a pod run on a node that the study does not measure, if there is one.
func elsewhere(p *corev1.Pod, b Brief) *corev1.Pod {
	var names []string
	p.Spec.Tolerations = b.Tolerations // if all nodes of the cluster have a taint
	for _, n := range b.Nodes {
		names = append(names, n.Name)
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: names,
		}}},
	}}}}
	return p
}

// podsANode is more than a kubelet takes by default; some take more. So the quota stops only a study that runs wild.
const podsANode = 150

// policy lets only pods of the study reach its pods, where the network honours policies.
func (d *deployment) policy() *networkingv1.NetworkPolicy {
	var hosts []networkingv1.NetworkPolicyPeer
	for _, h := range d.hosts {
		hosts = append(hosts, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: h}})
	}
	ours := metav1.LabelSelector{MatchLabels: map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: d.id}}
	return &networkingv1.NetworkPolicy{ObjectMeta: d.meta("tare-" + d.id), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: ours, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: append(hosts, networkingv1.NetworkPolicyPeer{
			PodSelector: &ours, NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{d.namespace, d.nodesNamespace()},
			}}},
		})}},
	}}
}

// observe starts an observer on each node. They are pods of the study and no DaemonSet, which would
// run on nodes that the study leaves out.
func (d *deployment) observe(ctx context.Context, b Brief, coordinator string, id control.Identity) error {
	ns := d.nodesNamespace()
	if !d.shared {
		if err := d.makeNamespace(ctx, ns, "privileged"); err != nil {
			return err
		}
	}
	if err := d.createAll(ctx, d.observers(b, coordinator, id.Files())...); err != nil {
		return err
	}
	for i, node := range b.observed() {
		if _, err := d.ready(ctx, ns, observerPod(d.id, i), "the observer on node "+node); err != nil {
			return err
		}
	}
	return nil
}

// observers are the pods on the nodes, and the Secret with their identity.
func (d *deployment) observers(b Brief, coordinator string, agent map[string][]byte) []kube.Object {
	in := func(name string) metav1.ObjectMeta {
		m := d.meta(name)
		m.Namespace = d.nodesNamespace()
		return m
	}
	objects := []kube.Object{}
	if !d.shared {
		objects = append(objects, &corev1.Secret{ObjectMeta: in(agentSecret(d.id)), Data: agent})
	}
	s := pod.Study{Image: b.Image, Secret: agentSecret(d.id), Coordinator: net.JoinHostPort(coordinator, fmt.Sprint(port))}
	for i, node := range b.observed() {
		objects = append(objects, pod.Observer(in(observerPod(d.id, i)), node, s, b.Observers))
	}
	return objects
}

func (d *deployment) createAll(ctx context.Context, objects ...kube.Object) error {
	for _, obj := range objects {
		err := d.api.Create(ctx, obj)
		if p, is := obj.(*corev1.Pod); is && err != nil && len(pod.Limit(p, err)) > 0 { // its limits are not of what is measured
			err = d.api.Create(ctx, p)
		}
		if lessened(obj, err) {
			err = d.api.Create(ctx, obj)
		}
		if err != nil {
			return d.cannotCreate(obj, err)
		}
	}
	return nil
}

// cannotCreate explains why the API server did not take an object.
func (d *deployment) cannotCreate(obj kube.Object, err error) error {
	kind, kerr := kube.KindOf(obj)
	switch {
	case kerr != nil:
		return kerr
	case obj.GetNamespace() == "":
		return fmt.Errorf("cannot create the namespace %s: %w", obj.GetName(), explained(err, d.existing()))
	}
	return fmt.Errorf("cannot create the %s %s in namespace %s: %w", kind.Kind, obj.GetName(), obj.GetNamespace(), explained(err, d.existing()))
}

// labelled is a namespace at a level of the Pod Security Standards.
func (d *deployment) labelled(name, level string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: d.meta(name)}
	ns.Namespace = ""
	ns.Labels["pod-security.kubernetes.io/enforce"] = level
	if name == d.namespace && len(d.nodes) > 0 {
		ns.Annotations = map[string]string{annotationNodes: strings.Join(d.nodes, ",")}
	}
	return ns
}

// makeNamespace makes a namespace whose pods meet a level of the Pod Security Standards.
func (d *deployment) makeNamespace(ctx context.Context, name, level string) error {
	ns := d.labelled(name, level)
	if err := d.api.Create(ctx, ns); err != nil {
		return d.cannotCreate(ns, err)
	}
	if name == d.namespace {
		d.uid = ns.UID
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

// kinds are the types of what a study makes in a namespace, the pods first.
func kinds() []runtime.Object {
	return []runtime.Object{
		&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ServiceAccountList{}, &networkingv1.NetworkPolicyList{},
	}
}

// clean returns the command that removes the study.
func (d *deployment) clean() string {
	in := ""
	if d.shared {
		in = " -n " + d.namespace
	}
	return "tare clean --on k8s" + d.api.Flags + in + " --study " + d.id
}

// remove deletes what the study created: its namespaces with their contents, or the objects with its label.
func (d *deployment) remove(ctx context.Context) error {
	_, err := d.removed(ctx, false)
	return err
}

// removeNow is remove with time of its own: the user may have ended ctx.
func (d *deployment) removeNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	return d.remove(ctx)
}

// removed is remove, and names the objects of a namespace that stays. With dry it only names them.
func (d *deployment) removed(ctx context.Context, dry bool) (names []claim.Leftover, err error) {
	var all []error
	var denied []string
	if d.shared {
		labels := pod.LabelManaged + "=" + pod.Managed + "," + pod.LabelStudy + "=" + d.id
		for _, list := range kinds() {
			err := d.api.DeleteAll(ctx, d.namespace, labels, list, dry)
			if m := lacksRight.FindStringSubmatch(fmt.Sprint(err)); m != nil {
				denied = append(denied, m[3])
			} else if err != nil {
				all = append(all, fmt.Errorf("cannot delete the objects of study %s in namespace %s: %w; try again with `%s`", d.id, d.namespace, explained(err, d.namespace), d.clean()))
			}
			if apierrors.IsUnauthorized(err) {
				break // so are the others, and one line says it
			}
			_ = meta.EachListItem(list, func(o runtime.Object) error {
				obj, is := o.(kube.Object)
				if !is {
					return nil
				}
				kind, err := kube.KindOf(obj)
				names = append(names, claim.Leftover{Kind: kind.Kind, Name: obj.GetName()})
				return err
			})
		}
	}
	if len(denied) > 0 {
		all = append(all, fmt.Errorf("you may not delete (deletecollection) %s in namespace %s; `tare rbac -n %[2]s` prints the roles to ask for; then try again with `%s`", strings.Join(denied, ", "), d.namespace, d.clean()))
	}
	for _, name := range d.made {
		if err := d.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, 0); err != nil {
			all = append(all, fmt.Errorf("cannot delete the namespace %s: %w; then try again with `%s`", name, explained(err, ""), d.clean()))
		}
	}
	return names, errors.Join(all...)
}
