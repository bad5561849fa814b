package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/catalogue"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/study"
	workloadall "tare/workload/all"
)

// aSite is a cluster with two classes and three nodes.
func aSite() *Site {
	node := func(name, disk string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "disk": disk}},
			Spec:   corev1.NodeSpec{Taints: taints, PodCIDRs: []string{"10.1.2.0/24"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}}}
	}
	return &Site{
		classes: []pod.Class{{Name: sandbox.Native}, {Name: "runc", Class: "runc", Handler: "runc"}, {Name: "kata", Class: "kata", Handler: "kata", Nodes: map[string]string{"disk": "ssd"}}},
		ready:   []*corev1.Node{node("b", "ssd"), node("a", "hdd"), node("c", "ssd", corev1.Taint{Key: "bench", Value: "yes", Effect: corev1.TaintEffectNoSchedule})},
	}
}

func (s *Site) parse(t *testing.T, text string, sets ...string) (*study.Study, error) {
	t.Helper()
	return study.Parse("s.yaml", []byte("study: s\nworkloads: {noop: {}}\n"+text), catalogue.Of(workloadall.Workloads(), s.Kinds(), nil), sets)
}

// TestChoose: the nodes of a study suit all its sandboxes.
func TestChoose(t *testing.T) {
	for text, want := range map[string]string{
		"factors: {sandbox: [process, runc]}":                                                                        "a b",
		"factors: {sandbox: [process, kata]}":                                                                        "b",
		"factors: {sandbox: [process, x]}\nsandboxes: {x: {kind: pod, node-selector: {disk: hdd}}}":                  "a",
		"factors: {sandbox: [process, x]}\nsandboxes: {x: {kind: pod, class: kata, tolerations: [bench]}}":           "b c",
		"factors: {sandbox: [process, x]}\nsandboxes: {x: {kind: pod, tolerations: [\"bench=no:NoSchedule\"]}}":      "a b",
		"factors: {sandbox: [process, runc]}\nsandboxes: {x: {kind: pod, network: host, node-selector: {disk: no}}}": "a b",
	} {
		s := aSite()
		st, err := s.parse(t, text)
		if err != nil {
			t.Fatal(err)
		}
		on, err := s.choose(st)
		var names []string
		for _, n := range on.nodes {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want || on.hosts != nil {
			t.Errorf("%s: %s %v %v, want %s", text, got, on.hosts, err, want)
		}
	}
	s := aSite()
	st, err := s.parse(t, "factors: {sandbox: [process, kata, x]}\nsandboxes: {x: {kind: pod, node-selector: {disk: hdd}}}")
	if err == nil {
		_, err = s.choose(st)
	}
	if err == nil || !strings.Contains(err.Error(), "no node suits all sandboxes of the study: one needs disk=") {
		t.Errorf("labels that contradict each other: %v", err)
	}
}

// TestHostNetwork: pods on a node's network are let through the study's policy.
func TestHostNetwork(t *testing.T) {
	s := aSite()
	st, err := s.parse(t, "factors: {sandbox: [process, x]}\nsandboxes: {x: {kind: pod, network: host}}")
	if err != nil {
		t.Fatal(err)
	}
	on, err := s.choose(st)
	if err != nil || !slices.Contains(on.hosts, "192.0.2.7/32") || !slices.Contains(on.hosts, "10.1.2.0/31") {
		t.Fatalf("%v %v", on.hosts, err)
	}
	d := deployment{id: "t1", namespace: "n", hosts: on.hosts[:1]}
	if from := d.policy().Spec.Ingress[0].From; len(from) != 2 || from[0].IPBlock.CIDR != "192.0.2.7/32" || from[1].PodSelector == nil {
		t.Errorf("%+v", from)
	}
}

// TestDefinitions: mistakes in a definition have a place, and say what to write.
func TestDefinitions(t *testing.T) {
	s := aSite()
	for text, want := range map[string]string{
		"x: {kind: pod, class: kato}":                        `s.yaml:4:25: sandbox "x": class "kato" is not on the cluster; did you mean "kata"?`,
		"x: {kind: pod, class: Kata}":                        `s.yaml:4:25: class: "Kata" is not valid`,
		"x: {kind: pod, annotations: {a b: c}}":              `s.yaml:4:37: annotations: "a b" is not valid`,
		"x: {kind: pod, annotations: {a: $b.c}}":             `s.yaml:4:35: annotations: "$b.c" does not name a factor`,
		"x: {kind: pod, annotations: {a: $duration}}":        `s.yaml:4:3: sandbox "x": tare or a workload has a factor "duration"; choose another name`,
		"x: {kind: pod, annotations: [a]}":                   `s.yaml:4:31: annotations is not a mapping`,
		"x: {kind: pod, annotations: {a: $q}}":               `q: an annotation uses this factor, and the study does not have it; write factors: {q: [...]}`,
		"x: {kind: pod, node-selector: {a: b c}}":            `s.yaml:4:37: node-selector: "b c" is not valid`,
		"x: {kind: pod, tolerations: [\"a=b:Never\"]}":       `s.yaml:4:32: tolerations: "Never" is not a taint effect`,
		"x: {kind: pod, request: {disk: 1}}":                 `s.yaml:4:34: request: "disk" cannot be requested; write cpu or memory`,
		"x: {kind: pod, request: {cpu: fast}}":               `s.yaml:4:33: request: "fast" is not a quantity`,
		"x: {kind: pod, networks: [\"a@an interface\"]}":     `s.yaml:4:29: networks: "an interface" cannot name an interface`,
		"x: {kind: pod, network: none}":                      `s.yaml:4:27: "none" is not a level of network`,
		"x: {kind: pod, class: kata, network: host}":         `s.yaml:4:40: sandbox "x": network host: a virtual machine cannot use the node's network`,
		"x: {kind: pod, class: kata, runtime: /usr/bin/x}":   `s.yaml:4:31: unknown key "runtime" in sandbox x`,
		"x: {kind: pod, priority: _}":                        `s.yaml:4:28: priority: "_" is not valid`,
		"x: {kind: pod, namespaces: all}":                    `s.yaml:4:30: "all" is not a level of namespaces`,
		"x: {kind: pod, networks: [a], annotations: {k: $}}": `s.yaml:4:50: annotations: "$" does not name a factor`,
	} {
		_, err := s.parse(t, "sandboxes: {\n  "+strings.TrimSpace(text)+"}\nfactors: {sandbox: [process, x]}")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestAnnotationFactor: an annotation's factor varies where it is, and nowhere else.
func TestAnnotationFactor(t *testing.T) {
	st, err := aSite().parse(t, `sandboxes: {x: {kind: pod, class: runc, annotations: {example.org/q: $queues}}}
factors: {sandbox: [process, kata, x], queues: [1, 2], default_vcpus: [1, 2, all]}`, "queues=1,2,4")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range st.Strata {
		n += len(s.Cells)
	}
	if n != 1+3+3 {
		t.Errorf("%d cells", n)
	}
}
