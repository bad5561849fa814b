package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHeld: messages of Kubernetes 1.34.
func TestHeld(t *testing.T) {
	is := func(kind corev1.NamespaceConditionType, text string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Message: text}
	}
	content := is(corev1.NamespaceContentRemaining, "Some resources are remaining: configmaps. has 1 resource instances, deployments.apps has 12 resource instances")
	for _, c := range []struct {
		conditions []corev1.NamespaceCondition
		why        string
		lasting    bool
	}{
		{nil, "", false},
		{[]corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionFalse, Message: "All content-preserving finalizers finished"}}, "", false},
		{[]corev1.NamespaceCondition{content}, "it still has 1 configmaps, 12 deployments.apps; wait", false},
		{[]corev1.NamespaceCondition{content, is(corev1.NamespaceFinalizersRemaining, "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource instances")},
			"the finalizer example.org/hold holds 1 configmaps, 12 deployments.apps; remove the finalizer (`kubectl get -n x configmaps -o yaml` shows it), or wait for the program that removes it", true},
		{[]corev1.NamespaceCondition{is(corev1.NamespaceDeletionDiscoveryFailure, "Discovery failed for some groups, 1 failing: metrics")}, "the cluster says: Discovery failed for some groups, 1 failing: metrics; `kubectl describe namespace x` shows more", false},
	} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: corev1.NamespaceStatus{Conditions: c.conditions}}
		if why, lasting := Held(n); why != c.why || lasting != c.lasting {
			t.Errorf("%v: %q %t, want %q %t", c.conditions, why, lasting, c.why, c.lasting)
		}
	}
}
