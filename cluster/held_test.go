package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHeldOne: the user is told about a slow namespace once, and once more if a finalizer holds it.
func TestHeldOne(t *testing.T) {
	now := time.Now()
	n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tare-x", DeletionTimestamp: &metav1.Time{Time: now}}}
	says := func(kind corev1.NamespaceConditionType, text string) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Message: text})
	}
	told := map[any]bool{}
	for _, c := range []struct {
		after time.Duration
		add   func()
		want  string
	}{
		{0, func() {
			says(corev1.NamespaceContentRemaining, "Some resources are remaining: pods. has 7 resource instances")
		}, ""},
		{40 * time.Second, func() {}, "namespace tare-x has been Terminating for 40s: it still has 7 pods; wait"},
		{60 * time.Second, func() {}, ""},
		{80 * time.Second, func() {
			says(corev1.NamespaceFinalizersRemaining, "Some content in the namespace has finalizers remaining: a.org/b in 7 resource instances")
		}, "namespace tare-x has been Terminating for 1m20s: the finalizer a.org/b holds 7 pods; remove"},
		{100 * time.Second, func() {}, ""},
	} {
		c.add()
		if got := heldOne([]corev1.Namespace{{}, n}, now.Add(c.after), told); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
}
