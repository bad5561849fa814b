package pod

import (
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/volume"
)

// define makes the kind of a definition, as a study would.
func define(t *testing.T, keys param.Values) *RuntimeClass {
	t.Helper()
	base := kind(Class{Name: sandbox.Native})
	v, err := param.Fill(base.Keys(), keys)
	if err != nil {
		t.Fatal(err)
	}
	k, err := base.Define("own", v)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*RuntimeClass)
}

// TestDefined: what a definition says is in the pod.
func TestDefined(t *testing.T) {
	k := define(t, param.Values{
		keyClass: "gvisor", keyAnnotations: "example.org/queues=$queues\nexample.org/fixed=a=b\nexample.org/price=$$5", keyNodeSelector: "disk=ssd",
		keyTolerations: "bench=yes:NoSchedule", keyPriority: "high", keyNetworks: "fast\nlab/slow@net2", keyRequest: "cpu=250m",
	})
	k.study.Tolerations = []corev1.Toleration{{Key: "bench", Operator: corev1.TolerationOpEqual, Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	p := k.manifest(&sandbox.Want{Name: "n", Node: "worker", CPULimit: 1, MemoryLimit: 64 << 20, Options: map[string]string{"queues": "4"}}, "t")
	want := map[string]string{"example.org/queues": "4", "example.org/fixed": "a=b", "example.org/price": "$5", networksAnnotation: "fast,lab/slow@net2"}
	if !maps.Equal(p.Annotations, want) {
		t.Errorf("annotations %v", p.Annotations)
	}
	r := p.Spec.Containers[0].Resources
	for what, ok := range map[string]bool{
		"class":      *p.Spec.RuntimeClassName == "gvisor",
		"selector":   p.Spec.NodeSelector["disk"] == "ssd" && p.Spec.NodeSelector[corev1.LabelHostname] == "worker",
		"toleration": len(p.Spec.Tolerations) == 3 && p.Spec.Tolerations[0].Key == "bench",
		"priority":   p.Spec.PriorityClassName == "high",
		"request":    r.Requests.Cpu().String() == "250m" && r.Limits.Cpu().String() == "1" && r.Requests.Memory().Value() == 64<<20,
		"restricted": !p.Spec.HostNetwork && !p.Spec.HostPID,
		"factor":     len(k.Params()) == 3 && k.Params()[0].Name == "queues",
	} {
		if !ok {
			t.Errorf("%s: %+v", what, p.Spec)
		}
	}
	if err := k.CheckOptions(map[string]string{}); err == nil || !strings.Contains(err.Error(), "factors: {queues: [...]}") {
		t.Errorf("without the factor: %v", err)
	}
	host := define(t, param.Values{keyNetwork: ofHost, keyNamespaces: ofHost})
	s := host.manifest(&sandbox.Want{Name: "n"}, "t").Spec
	if !s.HostNetwork || !s.HostPID || !s.HostIPC {
		t.Errorf("on the host: %+v", s)
	}
}

// TestInsecure: a refusal by Pod Security admission names the level and the setting that it is about; the API server's text is only kept.
func TestInsecure(t *testing.T) {
	raw := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "t1-3-main", errors.New(`violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true, hostPID=true)`))
	host := define(t, param.Values{keyNetwork: ofHost, keyNamespaces: ofHost})
	plain := define(t, param.Values{})
	mounts := &sandbox.Want{Volumes: []volume.Volume{{Name: "mount0", Medium: volume.Bind, Host: "/srv"}}}
	for _, c := range []struct {
		k    *RuntimeClass
		want *sandbox.Want
		uid  string
		says string
	}{
		{host, &sandbox.Want{}, "", "namespace tare-t1 enforces the Pod Security level restricted, which does not admit `network: host` of sandbox " + host.name + " and `namespaces: host`; write `network: pod` and write `namespaces: pod`, or give -n NAME"},
		{plain, mounts, "7", "the study's own namespace enforces the Pod Security level restricted, which does not admit the node's directory /srv, which the workload mounts; leave the mount out, or give -n NAME"},
		{plain, &sandbox.Want{}, "", "does not admit this pod (host namespaces (hostNetwork=true, hostPID=true)); leave out what asks for it"},
	} {
		c.k.study.UID = c.uid
		err := c.k.hint(raw, c.want)
		refused, is := errors.AsType[*sandbox.RefusedError](err)
		if !is || !strings.Contains(refused.Why, c.says) || refused.Raw != raw.Error() || strings.Contains(err.Error(), "is forbidden") {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
	if err := host.hint(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota")), &sandbox.Want{}); errors.As(err, new(*sandbox.RefusedError)) {
		t.Errorf("a quota: %v", err)
	}
}

// TestKata: a class that is named after Kata has its factors, as annotations; others have none.
func TestKata(t *testing.T) {
	k := kind(Class{Name: "kata-qemu", Class: "kata-qemu", Handler: "kata"})
	k.study.Machines = []record.Node{{Name: "worker", Host: record.Host{Threads: 4, MemoryBytes: 8 << 30}}}
	const hypervisor = "io.katacontainers.config.hypervisor."
	for options, want := range map[[2]string]map[string]string{
		{"2", "4096"}:           {hypervisor + "default_vcpus": "2", hypervisor + "default_memory": "4096"},
		{"all", configured}:     {hypervisor + "default_vcpus": "4"},
		{"-1", configured}:      {hypervisor + "default_vcpus": "4"},
		{configured, "default"}: {hypervisor + "default_memory": "default"},
	} {
		p := k.manifest(&sandbox.Want{Name: "n", Node: "worker", Options: map[string]string{factorVCPUs: options[0], factorMemory: options[1], factorMaxVCPUs: configured}}, "t")
		if !maps.Equal(p.Annotations, want) {
			t.Errorf("%v: %v", options, p.Annotations)
		}
	}
	if err := k.CheckOptions(map[string]string{factorVCPUs: "0"}); err == nil {
		t.Error("a virtual machine without a vCPU")
	}
	for _, c := range []struct {
		want sandbox.Want
		says string
	}{
		{sandbox.Want{CPULimit: 4, MemoryLimit: 1 << 30, Options: map[string]string{factorVCPUs: "4"}}, ""},
		{sandbox.Want{CPULimit: 4, Beside: 1}, "for each of 2 pods does not fit: the largest node of the study has 4"},
		{sandbox.Want{MemoryLimit: 3 << 30, Beside: 2}, "for each of 3 pods does not fit: the largest node of the study has 8GiB"},
		{sandbox.Want{CPULimit: 5}, "the largest node of the study has 4"},
		{sandbox.Want{MemoryLimit: 9 << 30}, "the largest node of the study has 8GiB"},
		{sandbox.Want{Options: map[string]string{factorVCPUs: "5"}}, "default_vcpus = 5"},
	} {
		err := k.CheckHere(t.Context(), sandbox.Spec{Want: c.want})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.want, err)
		}
	}
	if n := len(kind(Class{Name: "gvisor", Class: "gvisor"}).Params()) + len(ParamsOf("runc")); n != 4 || len(ParamsOf("kata")) != 5 {
		t.Errorf("%d parameters without Kata", n)
	}
}

// TestNotDefined: definitions that no cluster can have say what to write.
func TestNotDefined(t *testing.T) {
	base := RuntimeClasses([]Class{{Name: sandbox.Native}, {Name: "gvisor", Class: "gvisor", Handler: "runsc"}}, nil, nil, nil)[0]
	for _, c := range []struct {
		keys param.Values
		says string
	}{
		{param.Values{keyClass: "gvizor"}, `class "gvizor" is not on the cluster; did you mean "gvisor"?`},
		{param.Values{keyNetworks: "a", keyAnnotations: networksAnnotation + "=b"}, "annotations and networks both set networks"},
		{param.Values{keyNetwork: ofHost, keyNetworks: "a"}, "leave out networks"},
	} {
		v, err := param.Fill(base.Keys(), c.keys)
		if err == nil {
			_, err = base.Define("own", v)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.keys, err)
		}
	}
	if k, err := base.Define("own", param.Values{keyClass: "gvisor"}); err != nil || k.Traits(nil).Family != record.FamilyGVisor {
		t.Errorf("the class's handler is not known: %v", err)
	}
}

// TestAddress: the ends meet on the first additional network, where there is one.
func TestAddress(t *testing.T) {
	const status = `[{"name":"cbr0","interface":"eth0","ips":["10.1.0.5"],"default":true},{"name":"lab/fast","interface":"net1","ips":["192.168.7.2"]}]`
	for _, c := range []struct {
		annotations map[string]string
		want        string
	}{
		{nil, "10.1.0.5"},
		{map[string]string{statusAnnotation: status}, "10.1.0.5"}, // the study did not ask
		{map[string]string{networksAnnotation: "fast", statusAnnotation: status}, "192.168.7.2"},
		{map[string]string{networksAnnotation: "fast", statusAnnotation: "{"}, "10.1.0.5"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}, Status: corev1.PodStatus{PodIP: "10.1.0.5"}}
		if got := addressOf(p).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.annotations, got, c.want)
		}
	}
}
