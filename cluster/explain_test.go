package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/cluster/pod"
)

// refusal is an answer of an API server, as one has given it.
func refusal(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: message}}
}

// TestExplained: an answer of the API server says what is wrong and what to do.
func TestExplained(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	s := reached(t, server)
	server.Close()
	if _, err := s.Clean(t.Context(), "", true); err == nil || !strings.HasSuffix(err.Error(), "(network, VPN), or give another --context") {
		t.Errorf("nobody answers: %v", err)
	}
	if _, err := s.Clean(t.Context(), "../x", true); err == nil || !strings.Contains(err.Error(), "which has only letters and digits; `tare clean --on k8s --context c --dry-run` lists the studies") {
		t.Errorf("not an ID: %v", err)
	}
	const observed = `host namespaces (hostPID=true), allowPrivilegeEscalation != false (container "observer" must set securityContext.allowPrivilegeEscalation=false), ` +
		`unrestricted capabilities (container "observer" must set securityContext.capabilities.drop=["ALL"]; container "observer" must not include "PERFMON, SYS_PTRACE)" in securityContext.capabilities.add), ` +
		`restricted volume types (volume "cgroup" uses restricted volume type "hostPath"), runAsNonRoot != true (pod or container "observer" must set securityContext.runAsNonRoot=true), ` +
		`seccompProfile (pod or container "observer" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
	for _, c := range []struct {
		err             error
		namespace, want string
	}{
		{refusal(`runtimeclasses.node.k8s.io is forbidden: User "somebody" cannot list resource "runtimeclasses" in API group "node.k8s.io" at the cluster scope`), "",
			"user \"somebody\" may not list runtimeclasses in the whole cluster; tare needs this right to find the classes to compare; `tare rbac` prints the role to ask for, and `tare rbac -n NAMESPACE` smaller ones, for studies in an existing namespace (-n NAMESPACE)"},
		{refusal(`pods is forbidden: User "a:b" cannot create resource "pods" in API group "" in the namespace "bench"`), "bench",
			"user \"a:b\" may not create pods in namespace bench; tare needs this right to start, watch and delete the study's pods; `tare rbac -n bench` prints the roles to ask for"},
		{apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "bench"), "bench", "namespace bench does not exist; create it with `kubectl create namespace bench`, or leave -n out"},
		{refusal(`secrets "x" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1`), "bench", "ResourceQuota q of namespace bench has no room for it (requested: secrets=1, used: secrets=1, limited: secrets=1); delete"},
		{refusal(`pods "x" is forbidden: failed quota: q: must specify limits.cpu for: tare`), "bench", "ResourceQuota q of namespace bench refuses pods that do not state limits.cpu for: tare; write factors: {cpu-limit: [1]"},
		{refusal(`pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true), privileged`), "bench",
			"namespace bench enforces the Pod Security level baseline, which does not admit this pod (host namespaces (hostPID=true), privileged); leave --observe out, leave -n out, or label the namespace"},
		{refusal(`pods "x" is forbidden: violates PodSecurity "restricted:latest": ` + observed), "bench",
			`namespace bench enforces the Pod Security level restricted, which does not admit this pod (host namespaces (hostPID=true), allowPrivilegeEscalation != false (container "observer" must set securityContext.allowPrivilegeEscalation=false), ` +
				`unrestricted capabilities (container "observer" must set securityContext.capabilities.drop=["ALL"]; container "observer" must not include "PERFMON, SYS_PTRACE)" in securityContext.capabilities.add), and 3 more); leave --observe out`},
		{apierrors.NewGenericServerResponse(http.StatusNotFound, "post", schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachineinstances"}, "", "", 0, true), "", "the cluster has no KubeVirt; install it"},
		{apierrors.NewUnauthorized("Unauthorized"), "", "the API server rejects the kubeconfig's credentials (Unauthorized); they may have expired"},
		{refusal("anything else"), "bench", "anything else"},
		{errors.New("connection refused"), "", "connection refused"},
	} {
		if got := explained(c.err, c.namespace).Error(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v\n got %s\nwant %s", c.err, got, c.want)
		}
	}
}

// TestQuotaOfPods: the coordinator gets limits if a quota demands them, and an object that is refused is named as kubectl names it.
func TestQuotaOfPods(t *testing.T) {
	fake, where := newFake(t)
	fake.quota = "limits.cpu"
	s := &Site{Image: "registry/tare", Namespace: "bench"}
	if err := s.Reach(where); err != nil {
		t.Fatal(err)
	}
	d := &deployment{api: s.api}
	d.name("t1", "bench")
	p := pod.Coordinator(d.meta("c"), "registry/tare", "s", 1)
	if err := d.createAll(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := p.Spec.Containers[0].Resources.Limits.Cpu(); got.Cmp(resource.MustParse("1")) != 0 {
		t.Errorf("limit %s", got)
	}
	fake.quota = "limits.example.org/gpu"
	err := d.createAll(t.Context(), pod.Coordinator(d.meta("c"), "registry/tare", "s", 1))
	if want := "cannot create the Pod c in namespace bench: ResourceQuota q of namespace bench refuses pods"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestLessened: the load gets the rights that its user has. Rights that it cannot do without stay, and so does the refusal.
func TestLessened(t *testing.T) {
	fake, where := newFake(t)
	s := &Site{Image: "registry/tare"}
	if err := s.Reach(where); err != nil {
		t.Fatal(err)
	}
	d := &deployment{api: s.api}
	d.name("t1", "")
	has := func() bool {
		return strings.Contains(fmt.Sprint(fake.roles[len(fake.roles)-1].Rules), "nodes/proxy")
	}
	for denies, tries := range map[string]int{"": 1, "nodes/proxy": 2, "namespaces": 2} {
		fake.grants, fake.roles = denies, nil
		err := d.createAll(t.Context(), d.load()...)
		if (err != nil) != (denies == "namespaces") || len(fake.roles) != tries || has() != (denies == "") {
			t.Errorf("without %q: %d tries, the last with nodes/proxy: %t, %v", denies, len(fake.roles), has(), err)
		}
	}
}

// TestUnbindable: a claim gets a warning if the cluster lacks its class, and none if the class may exist.
func TestUnbindable(t *testing.T) {
	fast, none := "fast", ""
	local, usual := []pod.StorageClass{{Name: "local"}}, []pod.StorageClass{{Name: "fast", Default: true}}
	for _, c := range []struct {
		name *string
		has  []pod.StorageClass
		want string
	}{
		{&fast, local, `the cluster has no StorageClass "fast"`}, {nil, local, "the cluster has no default StorageClass"},
		{&fast, usual, ""}, {nil, usual, ""}, {&none, local, ""}, {&fast, nil, ""},
	} {
		if got := unbindable(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: c.name}}, c.has); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v of %v: %q, want %q", c.name, c.has, got, c.want)
		}
	}
}

// TestTooLarge: a request that no ready node has is told.
func TestTooLarge(t *testing.T) {
	s := aSite()
	for i, cpu := range []string{"2", "4", "1"} {
		s.ready[i].Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi")}
	}
	for cpu, want := range map[string]string{"4": "", "4100m": "no node has room for its request of 4100m cpu, because the largest has 4"} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
		if got := s.tooLarge(p); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", cpu, got, want)
		}
	}
}
