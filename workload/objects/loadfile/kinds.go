package loadfile

import (
	"slices"
	"strings"
)

// Kind is a kind of object that a load may create.
type Kind struct {
	Name     string
	Group    string // of its API; "" the core
	Version  string
	Resource string   // in paths
	Pod      []string // path of the specification of its pods; nil: it has none
	Replicas string   // path, with dots, of how many pods it has; "" one
}

// APIVersion is the kind's group and version.
func (k *Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Path is that of the kind's API.
func (k *Kind) Path() string {
	if k.Group == "" {
		return "/api/" + k.Version
	}
	return "/apis/" + k.APIVersion()
}

// Kinds are those that a load may create. The rights of the generator are the same (cluster.LoadRules).
func Kinds() []Kind {
	template := []string{"spec", "template", "spec"}
	return []Kind{
		{"Pod", "", "v1", "pods", []string{"spec"}, ""},
		{"ConfigMap", "", "v1", "configmaps", nil, ""},
		{"Secret", "", "v1", "secrets", nil, ""},
		{"Service", "", "v1", "services", nil, ""},
		{"ReplicationController", "", "v1", "replicationcontrollers", template, "spec.replicas"},
		{"ResourceQuota", "", "v1", "resourcequotas", nil, ""},
		{"LimitRange", "", "v1", "limitranges", nil, ""},
		{"PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", nil, ""},
		{"Deployment", "apps", "v1", "deployments", template, "spec.replicas"},
		{"ReplicaSet", "apps", "v1", "replicasets", template, "spec.replicas"},
		{"StatefulSet", "apps", "v1", "statefulsets", template, "spec.replicas"},
		{"Job", "batch", "v1", "jobs", template, "spec.parallelism"},
		{"NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies", nil, ""},
		{"Ingress", "networking.k8s.io", "v1", "ingresses", nil, ""},
	}
}

// kindOf is the kind of a name; nil if a load does not create it.
func kindOf(name string) *Kind {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// notKind says why a load creates no objects of a kind.
func notKind(version, kind string) string {
	group, _, has := strings.Cut(version, "/")
	switch {
	case slices.Contains([]string{"Build", "BuildConfig", "DeploymentConfig", "ImageStream", "ImageStreamTag", "Route", "Project", "Template", "User", "Group", "SecurityContextConstraints"}, kind) || has && strings.HasSuffix(group, ".openshift.io"):
		return "is a kind of OpenShift; plain Kubernetes has none"
	case slices.Contains([]string{"Namespace", "Node", "PersistentVolume", "StorageClass", "PriorityClass", "RuntimeClass", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "IngressClass", "APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, kind):
		return "belongs to the whole cluster; the load stays in its own namespaces"
	case slices.Contains([]string{"Role", "RoleBinding", "ServiceAccount"}, kind):
		return "gives rights"
	case kind == "DaemonSet":
		return "has as many pods as the cluster has nodes, and the load waits for a number of pods that it knows"
	default:
		return "is not a kind that the load creates"
	}
}
