package kube

import (
	"fmt"
	"regexp"
	"strings"
)

// violates is how Pod Security admission refuses a pod (k8s.io/pod-security-admission, admission/admission.go).
var violates = regexp.MustCompile(`violates PodSecurity "([a-z]+)[^"]*": (.*)`)

// Violation returns the level of the Pod Security Standards that a namespace enforces, and what in a pod violates it, if a text of the API
// server says that it refuses a pod for that reason.
func Violation(text string) (level, what string, is bool) {
	m := violates.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], shortened(m[2]), true
}

// maxViolations bounds what a pod violates in an error, in bytes.
const maxViolations = 400

// shortened is a list of violations with whole members. "and 2 more" stands for those that have no room. If the first has none, its
// details, in parentheses, are left out.
func shortened(list string) string {
	all := members(list)
	out := all[0]
	if len(out) > maxViolations {
		name, _, _ := strings.Cut(out, " (")
		out = fmt.Sprintf("%.*s", maxViolations, name)
	}
	for i, m := range all[1:] {
		if len(out)+len(m) > maxViolations {
			return fmt.Sprintf("%s, and %d more", out, len(all)-1-i)
		}
		out += ", " + m
	}
	return out
}

// members are the members of a list. A member may have commas in parentheses or in quotation marks.
func members(list string) (out []string) {
	depth, quoted, begin := 0, false, 0
	for i, c := range list {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(list[begin:i]))
			begin = i + 1
		}
	}
	return append(out, strings.TrimSpace(list[begin:]))
}
