package pod

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/cluster/kube"
	"tare/record"
	"tare/sandbox"
	"tare/volume"
)

func kind(c Class) *RuntimeClass {
	return New(c, nil, nil, &Study{ID: "t1", Namespace: "tare-t1", Image: "registry/tare@sha256:1", Coordinator: "10.0.0.1:7777", Secret: "agent"})
}

// TestManifest: a sandbox's wishes are what its pod says, and nothing in it needs a privilege.
func TestManifest(t *testing.T) {
	p := kind(Class{Name: "gvisor", Class: "gvisor", Handler: "runsc"}).manifest(&sandbox.Want{
		Trial: "t1-4", Role: "server", Name: "t1-4-server", Node: "worker-1", CPULimit: 1.5, MemoryLimit: 256 << 20,
		Volumes: []volume.Volume{{Name: volume.Data, Medium: volume.Memory, Size: 64 << 20}},
	}, "secret")
	c := p.Spec.Containers[0]
	for what, ok := range map[string]bool{
		"class":      *p.Spec.RuntimeClassName == "gvisor",
		"node":       p.Spec.NodeSelector[corev1.LabelHostname] == "worker-1",
		"cpu":        c.Resources.Limits.Cpu().MilliValue() == 1500 && c.Resources.Requests.Cpu().MilliValue() == 1500,
		"memory":     c.Resources.Limits.Memory().Value() == 256<<20,
		"volume":     p.Spec.Volumes[2].EmptyDir.Medium == corev1.StorageMediumMemory && c.VolumeMounts[2].MountPath == "/data",
		"node lost":  len(p.Spec.Tolerations) == 2 && *p.Spec.Tolerations[0].TolerationSeconds == 0,
		"ends":       *p.Spec.ActiveDeadlineSeconds > 0 && p.Spec.RestartPolicy == corev1.RestartPolicyNever,
		"labels":     p.Labels[LabelStudy] == "t1" && p.Labels[LabelManaged] == Managed,
		"restricted": *p.Spec.SecurityContext.RunAsNonRoot && !*c.SecurityContext.AllowPrivilegeEscalation && len(c.SecurityContext.Capabilities.Add) == 0,
		"no API":     !*p.Spec.AutomountServiceAccountToken,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, p.Spec)
		}
	}
	free := kind(Class{Name: sandbox.Native}).manifest(&sandbox.Want{Name: "t1-5-main"}, "x")
	if r := free.Spec.Containers[0].Resources; len(r.Limits)+len(r.Requests) != 0 || free.Spec.RuntimeClassName != nil || free.Spec.NodeSelector != nil {
		t.Errorf("without a wish: %+v", free.Spec)
	}
}

// deleted returns a pod that Kubernetes deletes for a reason, and whose container has ended.
func deleted(reason string) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "worker-1"}, Status: corev1.PodStatus{
		Conditions:        []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}},
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}}},
	}}
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

// TestWhyNot: what a pod's status says of a pod that will not run becomes the reason; what may
// still pass does not.
func TestWhyNot(t *testing.T) {
	status := func(s corev1.PodStatus) *corev1.Pod { return &corev1.Pod{Status: s} }
	waiting := func(reason string) *corev1.Pod {
		return status(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}}}})
	}
	for _, c := range []struct {
		pod  *corev1.Pod
		want string // "": it may still run
	}{
		{status(corev1.PodStatus{Phase: corev1.PodPending}), ""},
		{waiting("ContainerCreating"), ""},
		{waiting("ImagePullBackOff"), "ImagePullBackOff: because"},
		{waiting("CreateContainerError"), "CreateContainerError: because"},
		{status(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes"}}}), "Unschedulable: 0/2 nodes"},
		{status(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: strings.Repeat("x", 10_000)}), "Evicted: x"},
		{status(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}}), "raise memory-limit (OOMKilled)"},
		{status(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}}), "Error: tare's agent exited with code 3"},
		{deleted("EvictionByEvictionAPI"), "deleted during the trial (by EvictionByEvictionAPI)"},
		{deleted(evicted), "node worker-1 evicts its pods"},
	} {
		err := WhyNot(c.pod)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*kube.MaxReason) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestNodeThatIsLost: a pod of one node that takes no pods any more is no fault of its sandbox. One that has no room is.
func TestNodeThatIsLost(t *testing.T) {
	const more = ". no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
	const other = "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
	for says, want := range map[string]string{ // "": it is the sandbox's
		other + "1 node(s) had untolerated taint(s)" + more:                                                       "node a takes no more pods, because it has a new taint, such as that of a node that is not ready (",
		other + "1 node(s) were unschedulable, 8 node(s) had untolerated taint(s)" + more:                         "node a takes no more pods, because it was cordoned or has a new taint (",
		other + "1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }" + more:                       "node a takes no more pods, because it has a new taint, such as that of a node that is not ready (",
		other + "1 node(s) were unschedulable" + more:                                                             "node a takes no more pods, because it was cordoned (",
		"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.":                           "node a is not in the cluster any more (",
		"0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector" + more: "",
		other + "1 node(s) had volume node affinity conflict" + more:                                              "",
		"something else": "", "": "",
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: says}}}}
		if errors.Is(WhyNot(p), sandbox.ErrNodeLost) {
			t.Errorf("%q: a pod for any node has lost its node", says)
		}
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"}
		if err := WhyNot(p); errors.Is(err, sandbox.ErrNodeLost) != (want != "") || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", says, err, want)
		}
	}
	if err := WhyNot(deleted(evicted)); !errors.Is(err, sandbox.ErrNodeLost) {
		t.Errorf("evicted: %v", err)
	}
}

// TestNamespaceThatIsDeleted: a refusal because the namespace is going is no fault of a sandbox; any other is.
func TestNamespaceThatIsDeleted(t *testing.T) {
	k := kind(Class{Name: "runc", Class: "runc"})
	pods := schema.GroupResource{Resource: "pods"}
	going := apierrors.NewForbidden(pods, "p", errors.New("because it is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, err := range []error{going, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "tare-t1")} {
		if got := k.hint(err, &sandbox.Want{}); !errors.Is(got, sandbox.ErrNodeLost) || got.Error() != "namespace tare-t1, in which the study runs, is being deleted" {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := k.hint(apierrors.NewForbidden(pods, "p", errors.New("exceeded quota")), &sandbox.Want{}); errors.Is(got, sandbox.ErrNodeLost) {
		t.Errorf("a quota: %v", got)
	}
}

// TestTraits: analysis reads the family of a class, which its handler tells.
func TestTraits(t *testing.T) {
	for _, c := range []struct {
		class Class
		want  record.Family
	}{
		{Class{Name: sandbox.Native}, record.FamilyNative},
		{Class{Name: "runc", Class: "runc", Handler: "runc"}, record.FamilyContainer},
		{Class{Name: "gvisor", Class: "gvisor", Handler: "runsc"}, record.FamilyGVisor},
		{Class{Name: "kata", Class: "kata-qemu", Handler: "kata-qemu"}, record.FamilyVM},
	} {
		if got := kind(c.class).Traits(nil).Family; got != c.want {
			t.Errorf("%s is %s, want %s", c.class.Name, got, c.want)
		}
	}
}
