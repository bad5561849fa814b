package kube

import "regexp"

// violates is how Pod Security admission refuses a pod (k8s.io/pod-security-admission, admission/admission.go).
var violates = regexp.MustCompile(`violates PodSecurity "([a-z]+)[^"]*": (.*)`)

// Violation returns the level of the Pod Security Standards that a namespace enforces, and what in a pod violates it, if a text of the API
// server says that it refuses a pod for that reason.
func Violation(text string) (level, what string, is bool) {
	m := violates.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
