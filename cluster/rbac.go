package cluster

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Roles returns a user's rights to run studies as YAML for `kubectl apply`, each rule with its reason. They are a ClusterRole or,
// with a namespace, the roles to work in that namespace. Roles sets Tier.Own itself.
func Roles(namespace string, t Tier) (string, error) {
	if namespace != "" {
		if err := CheckNamespace(namespace); err != nil {
			return "", fmt.Errorf("-n %q: %w", namespace, err)
		}
	}
	if t.Own = namespace == ""; t.Objects && !t.Own {
		return "", errors.New("--objects and -n: the workloads objects and claims create their own namespaces, so their studies cannot use an existing one; leave -n out")
	}
	return roles(namespace, t), nil
}

// CheckNamespace returns an error for a name that a namespace cannot have.
func CheckNamespace(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("this is not a valid name of a namespace; write at most %d lower-case letters, digits and hyphens, and no hyphen at either end", validation.DNS1123LabelMaxLength)
	}
	return nil
}

// Names of the roles that Roles prints.
const (
	roleStudies = "tare"
	roleNodes   = "tare-nodes" // what is of the whole cluster, for who works in one namespace
)

// roles prints them. If studies have no namespaces of their own and none is given, whoever applies it adds one.
func roles(namespace string, t Tier) string {
	name, level := roleStudies, "may be restricted"
	var with []string
	if t.VMs {
		name, level, with = name+"-vms", "must be baseline or privileged", append(with, "virtual machines of KubeVirt")
	}
	if t.Objects {
		name, with = name+"-objects", append(with, "loads on objects (workloads objects and claims)")
	}
	if t.Observe {
		name, level, with = name+"-observe", "must be privileged", append(with, "observers on the nodes (--observe)")
	}
	tier := "Runs studies"
	if len(with) > 0 {
		tier += " with " + strings.Join(with, " and ")
	}
	all := UserRules(t)
	var b strings.Builder
	if t.Own {
		one := " For one namespace only: tare rbac -n NAMESPACE"
		if t.Objects {
			one = " They include rights on the objects of others:\n# give them on a cluster for tests."
		}
		fmt.Fprintf(&b, "# %s, each in a namespace that it creates. The names are not known in\n# advance, so the rights cover all namespaces.%s\n", tier, one)
		fmt.Fprintf(&b, "# Grant it: kubectl create clusterrolebinding %s --clusterrole=%s --user=USER\n", name, name)
		write(&b, "ClusterRole", name, "", all)
		return b.String()
	}
	var inside, whole []Rule
	for _, r := range all {
		if r.Whole {
			whole = append(whole, r)
		} else {
			inside = append(inside, r)
		}
	}
	in := namespace
	if in == "" {
		in = "NAMESPACE"
	}
	nodes := strings.Replace(name, roleStudies, roleNodes, 1)
	fmt.Fprintf(&b, "# %s in one existing namespace. Its Pod Security level\n# (label pod-security.kubernetes.io/enforce) %s.\n", tier, level)
	fmt.Fprintf(&b, "# Grant it: kubectl create rolebinding %s -n %s --role=%s --user=USER\n", name, in, name)
	write(&b, "Role", name, namespace, inside)
	fmt.Fprintf(&b, "---\n# The rights that this needs on the whole cluster.\n# Grant it: kubectl create clusterrolebinding %s --clusterrole=%s --user=USER\n", nodes, nodes)
	write(&b, "ClusterRole", nodes, "", whole)
	return b.String()
}

func write(b *strings.Builder, kind, name, namespace string, rules []Rule) {
	fmt.Fprintf(b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\n", kind, name)
	if namespace != "" {
		fmt.Fprintf(b, "  namespace: %q\n", namespace) // digits alone are a name too
	}
	b.WriteString("  labels:\n    app.kubernetes.io/name: tare\nrules:\n")
	for _, r := range rules {
		only := ""
		if r.Only != "" {
			only = r.Only + " only: "
		}
		if len(r.NonResourceURLs) > 0 {
			fmt.Fprintf(b, "  # %s%s\n  - nonResourceURLs: [%s]\n    verbs: [%s]\n", only, r.Why, strings.Join(r.NonResourceURLs, ", "), strings.Join(r.Verbs, ", "))
			continue
		}
		fmt.Fprintf(b, "  # %s%s\n  - apiGroups: [%s]\n    resources: [%s]\n    verbs: [%s]\n", only, r.Why, quoted(r.APIGroups), strings.Join(r.Resources, ", "), strings.Join(r.Verbs, ", "))
		if len(r.ResourceNames) > 0 {
			fmt.Fprintf(b, "    resourceNames: [%s]\n", strings.Join(r.ResourceNames, ", "))
		}
	}
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(out, ", ")
}
