package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// MaxReason bounds a text of the API server in an error, in bytes.
const MaxReason = 500

// CannotRun returns an error with the API server's reason and message.
func CannotRun(what, reason, message string) error {
	if len(message) > MaxReason {
		message = strings.ToValidUTF8(message[:MaxReason], "") + " [cut]"
	}
	return fmt.Errorf("the %s cannot run: %.100s: %s", what, reason, message)
}

// WhyNot returns why a pod cannot run, in the words of its status. It is nil while the pod may still run. The
// error calls the pod what.
func WhyNot(what string, p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return CannotRun(what, c.Reason, c.Message)
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil {
			switch w.Reason {
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
				return CannotRun(what, w.Reason, w.Message)
			}
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return CannotRun(what, p.Status.Reason, p.Status.Message)
	}
	return nil
}
