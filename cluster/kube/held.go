package kube

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/param"
)

// The parts of a condition's message: "configmaps. has 2 resource instances", "example.org/hold in 2 resource instances"
// (pkg/controller/namespace/deletion of Kubernetes).
var (
	contentRE   = regexp.MustCompile(`([a-z0-9][a-z0-9.-]*?)\.? has ([0-9]+) resource instances`)
	finalizerRE = regexp.MustCompile(`(\S+) in [0-9]+ resource instances`)
)

// Terminating says how long ago the deletion of a namespace began.
func Terminating(n *corev1.Namespace, now time.Time) string {
	text := "namespace " + n.Name + " has been Terminating"
	if n.DeletionTimestamp != nil {
		text += " for " + param.FormatDuration(now.Sub(n.DeletionTimestamp.Time).Round(time.Second))
	}
	return text
}

// Held says from the status of a namespace what delays its deletion, and what to do; "": its status does not say. lasting: the delay does not
// end by itself, because a finalizer holds the namespace.
func Held(n *corev1.Namespace) (why string, lasting bool) {
	says := map[corev1.NamespaceConditionType]string{}
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			says[c.Type] = strings.ToValidUTF8(c.Message[:min(len(c.Message), MaxReason)], "")
		}
	}
	var has, finalizers []string
	for _, m := range contentRE.FindAllStringSubmatch(says[corev1.NamespaceContentRemaining], -1) {
		has = append(has, m[2]+" "+m[1])
	}
	for _, m := range finalizerRE.FindAllStringSubmatch(says[corev1.NamespaceFinalizersRemaining], -1) {
		finalizers = append(finalizers, m[1])
	}
	slices.Sort(finalizers)
	still := strings.Join(has, ", ")
	switch {
	case len(finalizers) > 0 && still != "":
		return "the finalizer " + strings.Join(finalizers, ", ") + " holds " + still + "; remove the finalizer (`kubectl get -n " + n.Name + " " + strings.Fields(has[0])[1] + " -o yaml` shows it), or wait for the program that removes it", true
	case still != "":
		return "it still has " + still + "; wait", false
	}
	for _, t := range []corev1.NamespaceConditionType{corev1.NamespaceFinalizersRemaining, corev1.NamespaceDeletionContentFailure, corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure, corev1.NamespaceContentRemaining} {
		if text := says[t]; text != "" {
			return "the cluster says: " + text + "; `kubectl describe namespace " + n.Name + "` shows more", false
		}
	}
	return "", false
}
