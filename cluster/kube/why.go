package kube

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tare/sandbox"
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
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable":
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

// pullError says that a node cannot pull an image. If it lasts, it is a sandbox.ErrNoImage.
type pullError struct {
	error
	lasting bool
}

func (p pullError) Unwrap() error { return p.error }

// Is implements errors.Is.
func (p pullError) Is(target error) bool { return p.lasting && target == sandbox.ErrNoImage }

// cannotPull is CannotRun for a pod whose image its node cannot get.
func cannotPull(what, image, node, reason, message string) error {
	why := CannotRun(what, reason, message)
	said := withoutNames(image, message)
	if reason == "InvalidImageName" {
		said = "invalid reference"
	}
	advice, lasting := pullAdvice(said)
	if image != "" {
		why = fmt.Errorf("node %s cannot pull the image %s from the registry %s; %s: %w", node, image, registryOf(image), advice, why)
	}
	return pullError{why, lasting}
}

// registryOf is where an image without a registry in its name comes from too.
func registryOf(image string) string {
	host, _, more := strings.Cut(image, "/")
	if !more || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "docker.io"
	}
	return host
}

// named are the parts of a container runtime's message that others chose: quoted names, and addresses of requests.
var named = regexp.MustCompile(`\\?"[^"]*"|https?://\S+`)

// withoutNames is a container runtime's message without the names in it, in small letters: an image may be called denied.
func withoutNames(image, message string) string {
	said := named.ReplaceAllString(message, "")
	if image != "" {
		said = strings.ReplaceAll(said, image, "")
	}
	return strings.ToLower(said)
}

// busy are statuses of a registry that is there, and may answer later.
var busy = regexp.MustCompile(`\b(429|5\d\d) [a-z]`)

// pullAdvice is what to do about a container runtime's message without its names, and whether the pull fails until somebody has done it.
// The first group with a word of the message counts. So a failed connection counts, whatever else the message says.
func pullAdvice(said string) (advice string, lasting bool) {
	if busy.MatchString(said) || strings.Contains(said, "toomanyrequests") {
		return "the registry is overloaded or out of order", false
	}
	for _, a := range []struct {
		words   []string
		lasting bool
		advice  string
	}{
		{[]string{"http response to https", "x509", "certificate", "not look like a tls handshake"}, false, "make the nodes' container runtime trust this registry (containerd: set ca to its certificate in /etc/containerd/certs.d/HOST/hosts.toml)"},
		{[]string{"no such host", "server misbehaving", "timeout", "timed out", "deadline exceeded", "connection refused", "connection reset", "broken pipe", "no route", "unreachable", "eof"}, false, "check the name of the registry, and that the nodes reach it"},
		{[]string{"invalid reference", "invalid image", "couldn't parse image"}, true, "correct the reference"},
		{[]string{"no match for platform", "no matching manifest", "no image found in"}, true, "the image has no variant for the node's processor; push one with `tare image push --add` on such a host, or choose other nodes with node-selector"},
		{[]string{"unauthorized", "denied", "forbidden", "authorization failed", "authentication required"}, true, "check its name, and if it is private, use -n with a namespace whose default service account has an imagePullSecret"},
		{[]string{"content digest"}, false, "the node's container runtime has lost a part of it; pull it again"},
		{[]string{"not found", "manifest unknown", "name unknown"}, true, "check its name and tag, or push it first (`tare image push`)"},
	} {
		for _, w := range a.words {
			if strings.Contains(said, w) {
				return a.advice, a.lasting
			}
		}
	}
	return "check the reference, and that the nodes can pull it", false
}
