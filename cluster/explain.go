package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tare/cluster/kube"
)

// Texts of the API server: of its authorizer for RBAC (k8s.io/apiserver, pkg/endpoints/handlers/responsewriters/errors.go), and of
// its admission of quotas (plugin/pkg/admission/resourcequota/controller.go in k8s.io/apiserver).
var (
	lacksRight = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "[^"]*" (?:at the cluster scope|in the namespace "([^"]*)")`)
	overQuota  = regexp.MustCompile(`exceeded quota: ([^,]+), (requested: .*)$`)
	underQuota = regexp.MustCompile(`failed quota: ([^:]+): must specify (.*)$`)
)

// errCredentials is said of credentials that the API server does not accept, or does not accept any more.
var errCredentials = errors.New("the API server rejects the kubeconfig's credentials (Unauthorized); they may have expired; log in again, or give another --context")

// explained says what to do about a refusal of the API server. The namespace is that of -n; "": studies have their own.
func explained(err error, namespace string) error {
	var status apierrors.APIStatus
	var failed *url.Error
	switch {
	case errors.As(err, &status):
	case errors.As(err, &failed) && !errors.Is(err, context.Canceled): // no API server has answered
		return fmt.Errorf("%w; %s", err, kube.Advice(err))
	default:
		return err
	}
	if apierrors.IsUnauthorized(err) {
		return errCredentials
	}
	text, details := status.Status().Message, status.Status().Details
	if apierrors.IsNotFound(err) && details != nil && details.Kind == "namespaces" {
		return fmt.Errorf("namespace %s does not exist; create it with `kubectl create namespace %[1]s`, or leave -n out, and each study creates its own", details.Name)
	}
	if apierrors.IsNotFound(err) && details != nil && details.Group == "kubevirt.io" && strings.HasPrefix(text, "the server could not find the requested resource") {
		return errors.New("the cluster has no KubeVirt; install it, or leave out the levels that are virtual machines (--set sandbox=...)")
	}
	if m := lacksRight.FindStringSubmatch(text); m != nil {
		return errors.New(lacks(m[1], m[2], m[3], m[4], namespace))
	}
	if level, what, is := kube.Violation(text); is && namespace != "" { // of an observer: all other pods of tare's own meet restricted
		return fmt.Errorf("namespace %s enforces the Pod Security level %s, which does not admit this pod (%s); leave --observe out, leave -n out, or label the namespace: `kubectl label namespace %[1]s --overwrite pod-security.kubernetes.io/enforce=privileged`", namespace, level, what)
	}
	if m := overQuota.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("ResourceQuota %s of namespace %s has no room for it (%.300s); delete what nobody needs, have the quota raised, or leave -n out, and each study creates its own namespace", m[1], namespace, m[2])
	}
	if m := underQuota.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("ResourceQuota %s of namespace %s refuses pods that do not state %.300s; write factors: {cpu-limit: [1], memory-limit: [1GiB]}, or leave -n out, and each study creates its own namespace", m[1], namespace, m[2])
	}
	return err
}

// lacks says which right a user lacks, what it is for, and how to do without it or to get it. Where in is "", the right is of the
// whole cluster.
func lacks(user, verb, resource, in, namespace string) string {
	where, why := "in the whole cluster", ""
	if in != "" {
		where = "in namespace " + in
	}
	for _, r := range UserRules(Tier{Own: namespace == "", Observe: true}) {
		if slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) {
			why = "; " + r.purpose()
		}
	}
	out := fmt.Sprintf("user %q may not %s %s %s%s; ", user, verb, resource, where, why)
	if namespace != "" {
		return out + "`tare rbac -n " + namespace + "` prints the roles to ask for"
	}
	return out + "`tare rbac` prints the role to ask for, and `tare rbac -n NAMESPACE` smaller ones, for studies in an existing namespace (-n NAMESPACE)"
}
