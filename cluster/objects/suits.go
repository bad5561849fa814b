package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"tare/cluster/pod"
	"tare/param"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

// Cluster is what a cluster has, as far as the objects of a load ask for it.
type Cluster struct {
	Nodes    []corev1.Node
	Runtimes []string           // names of the RuntimeClasses
	Storage  []pod.StorageClass // nil: not known
}

// runs refuses a RuntimeClass that the cluster lacks; "" is the default.
func (c *Cluster) runs(class string) error {
	if c == nil || class == "" || slices.Contains(c.Runtimes, class) {
		return nil
	}
	instead := "leave it out, or install the class"
	if len(c.Runtimes) > 0 {
		instead = param.Suggest(class, c.Runtimes)
	}
	return fmt.Errorf("the cluster has no RuntimeClass %q; %s", class, instead)
}

// suits returns a check that refuses objects that the cluster cannot run, and names their place in the file.
func (c *Cluster) suits(v param.Values) func(*loadfile.Request) error {
	if c == nil {
		return func(*loadfile.Request) error { return nil }
	}
	seen := map[string]bool{} // by what pods require of their nodes: most of a load's pods require the same
	return func(r *loadfile.Request) error {
		if r.Type != "" { // a change
			return nil
		}
		if err := c.stores(r, r.Fields); err != nil || r.Kind.Pod == nil {
			return err
		}
		var spec corev1.PodSpec
		if err := into(&spec, r.Fields, r.Kind.Pod...); err != nil {
			return err
		}
		if class := spec.RuntimeClassName; class != nil && v.Str("class") == "" {
			if err := c.runs(*class); err != nil {
				what, instead, _ := strings.Cut(err.Error(), "; ")
				return r.Refuse(ofPods(r, "runtimeClassName"), instead, "%s", what)
			}
		}
		if v.Str("nodes") != objects.Untainted { // the load itself chooses the nodes
			return nil
		}
		return c.schedules(r, &spec, seen)
	}
}

// ofPods is the path of a field of an object's pods.
func ofPods(r *loadfile.Request, path ...string) []string { return slices.Concat(r.Kind.Pod, path) }

// into reads a part of an object. The part may be missing.
func into(out any, of fields, path ...string) error {
	for _, name := range path {
		if of, _ = of[name].(fields); of == nil {
			return nil
		}
	}
	b, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// schedules refuses pods that no node may run, by its labels and taints.
func (c *Cluster) schedules(r *loadfile.Request, spec *corev1.PodSpec, seen map[string]bool) error {
	affinity := spec.Affinity != nil && spec.Affinity.NodeAffinity != nil && spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if len(spec.NodeSelector) == 0 && !affinity {
		return nil
	}
	asked, err := json.Marshal([]any{spec.NodeSelector, spec.Affinity, spec.Tolerations})
	if err != nil || seen[string(asked)] {
		return err
	}
	const anyNode = ", or write nodes: any, which replaces the file's selectors"
	required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})
	var taint *corev1.Taint
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if is, err := required.Match(n); err != nil || !is {
			continue
		}
		t, tainted := helpers.FindMatchingUntoleratedTaint(n.Spec.Taints, spec.Tolerations, lasting)
		if !tainted {
			seen[string(asked)] = true
			return nil
		}
		taint = &t
	}
	path := ofPods(r, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	if len(spec.NodeSelector) > 0 {
		path = ofPods(r, "nodeSelector")
	}
	if taint != nil {
		return r.Refuse(path, "add a toleration to the pods"+anyNode, "the nodes that the pods select have the taint %s, which the pods do not tolerate", taint.ToString())
	}
	for _, label := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		has := func(n corev1.Node) bool { // a label may have an empty value
			v, is := n.Labels[label]
			return is && v == spec.NodeSelector[label]
		}
		if value := spec.NodeSelector[label]; !slices.ContainsFunc(c.Nodes, has) {
			return r.Refuse(append(path, label), c.insteadOf(label, value)+anyNode, "none of the cluster's %d nodes has the label %s=%s, so the pods never run", len(c.Nodes), label, value)
		}
	}
	if affinity {
		path = ofPods(r, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	}
	return r.Refuse(path, "change it to fit a node (`kubectl get nodes --show-labels`)"+anyNode, "none of the cluster's %d nodes meets all requirements of the pods, so the pods never run", len(c.Nodes))
}

// lasting says that a taint keeps pods away, and is not one that Kubernetes itself sets for a while.
func lasting(t *corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

// insteadOf says what to write for a value of a label that no node has.
func (c *Cluster) insteadOf(label, value string) string {
	var values []string
	for i := range c.Nodes {
		if v, has := c.Nodes[i].Labels[label]; has && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return fmt.Sprintf("give it to a node (`kubectl label node NAME %s=%s`)", label, value)
	}
	slices.Sort(values)
	return param.Suggest(value, values)
}

// stores refuses claims of StorageClasses that the cluster lacks: an object that is one, a set's, and those of a pod's own volumes.
func (c *Cluster) stores(r *loadfile.Request, of fields) error {
	type template struct {
		Spec corev1.PersistentVolumeClaimSpec
	}
	claim := func(s *corev1.PersistentVolumeClaimSpec, path ...string) error {
		return c.has(r, s, append(path, "spec", "storageClassName"))
	}
	switch {
	case c.Storage == nil:
		return nil
	case r.Kind.Name == "PersistentVolumeClaim":
		var t template
		if err := into(&t, of); err != nil {
			return err
		}
		return claim(&t.Spec)
	case r.Kind.Pod == nil:
		return nil
	}
	var set struct{ VolumeClaimTemplates []template }
	var spec corev1.PodSpec
	if err := into(&set, of, "spec"); err != nil {
		return err
	}
	if err := into(&spec, of, r.Kind.Pod...); err != nil {
		return err
	}
	for i := range set.VolumeClaimTemplates {
		if err := claim(&set.VolumeClaimTemplates[i].Spec, "spec", "volumeClaimTemplates", strconv.Itoa(i)); err != nil {
			return err
		}
	}
	for i := range spec.Volumes {
		if e := spec.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			if err := claim(&e.VolumeClaimTemplate.Spec, ofPods(r, "volumes", strconv.Itoa(i), "ephemeral", "volumeClaimTemplate")...); err != nil {
				return err
			}
		}
	}
	return nil
}

// has refuses the StorageClass of a claim. The class "" means a volume that exists already.
func (c *Cluster) has(r *loadfile.Request, s *corev1.PersistentVolumeClaimSpec, path []string) error {
	var names []string
	for _, k := range c.Storage {
		names = append(names, k.Name)
		if s.StorageClassName == nil && k.Default || s.StorageClassName != nil && k.Name == *s.StorageClassName {
			return nil
		}
	}
	name, instead := "", "create one"
	if s.StorageClassName != nil {
		name = *s.StorageClassName
	}
	if len(names) > 0 {
		instead = param.Suggest(name, names)
	}
	switch {
	case s.StorageClassName == nil && len(names) > 0:
		instead = "add a storageClassName (" + instead + "), or make one class the default"
		fallthrough
	case s.StorageClassName == nil:
		return r.Refuse(path, instead, "the claim names no class, and the cluster has no default StorageClass, so the claim is never bound")
	case name == "":
		return nil
	}
	return r.Refuse(path, instead, "the cluster has no StorageClass %q, so the claim is never bound", name)
}
