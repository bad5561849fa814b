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
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName":
				return cannotPull(what, s.Image, p.Spec.NodeName, w.Reason, w.Message)
			case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
				return CannotRun(what, w.Reason, w.Message)
			}
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return CannotRun(what, p.Status.Reason, p.Status.Message)
	}
	return nil
}

// cannotPull is CannotRun for a pod whose image its node cannot get.
func cannotPull(what, image, node, reason, message string) error {
	why := CannotRun(what, reason, message)
	if image == "" {
		return why
	}
	return fmt.Errorf("node %s cannot pull the image %s from the registry %s; %s: %w", node, image, registryOf(image), pullAdvice(message), why)
}

// registryOf is where an image without a registry in its name comes from too.
func registryOf(image string) string {
	host, _, more := strings.Cut(image, "/")
	if !more || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "docker.io"
	}
	return host
}

// pullAdvice is what to do about a container runtime's message.
func pullAdvice(message string) string {
	said := strings.ToLower(message)
	for _, a := range []struct {
		words  []string
		advice string
	}{
		{[]string{"unauthorized", "denied", "forbidden", "authorization failed"}, "if the image is private, use -n with a namespace whose default service account has an imagePullSecret"},
		{[]string{"http response to https", "x509", "certificate"}, "have the nodes' container runtime trust this registry"},
		{[]string{"no such host", "i/o timeout", "connection refused", "no route", "unreachable"}, "check the name of the registry, and that the nodes reach it"},
		{[]string{"not found", "manifest unknown"}, "check its name and tag, or push it first (`tare image push`)"},
	} {
		for _, w := range a.words {
			if strings.Contains(said, w) {
				return a.advice
			}
		}
	}
	return "check the reference, and that the nodes can pull it"
}
