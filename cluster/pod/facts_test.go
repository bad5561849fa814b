package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tare/cluster/observer"
	"tare/record"
	"tare/sandbox"
	"tare/volume"
)

// TestFacts: facts are what ran, by the pod's status and its node, not what was asked for. What
// nobody tells is not a fact.
func TestFacts(t *testing.T) {
	k := kind(Class{Name: "gvisor", Class: "gvisor", Handler: "runsc"})
	k.study.Machines = []record.Node{{Name: "w1", Host: record.Host{Kernel: "6.1", OS: "Debian", Tools: map[string]string{"container runtime": "containerd://2.1"}}}}
	i := &instance{kind: k, spec: sandbox.Spec{Want: sandbox.Want{Node: "w1"}}, pod: k.manifest(&sandbox.Want{Name: "t1-1-main"}, "x")}
	f := i.Facts()
	if _, known := f[record.FactImageDigest]; known || f[record.FactKernel] != "6.1" || f[record.FactRuntime] != "containerd://2.1" || f[record.FactHandler] != "runsc" {
		t.Errorf("without a status or an observer: %v", f)
	}
	k.study.Levels = map[string]string{"u1": "workload-low"}
	for uid, want := range map[string]string{"": "", "u1": "workload-low", "u2": "u2"} {
		i.level = uid
		if got, known := i.Facts()[record.FactPriorityLevel]; got != want || known != (want != "") {
			t.Errorf("priority level %q: the fact is %q", uid, got)
		}
	}
	none := int32(0)
	i.pod.Spec.Priority = &none
	i.pod.Status.QOSClass = corev1.PodQOSGuaranteed
	i.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{ImageID: "registry/tare@sha256:2"}}
	i.found = observer.Found{Cgroup: "pod", CPU: 0.5, Around: observer.Around{Kernel: "6.2", Root: "overlay, snapshotter overlayfs", Network: "eth0", Runtime: "/usr/sbin/runc"}}
	for name, want := range map[string]string{
		record.FactImageDigest: "sha256:2", record.FactQOS: "Guaranteed", record.FactPriority: "0", record.FactKernel: "6.2",
		record.FactProgram: "/usr/sbin/runc", record.FactRoot: "overlay, snapshotter overlayfs", record.FactNetwork: "eth0", record.FactCPULimit: "0.5", record.FactMemoryLimit: "none",
	} {
		if got := i.Facts()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, known := i.Facts()[record.FactStorageClass]; known {
		t.Error("a pod without volumes has a storage class")
	}
	i.spec.Volumes = []volume.Volume{{Name: "data"}}
	for class, want := range map[string]string{"": "none", "none": "none", "fast": "fast"} {
		i.spec.Options = map[string]string{storageClass: class}
		if got := i.Facts()[record.FactStorageClass]; got != want {
			t.Errorf("storage-class %q: the fact is %q, want %q", class, got, want)
		}
	}
}

// TestSizing: the name of a handler tells which of Kata's runtimes sizes the machine, and the node knows better.
func TestSizing(t *testing.T) {
	for handler, want := range map[string][2]string{
		"kata-qemu-runtime-rs": {"rs", ", sized by Kata's runtime-rs"}, "kata-clh": {"go", ", sized by Kata's Go runtime"},
		"kata": {"", "does not say which"}, "runsc": {"", ""},
	} {
		k := kind(Class{Name: "x", Class: "x", Handler: handler})
		if got := k.Traits(nil).Sizing; got != want[0] {
			t.Errorf("%s: %q", handler, got)
		}
		if got := k.Sizing(); !strings.Contains(got, want[1]) || (want[1] == "") != (got == "") || !strings.HasSuffix(k.About(), got) {
			t.Errorf("%s: %q in %q", handler, got, k.About())
		}
		i := &instance{kind: k, pod: k.manifest(&sandbox.Want{Name: "t1-1-main"}, "x")}
		if _, told := i.Facts()[record.FactSizing]; told {
			t.Errorf("%s: a fact that nobody found hides the trait", handler)
		}
		i.found = observer.Found{Cgroup: "pod", Around: observer.Around{Sizing: "rs"}}
		if got := i.Facts()[record.FactSizing]; got != "rs" {
			t.Errorf("%s: the node says rs, the fact %q", handler, got)
		}
	}
}

// TestDoubts: a limit that is not in force is a warning; what a RuntimeClass adds for the sandbox is not.
func TestDoubts(t *testing.T) {
	for what, c := range map[string]struct {
		cpu      float64
		memory   int64
		overhead corev1.ResourceList
		doubts   int
	}{
		"as asked":      {0.5, 64 << 20, nil, 0},
		"none":          {0, 0, nil, 2},
		"more":          {1, 64 << 20, nil, 1},
		"less":          {0.5, 32 << 20, nil, 1},
		"with overhead": {0.75, 96 << 20, corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("32Mi")}, 0},
		"over that":     {1, 96 << 20, corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("32Mi")}, 1},
	} {
		i := &instance{pod: &corev1.Pod{Spec: corev1.PodSpec{Overhead: c.overhead}}, found: observer.Found{Cgroup: "pod", CPU: c.cpu, Memory: c.memory},
			spec: sandbox.Spec{Want: sandbox.Want{CPULimit: 0.5, MemoryLimit: 64 << 20}}}
		if d := i.Doubts(); len(d) != c.doubts || len(d) > 0 && d[0].Code != record.LimitNotInForce {
			t.Errorf("%s: %v", what, d)
		}
	}
}
