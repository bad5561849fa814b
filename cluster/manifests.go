package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/kubevirt"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/trial"
	"tare/workload"
)

// What stands in manifests for what is known only when a study runs.
const (
	notSecret     = "redacted"
	someID        = "t00000000"
	someNode      = "NODE"
	otherNode     = "OTHER-NODE"
	someAddress   = "COORDINATOR"
	someUID       = "00000000-0000-0000-0000-000000000000"
	someImage     = "IMAGE"
	someHostsCIDR = "192.0.2.1/32" // RFC 5737: of no host
)

// Manifest is an object that a study creates, and its purpose.
type Manifest struct {
	Object kube.Object
	About  string
}

// Without prepares the site for Manifests without a cluster: its classes are those that the study names.
// Manifests needs a call of either Without or Discover.
func (s *Site) Without(st *study.Study) {
	s.classes = []pod.Class{{Name: sandbox.Native}}
	known := map[string]bool{"": true, sandbox.Native: true}
	add := func(class string) {
		if !known[class] {
			s.classes = append(s.classes, pod.Class{Name: class, Class: class, Handler: class})
		}
		known[class] = true
	}
	for _, d := range st.Sandboxes {
		add(pod.ClassOf(d.Values))
	}
	for _, l := range st.Boxes() {
		if !slices.ContainsFunc(st.Sandboxes, func(d study.Sandbox) bool { return d.Name == l }) {
			add(l)
		}
	}
}

// someNodes stand for the nodes of a cluster that is not known: so many as the study needs.
func someNodes(st *study.Study) []record.Node {
	if slices.ContainsFunc(st.Factors, func(f study.Factor) bool {
		return f.Name == study.FactorLinkPath && slices.Contains(f.Levels, record.PathNodes) || f.Name == study.FactorCopiesOn && slices.Contains(f.Levels, study.CopiesSpread)
	}) {
		return []record.Node{{Name: someNode}, {Name: otherNode}}
	}
	return []record.Node{{Name: someNode}}
}

// Skips returns the cells of a study that no cluster can run, with the reasons. What a flag adds, such as an observer or the reference of an
// image, is taken as given. It asks nobody, and needs Without.
func (s *Site) Skips(r site.Request) ([]record.Skip, error) {
	names, err := (&trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: s.Workloads}).NeedsImages()
	if err != nil {
		return nil, err
	}
	on := place{images: map[string]Image{}, at: someNodes(r.Study), shared: s.Namespace != "", simulated: -1, observed: true}
	for _, name := range names {
		img := Image{}
		if _, err := reference(name, s.Apps); err != nil && !errors.Is(err, errNotPushed) {
			img.Missing = fmt.Sprintf("image %s: %v", name, err)
		}
		on.images[name] = img
	}
	_, _, skips, err := s.plannedOn(on, r, s.Workloads, &pod.Study{ID: someID, Machines: on.at})
	return skips, err
}

// Manifests returns the objects of a study in the order of their creation, with one pod for all sandboxes that
// differ only in their names. They contain no secrets.
func (s *Site) Manifests(r site.Request, loads map[string]workload.Workload) ([]Manifest, []record.Skip, error) {
	id, on := someID, chosen{}
	var err error
	if s.api == nil {
		var onHost bool
		if on, _, onHost, err = s.wanted(r.Study); err == nil && onHost {
			on.hosts = []string{someHostsCIDR}
		}
		on.nodes = someNodes(r.Study)
	} else {
		id = newID()
		on, err = s.choose(r.Study)
	}
	if err != nil {
		return nil, nil, &site.UnableError{Err: err}
	}
	d := deployment{api: s.api, nodes: on.names(), hosts: on.hosts}
	d.name(id, s.Namespace)
	b := Brief{ID: id, Namespace: d.namespace, Image: cmp.Or(s.Image, someImage), Nodes: on.nodes, Pods: on.pods, Tolerations: on.tolerations, Observers: notSecret, VMs: needsVMs(r.Study)}
	if b.API, err = needsAPI(r, loads); err != nil {
		return nil, nil, err
	}
	d.uid = someUID
	var out []Manifest
	add := func(about string, objects ...kube.Object) {
		for _, o := range objects {
			if secret, is := o.(*corev1.Secret); is {
				secret.StringData = map[string]string{}
				for name := range secret.Data {
					secret.StringData[name] = notSecret
				}
				secret.Data = nil
			}
			out = append(out, Manifest{o, about})
		}
	}
	if !d.shared {
		add("the study's namespace", d.labelled(d.namespace, b.admits()))
		add("a limit for a runaway study", d.quota(b))
	}
	add("the coordinator's identity", d.account())
	files, given := control.Identity{}.Files(), control.Identity{}.Files()
	given[briefFile] = nil
	objects := d.objects(b, given, files)
	add("what the coordinator needs", objects[:len(objects)-1]...)
	add("the coordinator, which starts the pods below", objects[len(objects)-1])
	pods, skips, err := s.pods(r, loads, &pod.Study{
		ID: id, Namespace: d.namespace, UID: someUID, Image: b.Image, Coordinator: net.JoinHostPort(someAddress, fmt.Sprint(port)), Secret: agentSecret(id),
		Tolerations: on.tolerations, Machines: on.nodes,
	})
	if err != nil {
		return nil, nil, err
	}
	out = append(out, pods...)
	if s.Observe {
		if !d.shared {
			add("the observers' namespace", d.labelled(d.nodesNamespace(), "privileged"))
		}
		add("an observer on each node", d.observers(b, someAddress, files)...)
	}
	return out, skips, nil
}

// planned are the sandboxes of a study's cells and their kinds, all of which have manifests. Cells that the cluster cannot have are skipped.
func (s *Site) planned(r site.Request, loads map[string]workload.Workload, st *pod.Study) (out []trial.Planned, kinds map[string]sandbox.Kind, skips []record.Skip, err error) {
	images, err := s.references(r, loads)
	if err != nil {
		return nil, nil, nil, err
	}
	st.Images = ofPods(images)
	simulated := -1
	if s.ready != nil {
		simulated = s.simulated
	}
	return s.plannedOn(place{images: images, at: st.Machines, shared: s.Namespace != "", simulated: simulated, observed: s.Observe, storage: s.volumes}, r, loads, st)
}

// plannedOn is planned on a place.
func (s *Site) plannedOn(on place, r site.Request, loads map[string]workload.Workload, st *pod.Study) (out []trial.Planned, kinds map[string]sandbox.Kind, skips []record.Skip, err error) {
	classes := pod.RuntimeClasses(s.classes, nil, nil, st)
	kinds = map[string]sandbox.Kind{}
	for _, k := range slices.Concat(classes, defined(r.Study, classes[0])) {
		kinds[k.Name()] = k
	}
	for _, k := range vms(r.Study, kubevirt.New(s.vms, nil, nil, st)) {
		kinds[k.Name()] = k
	}
	m := trial.Maker{ID: st.ID, Study: r.Study, Catalogue: r.Catalogue, Workloads: loads, Kinds: kinds, Place: on, Nodes: on.names()}
	all, skips, err := m.Sandboxes(st.Machines[0].Name)
	if err != nil {
		return nil, nil, nil, err
	}
	not := map[string]bool{} // cells, of which each is skipped once
	for _, p := range all {
		var why error
		switch k := kinds[p.Kind].(type) {
		case *pod.RuntimeClass:
			why = k.Cannot(&p.Want)
		case *kubevirt.Machines: // asks nobody
			why = k.CheckHere(context.Background(), sandbox.Spec{Want: p.Want})
		}
		if key := p.Cell.Key(); why != nil && !not[key] {
			not[key] = true
			skips = append(skips, record.Skip{Cell: p.Cell, Reason: p.Kind + ": " + why.Error()})
		}
	}
	for _, p := range all {
		if _, is := kinds[p.Kind].(sandbox.Manifester); is && !not[p.Cell.Key()] { // Sandboxes has skipped the others
			out = append(out, p)
		}
	}
	return out, kinds, skips, nil
}

// pods are those of a study's sandboxes, of equal ones the first.
func (s *Site) pods(r site.Request, loads map[string]workload.Workload, st *pod.Study) (out []Manifest, skips []record.Skip, err error) {
	planned, kinds, skips, err := s.planned(r, loads, st)
	if err != nil {
		return nil, nil, err
	}
	at, cells := map[string]int{}, map[string]int{}
	var keys []string
	for _, p := range planned {
		k, _ := kinds[p.Kind].(sandbox.Manifester) // planned has no others
		claims := st.Claims(&p.Want)
		made, err := objectsOf(k, p.Want)
		if err != nil {
			return nil, nil, err
		}
		p.Want.Name, p.Want.Trial = "", ""
		key, err := k.Manifest(p.Want)
		if err != nil {
			return nil, nil, err
		}
		cells[string(key)]++
		if _, known := at[string(key)]; !known {
			for _, c := range claims {
				out = append(out, Manifest{c, "a claim for the sandbox below; each trial gets its own"})
			}
			at[string(key)] = len(out)
			keys = append(keys, string(key))
			for _, o := range made {
				out = append(out, Manifest{o, fmt.Sprintf("sandbox %s, role %s; first of cell %s", p.Kind, p.Want.Role, p.Cell)})
			}
		}
	}
	for _, key := range keys {
		if n := cells[key]; n > 1 {
			out[at[key]].About += fmt.Sprintf(", and the same for %d more", n-1)
		}
	}
	return out, skips, nil
}

// objectsOf are what a kind makes for a sandbox.
func objectsOf(k sandbox.Manifester, want sandbox.Want) ([]kube.Object, error) {
	switch k := k.(type) {
	case *pod.RuntimeClass:
		return []kube.Object{k.Pod(want)}, nil
	case *kubevirt.Machines:
		return k.Manifests(want)
	}
	return nil, nil
}

// Text returns a manifest as YAML, with its purpose as a comment.
func (m Manifest) Text() (string, error) {
	text, err := kube.YAML(m.Object)
	return "# " + m.About + "\n" + string(text), err
}

// Judgement is the API server's answer to a manifest.
type Judgement struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	About     string `json:"about,omitempty"`    // its purpose
	Refused   string `json:"refused,omitempty"`  // why; "": it is accepted, or not judged
	Unjudged  string `json:"unjudged,omitempty"` // why a dry run cannot judge it
	Warning   string `json:"warning,omitempty"`  // why it will not run, although it is accepted
}

// Judge sends the manifests of a study to the API server as dry runs. Their namespaces must exist for that:
// if they are the study's own, Judge creates them, and deletes them at the end. The coordinator's pod gets the
// namespace's default service account, because its own does not exist.
func (s *Site) Judge(ctx context.Context, all []Manifest) (out []Judgement, err error) {
	var storage []pod.StorageClass
	if slices.ContainsFunc(all, func(m Manifest) bool { _, is := m.Object.(*corev1.PersistentVolumeClaim); return is }) {
		if storage, err = s.storage(ctx); err != nil {
			return nil, err
		}
	}
	d := deployment{api: s.api}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		err = errors.Join(err, d.remove(ctx))
	}()
	for _, m := range all {
		kind, err := kube.KindOf(m.Object)
		if err != nil {
			return out, err
		}
		obj := m.Object.DeepCopyObject().(kube.Object)
		if p, is := obj.(*corev1.Pod); is {
			p.Spec.ServiceAccountName = ""
		}
		j := Judgement{Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), About: m.About}
		err = s.api.Try(ctx, obj)
		if p, is := obj.(*corev1.Pod); is && err != nil && p.Labels[pod.LabelTrial] == "" && len(pod.Limit(p, err)) > 0 { // as a run does with its own pods
			err = s.api.Try(ctx, p)
		}
		if lessened(obj, err) {
			err = s.api.Try(ctx, obj)
		}
		_, binds := obj.(*rbacv1.RoleBinding)
		switch {
		case err != nil && binds && kube.IsGone(err):
			j.Unjudged = "a dry run creates no role, so the API server does not find the role that this binds"
		case err != nil:
			j.Refused = bounded(explained(err, s.Namespace).Error())
		}
		switch o := obj.(type) {
		case *corev1.Pod:
			if err == nil {
				j.Warning = s.tooLarge(o)
			}
		case *corev1.PersistentVolumeClaim:
			if err == nil {
				j.Warning = unbindable(o, storage)
			}
		}
		out = append(out, j)
		if ns, is := obj.(*corev1.Namespace); is && err == nil {
			delete(ns.Annotations, annotationNodes) // nothing is measured, so the study takes no nodes from others
			if err := s.api.Create(ctx, ns); err != nil {
				return out, fmt.Errorf("cannot create the namespace %s, which the dry runs need: %w; give an existing one with -n", ns.Name, err)
			}
			d.made = append(d.made, ns.Name)
		}
		if ctx.Err() != nil {
			return out, site.ErrInterrupted
		}
	}
	return out, nil
}

// unbindable says that a claim stays pending, because the cluster lacks its StorageClass. It returns "" if the cluster has the class, or
// if the user may not list the classes (has is nil).
func unbindable(c *corev1.PersistentVolumeClaim, has []pod.StorageClass) string {
	name := c.Spec.StorageClassName
	switch {
	case has == nil:
	case name == nil && !slices.ContainsFunc(has, func(k pod.StorageClass) bool { return k.Default }):
		return "the cluster has no default StorageClass, so the claim stays unbound; tare run skips the cell"
	case name != nil && *name != "" && !slices.ContainsFunc(has, func(k pod.StorageClass) bool { return k.Name == *name }):
		return fmt.Sprintf("the cluster has no StorageClass %q, so the claim stays unbound; tare run skips the cell", *name)
	}
	return ""
}

// tooLarge says that a pod requests more than any ready node has; "": one has as much.
func (s *Site) tooLarge(p *corev1.Pod) string {
	for _, of := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		var asked, most resource.Quantity
		for i := range p.Spec.Containers {
			asked.Add(p.Spec.Containers[i].Resources.Requests[of])
		}
		for _, n := range s.ready {
			if has := n.Status.Allocatable[of]; has.Cmp(most) > 0 {
				most = has
			}
		}
		if asked.Cmp(most) > 0 {
			return fmt.Sprintf("no node has room for its request of %s %s, because the largest has %s; tare run skips the cell", asked.String(), of, most.String())
		}
	}
	return ""
}

// mostReason bounds what the API server says, in bytes.
const mostReason = 500

func bounded(s string) string {
	if len(s) > mostReason {
		return strings.ToValidUTF8(s[:mostReason], "") + " [cut]"
	}
	return s
}
