package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tare/catalogue"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/workload"
	workloadall "tare/workload/all"
)

// quotaOf is a ResourceQuota: resource, used, hard.
func quotaOf(spec string, rows ...[3]string) string {
	var hard, used []string
	for _, r := range rows {
		used, hard = append(used, fmt.Sprintf("%q:%q", r[0], r[1])), append(hard, fmt.Sprintf("%q:%q", r[0], r[2]))
	}
	return fmt.Sprintf(`{"metadata":{"name":"q"},"spec":{%s"hard":{%s}},"status":{"used":{%s}}}`, spec, strings.Join(hard, ","), strings.Join(used, ","))
}

// rangeOf is a LimitRange of one item.
func rangeOf(item string) string {
	return `{"metadata":{"name":"l"},"spec":{"limits":[` + item + `]}}`
}

// TestFits: what a study asks of a namespace at once is compared with its quotas and limit ranges.
func TestFits(t *testing.T) {
	loads := map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		loads[w.Name()] = w
	}
	const (
		noop  = "workloads: {noop: {}}\n"
		ends  = "workloads: {rr: {kind: net, mode: rr}}\n"
		file  = "workloads: {read: {kind: fio, cache: direct}}\n"
		both  = "factors: {sandbox: [process, gvisor]}\n"
		sized = "factors: {sandbox: [process, gvisor], cpu-limit: [1], memory-limit: [1GiB]}\n"
	)
	pods := func(used, hard string) string { return quotaOf("", [3]string{"pods", used, hard}) }
	for name, c := range map[string]struct {
		study   string
		quota   string
		limits  string
		observe bool
		err     string // "": it fits
		note    string
		skips   int
		atMost  int
	}{
		"nothing":                     {study: noop + both},
		"room":                        {study: noop + both, quota: pods("1", "4")},
		"pods":                        {study: ends + both, quota: pods("3", "4"), err: "namespace bench has quota q: pods 3 of 4 used; this study needs 3 at once (workload=rr,sandbox=process); raise it to 6, or use another namespace (-n)"},
		"count/pods":                  {study: noop + both, quota: quotaOf("", [3]string{"count/pods", "0", "1"}), err: "count/pods 0 of 1 used; this study needs 2 at once"},
		"observers":                   {study: noop + both, observe: true, quota: pods("0", "3"), err: "needs 4 at once"},
		"a burst":                     {study: "workloads: {s: {kind: startup, burst: 5, repeats: 1}}\n" + both, quota: pods("0", "5"), err: "needs 6 at once"},
		"copies":                      {study: noop + "factors: {sandbox: [process, gvisor], copies: [1, 4]}\n", quota: pods("0", "4"), err: "needs 5 at once (workload=noop,sandbox=process,copies=4)"},
		"turns":                       {study: "workloads: {noop: {turns: 4}}\n" + both, quota: pods("0", "2"), err: "needs 3 at once (the trials of workload=noop take turns)"},
		"limits, and the coordinator": {study: noop + sized, quota: quotaOf("", [3]string{"limits.cpu", "0", "1500m"}), err: "limits.cpu 0 of 1500m used; this study needs 2250m at once"},
		"requests":                    {study: noop + sized, quota: quotaOf("", [3]string{"requests.memory", "1Gi", "2Gi"}), err: "requests.memory 1Gi of 2Gi used; this study needs 1152Mi at once"},
		"the overhead of a class":     {study: noop + sized, quota: quotaOf("", [3]string{"requests.cpu", "0", "1150m"}), err: "needs 1350m at once (workload=noop,sandbox=gvisor,cpu-limit=1,memory-limit=1GiB)"},
		"claims":                      {study: file + "factors: {sandbox: [process, gvisor], storage-class: [fast]}\n", quota: quotaOf("", [3]string{"requests.storage", "0", "5Gi"}, [3]string{"fast.storageclass.storage.k8s.io/persistentvolumeclaims", "2", "2"}), err: "fast.storageclass.storage.k8s.io/persistentvolumeclaims 2 of 2 used; this study needs 1 at once"},
		"another class":               {study: file + "factors: {sandbox: [process, gvisor], storage-class: [fast]}\n", quota: quotaOf("", [3]string{"slow.storageclass.storage.k8s.io/requests.storage", "0", "1"})},
		"another scope":               {study: noop + both, quota: quotaOf(`"scopes":["BestEffort"],`, [3]string{"pods", "9", "9"}), err: "pods 9 of 9 used"},
		"not of the scope":            {study: noop + both, quota: quotaOf(`"scopes":["NotBestEffort"],`, [3]string{"pods", "9", "9"})},
		"the coordinator has no end":  {study: noop + both, quota: quotaOf(`"scopes":["Terminating"],`, [3]string{"pods", "0", "2"})},
		"demands":                     {study: noop + both, quota: quotaOf("", [3]string{"requests.cpu", "0", "9"}), err: "ResourceQuota q of namespace bench refuses pods that state no requests.cpu; write factors: {cpu-limit: [1]}, or use another namespace (-n)"},
		"demands of memory":           {study: noop + both, quota: quotaOf("", [3]string{"limits.memory", "0", "9Gi"}, [3]string{"limits.cpu", "0", "9"}), err: "refuses pods that state no limits.cpu, limits.memory; write factors: {cpu-limit: [1], memory-limit: [1GiB]}"},
		"demands that are met":        {study: noop + sized, quota: quotaOf("", [3]string{"requests.cpu", "0", "9"}), skips: 1},
		"a level without":             {study: noop + "factors: {sandbox: [process, gvisor], cpu-limit: [none, 1]}\n", quota: quotaOf("", [3]string{"limits.cpu", "0", "9"}), skips: 3},
		"the other end":               {study: ends + sized, quota: quotaOf("", [3]string{"limits.cpu", "0", "9"}), err: "write isolate: both for the workload"},
		"a limit range meets them":    {study: noop + both, quota: quotaOf("", [3]string{"limits.cpu", "0", "9"}), limits: rangeOf(`{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"}}`), note: "a LimitRange of namespace bench gives pods that state no limit 500m cpu, those of process too: it counts in 2 cells of the study"},
		"limits of the study":         {study: noop + sized, limits: rangeOf(`{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"}}`)},
		"too much":                    {study: noop + sized, limits: rangeOf(`{"type":"Container","max":{"memory":"512Mi"},"default":{"memory":"512Mi"}}`), err: "LimitRange l of namespace bench allows at most 512Mi memory to a container, and its pod has 1Gi (workload=noop,sandbox=process,cpu-limit=1,memory-limit=1GiB)"},
		"too little":                  {study: noop + sized, limits: rangeOf(`{"type":"PersistentVolumeClaim"},{"type":"Container","default":{"cpu":"3"},"defaultRequest":{"cpu":"3"}},{"type":"Pod","min":{"cpu":"2"}}`), err: "demands at least 2 cpu of a pod, and its pod has 1 "},
		"tare's own pods":             {study: noop + sized, limits: rangeOf(`{"type":"Pod","max":{"cpu":"2"}}`), err: "allows at most 2 cpu to a pod, and its pod has none; it is a pod of tare's own"},
		"a claim":                     {study: file + "factors: {sandbox: [process, gvisor], storage-class: [fast]}\n", limits: rangeOf(`{"type":"PersistentVolumeClaim","max":{"storage":"1Gi"}}`), err: "allows claims of at most 1Gi, and a claim has 10Gi"},
		"one after another":           {study: noop + both, quota: pods("0", "2"), note: "namespace bench has quota q: pods 0 of 2 used, which leaves room for 1 of 2 trials at the same time", atMost: 1},
		"both nodes":                  {study: noop + both, quota: pods("0", "3")},
	} {
		t.Run(name, func(t *testing.T) {
			fake, where := newFake(t)
			fake.bounds = [2]string{c.quota, c.limits}
			s := &Site{Image: "r/tare", Namespace: "bench", Observe: c.observe}
			if err := s.Reach(where); err != nil {
				t.Fatal(err)
			}
			s.classes = []pod.Class{{Name: sandbox.Native}, {Name: "gvisor", Class: "gvisor", Handler: "runsc", Overhead: corev1.ResourceList{"cpu": resource.MustParse("250m")}}}
			for _, n := range []string{"node1", "node2"} {
				one := node(n)
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
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v\nwant %q", err, c.err)
			}
			if notes := strings.Join(got.notes, "\n"); !strings.HasPrefix(notes, c.note) || (notes == "") != (c.note == "") {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if len(got.skips) != c.skips || got.atMost != c.atMost {
				t.Errorf("%d cells skipped, %d at most; want %d and %d: %v", len(got.skips), got.atMost, c.skips, c.atMost, got.skips)
			}
		})
	}
}

func parseFor(s *Site, text string) (*study.Study, error) {
	return study.Parse("s.yaml", []byte("study: s\n"+text), catalogue.Of(workloadall.Workloads(), s.Kinds(), nil), nil)
}

// TestFindBounds: doctor shows what bounds a namespace, and says whether the smallest study has room.
func TestFindBounds(t *testing.T) {
	for used, problem := range map[string]string{"1": "", "3": "namespace bench has quota q: pods 3 of 4 used; this study needs 2 at once (one pod beside the coordinator); raise it to 5"} {
		fake, where := newFake(t)
		fake.bounds = [2]string{quotaOf("", [3]string{"pods", used, "4"}, [3]string{"limits.cpu", "0", "8"}), rangeOf(`{"type":"Container","default":{"memory":"1Gi"},"max":{"memory":"2Gi"}}`)}
		s := &Site{Image: "r/tare", Namespace: "bench"}
		if err := s.Reach(where); err != nil {
			t.Fatal(err)
		}
		found := s.findBounds(t.Context())
		if len(found) != 2 {
			t.Fatalf("%+v", found)
		}
		if q := found[0]; q.Name != "q" || q.Detail != "limits.cpu 0 of 8 used, pods "+used+" of 4 used; it refuses pods that state no limits.cpu, so a study needs factors: {cpu-limit: [1]}" {
			t.Errorf("%+v", q)
		}
		if err := found[0].Err; (err == nil) != (problem == "") || err != nil && !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%s used: %v", used, err)
		}
		if l := found[1]; l.Name != "l" || !strings.HasPrefix(l.Detail, "LimitRange: gives a container that states no limits 1Gi memory: set") || !strings.HasSuffix(l.Detail, "allows at most 2Gi memory to a container") {
			t.Errorf("%+v", l)
		}
	}
}

// TestAnyContainer: each container of a pod counts, and a container to copy programs counts where it asks for more than the others.
func TestAnyContainer(t *testing.T) {
	with := func(cpu string) corev1.Container {
		l := corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: l, Requests: l}}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{with("3")}, Containers: []corev1.Container{with("1"), with("1")}}}
	b := bounds{namespace: "bench", ranges: []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}}}}
	if why := b.refuses(p); !strings.Contains(why, "its pod has 3") {
		t.Errorf("%q", why)
	}
	for name, want := range map[corev1.ResourceName]string{"limits.cpu": "3", "cpu": "3", "requests.memory": "0", "pods": "1"} {
		if got := ofPod(p, name); got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s: %s, want %s", name, got.String(), want)
		}
	}
	sidecar := with("2")
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicy)
	*sidecar.RestartPolicy = corev1.ContainerRestartPolicyAlways
	if got := ofPod(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: p.Spec.Containers}}, "cpu"); got.Value() != 4 {
		t.Errorf("with a sidecar of 2: %s, want 4", got.String())
	}
	if got := demandsOf(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.memory": {}, "cpu": {}, "pods": {}}}}, p); strings.Join(got, " ") != "limits.memory" {
		t.Errorf("%v", got)
	}
}
