package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tare/catalogue"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/site"
	"tare/workload"
	workloadall "tare/workload/all"
)

// otherPod is a pod of somebody else that requests CPU.
func otherPod(phase, cpu string) string {
	return fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":%q}}}]},"status":{"phase":%q}}`, cpu, phase)
}

// TestAlone: the trials of a block run one after another if its pods have no room on a node together.
func TestAlone(t *testing.T) {
	loads := map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		loads[w.Name()] = w
	}
	const (
		one   = "workloads: {noop: {turns: 4}}\n"
		sized = "factors: {sandbox: [process, gvisor], cpu-limit: [1]}\n"
	)
	for name, c := range map[string]struct {
		study  string
		cpu    string // that node2 can allocate; node1 can allocate 8
		memory string // that both can; "": unknown
		others string // pods on node2
		denied bool   // the user may not list pods
		quota  string
		want   string // keys
		note   string
	}{
		"room":                   {study: one + sized, cpu: "2250m"},
		"the overhead counts":    {study: one + sized, cpu: "2249m", want: "workload=noop,cpu-limit=1", note: "the pods of a block in turns request 2.25 CPUs and node2 has 2.249 left, so the trials of noop run one after another; lower cpu-limit or leave turns out"},
		"other pods count":       {study: one + sized, cpu: "4", others: otherPod("Running", "1800m"), want: "workload=noop,cpu-limit=1", note: "the pods of a block in turns request 2.25 CPUs and node2 has 2.2 left"},
		"but not those at rest":  {study: one + sized, cpu: "4", others: otherPod("Succeeded", "1800m") + "," + otherPod("Failed", "3")},
		"they may not be listed": {study: one + sized, cpu: "4", others: otherPod("Running", "1800m"), denied: true},
		"no turns":               {study: "workloads: {noop: {}}\n" + sized, cpu: "1"},
		"auto":                   {study: "workloads: {noop: {turns: auto}}\n" + sized, cpu: "1", want: "workload=noop,cpu-limit=1", note: "the pods of a block in turns request 2.25 CPUs and node2 has 1 left"},
		"no requests":            {study: one + "factors: {sandbox: [process, plain]}\n", cpu: "0", others: otherPod("Running", "2")},
		"a node says nothing":    {study: one + sized},
		"memory":                 {study: one + "factors: {sandbox: [process, gvisor], memory-limit: [1GiB]}\n", cpu: "1", memory: "2047Mi", want: "workload=noop,memory-limit=1GiB", note: "the pods of a block in turns request 2048 MiB of memory and node1 has 2047 MiB left, so the trials of noop run one after another; lower memory-limit or"},
		"some strata":            {study: one + "factors: {sandbox: [process, gvisor], cpu-limit: [1, 2, 3]}\n", cpu: "3", want: "workload=noop,cpu-limit=2 workload=noop,cpu-limit=3", note: "the pods of a block in turns request up to 6.25 CPUs and node2 has 3 left, so the trials of noop,cpu-limit=2, noop,cpu-limit=3 run"},
		"the coordinator counts": {study: one + sized, cpu: "2300m", quota: quotaOf("", [3]string{"requests.cpu", "0", "99"}), want: "workload=noop,cpu-limit=1", note: "the pods of a block in turns request 2.25 CPUs and node2 has 2.2 left"},
		"one trial in the quota": {study: "workloads: {noop: {turns: 4}}\nsentinel: off\n" + sized, cpu: "2", quota: quotaOf("", [3]string{"requests.cpu", "0", "2"}), want: "workload=noop,cpu-limit=1", note: "the pods of a block in turns request 2.25 CPUs and node2 has 1.9 left"},
	} {
		t.Run(name, func(t *testing.T) {
			fake, where := newFake(t)
			fake.bounds[0], fake.others = c.quota, map[string]string{"spec.nodeName=node2": c.others}
			if c.denied {
				fake.denies = "pods"
			}
			s := &Site{Image: "r/tare", Namespace: "bench"}
			if err := s.Reach(where); err != nil {
				t.Fatal(err)
			}
			s.classes = []pod.Class{{Name: sandbox.Native}, {Name: "plain", Class: "plain", Handler: "runc"}, {Name: "gvisor", Class: "gvisor", Handler: "runsc", Overhead: corev1.ResourceList{"cpu": resource.MustParse("250m")}}}
			for n, cpu := range map[string]string{"node1": "8", "node2": c.cpu} {
				one := node(n)
				one.Status.Allocatable = corev1.ResourceList{}
				if c.cpu != "" {
					one.Status.Allocatable["cpu"] = resource.MustParse(cpu)
				}
				if c.memory != "" {
					one.Status.Allocatable["memory"] = resource.MustParse(c.memory)
				}
				s.ready = append(s.ready, &one)
			}
			st, err := parseFor(s, c.study)
			if err != nil {
				t.Fatal(err)
			}
			on, err := s.choose(st)
			if err != nil {
				t.Fatal(err)
			}
			r := site.Request{Study: st, Catalogue: catalogue.Of(workloadall.Workloads(), s.Kinds(), nil)}
			got, err := s.fits(t.Context(), r, loads, &on)
			if err != nil {
				t.Fatal(err)
			}
			if keys := strings.Join(got.alone, " "); keys != c.want {
				t.Errorf("%q run one after another, want %q", keys, c.want)
			}
			notes := strings.Join(got.notes, "\n")
			if !strings.HasPrefix(notes, c.note) || (notes == "") != (c.note == "") {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if c.want == "" {
				return
			}
			s.Workloads, s.Say = loads, func(string, ...any) {}
			if _, err := s.connect(t.Context(), r); err == nil || !strings.Contains(err.Error(), "forward") {
				t.Fatal(err)
			}
			var b Brief
			if err := json.Unmarshal(fake.brief, &b); err != nil {
				t.Fatal(err)
			}
			inside := &insideSite{brief: b, api: s.api, owner: &corev1.Pod{}, loads: loads}
			if maker := inside.session(t.Context(), r).Maker; strings.Join(maker.Alone, " ") != c.want {
				t.Errorf("the coordinator hears of %q", maker.Alone)
			}
		})
	}
}
