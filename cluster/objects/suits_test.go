package objects

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/pod"
	"tare/param"
	"tare/workload/objects/loadfile"
)

// TestSuits: what a cluster lacks is refused at its place in the file. What the study's parameters replace is not.
func TestSuits(t *testing.T) {
	node := func(name string, taints ...corev1.Taint) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": name}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	on := &Cluster{
		Nodes: []corev1.Node{
			node("north"), node("south", corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}),
			node("west", corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}),
		},
		Runtimes: []string{"gvisor", "kata"}, Storage: []pod.StorageClass{{Name: "fast"}, {Name: "slow", Default: true}},
	}
	bare := &Cluster{Nodes: on.Nodes, Storage: []pod.StorageClass{}}
	const pods = "{apiVersion: v1, kind: Pod, metadata: {name: 'x${IDENTIFIER}'}, spec: {containers: [{name: c}],\n"
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: 'x${IDENTIFIER}'}, spec: {\n"
	const set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: 'x${IDENTIFIER}'}, spec: {template: {spec: {containers: [{name: c}]}}, volumeClaimTemplates: [{}, {spec: {\n"
	const requires = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: NotIn, values: ["
	for _, c := range []struct {
		on                  *Cluster
		object, param, says string
	}{
		{on, pods + "nodeSelector: {zone: north}}}", "", ""},
		{on, pods + "nodeSelector: {zone: west}}}", "", ""}, // it may become ready
		{on, pods + "nodeSelector: {worker: \"\"}}}", "", "column 16: none of the cluster's 3 nodes has the label worker=, so the pods never run; give it to a node"},
		{on, pods + "nodeSelector: {zone: nort}}}", "", "a.yaml, line 3, column 16: none of the cluster's 3 nodes has the label zone=nort, so the pods never run; did you mean \"north\"?, or write nodes: any"},
		{on, pods + "nodeSelector: {zone: nort}}}", "nodes=any", ""},
		{nil, pods + "nodeSelector: {zone: nort}}}", "", ""},
		{on, pods + "nodeSelector: {disk: ssd}}}", "", "column 16: none of the cluster's 3 nodes has the label disk=ssd, so the pods never run; give it to a node (`kubectl label node NAME disk=ssd`), or write"},
		{on, pods + "nodeSelector: {zone: south}}}", "", "column 1: the nodes that the pods select have the taint gpu=yes:NoSchedule, which the pods do not tolerate; add a toleration"},
		{on, pods + "nodeSelector: {zone: south}, tolerations: [{key: gpu, operator: Exists}]}}", "", ""},
		{on, pods + requires + "north, south]}]}]}}}}}", "", ""},
		{on, pods + requires + "north, south, west]}]}]}}}}}", "", "column 27: none of the cluster's 3 nodes meets all requirements of the pods"},
		{on, pods + "runtimeClassName: gviser}}", "", "line 3, column 1: the cluster has no RuntimeClass \"gviser\"; did you mean \"gvisor\"?"},
		{on, pods + "runtimeClassName: gviser}}", "class=kata", ""},
		{on, pods + "}}", "class=kat", "the cluster has no RuntimeClass \"kat\"; did you mean \"kata\"?"},
		{bare, pods + "runtimeClassName: kata}}", "", "the cluster has no RuntimeClass \"kata\"; leave it out, or install the class"},
		{on, claim + "storageClassName: fast}}", "", ""},
		{on, claim + "storageClassName: fst}}", "", "line 3, column 1: the cluster has no StorageClass \"fst\", so the claim is never bound; did you mean \"fast\"?"},
		{on, claim + "storageClassName: ''}}", "", ""},
		{on, claim + "volumeMode: Block}}", "", ""},
		{bare, claim + "volumeMode: Block}}", "", "line 2, column 83: the claim names no class, and the cluster has no default StorageClass, so the claim is never bound; create one"},
		{&Cluster{Storage: []pod.StorageClass{{Name: "slow"}}}, claim + "volumeMode: Block}}", "", "so the claim is never bound; add a storageClassName (write one of slow), or make"},
		{bare, claim + "storageClassName: fast}}", "", "the cluster has no StorageClass \"fast\", so the claim is never bound; create one"},
		{&Cluster{}, claim + "storageClassName: fast}}", "", ""}, // not known
		{on, set + "storageClassName: no}}]}}", "", "line 3, column 1: the cluster has no StorageClass \"no\""},
		{on, pods + "volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: no}}}}]}}", "", "line 3, column 62: the cluster has no StorageClass \"no\""},
	} {
		v := param.Values{"nodes": "untainted", loadfile.Param: param.Bundle{Text: "projects: [{num: 1, basename: x, templates: [{num: 2, file: a.yaml}]}]", Files: map[string]string{
			"a.yaml": "{kind: Template, parameters: [{name: IDENTIFIER}], objects: [\n" + c.object + "]}",
		}}.Value()}
		if name, value, is := strings.Cut(c.param, "="); is {
			v[name] = value
		}
		err := Checked(func(param.Values) error { return nil }, c.on)(v)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, want %q", c.object, c.param, err, c.says)
		}
	}
}

// TestSuitsProject: a label of the pods' nodes that the project has is refused there, not in the template.
func TestSuitsProject(t *testing.T) {
	v := param.Values{"nodes": "untainted", loadfile.Param: param.Bundle{Text: "projects:\n- num: 1\n  basename: x\n  nodeselector: zone=no\n  templates: [{num: 1, file: a.yaml}]\n", Files: map[string]string{
		"a.yaml": "{kind: Template, objects: [{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c}]}}]}",
	}}.Value()}
	err := Checked(func(param.Values) error { return nil }, &Cluster{Nodes: []corev1.Node{{}}})(v)
	if err == nil || !strings.Contains(err.Error(), "file, line 4, column 17: none of the cluster's 1 nodes has the label zone=no") {
		t.Error(err)
	}
}
