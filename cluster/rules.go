package cluster

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"tare/ordered"
	"tare/workload/objects/loadfile"
)

// Rule is a right that tare needs, and the reason.
type Rule struct {
	rbacv1.PolicyRule
	Whole    bool   // of the whole cluster, not of the study's namespace
	Optional bool   // studies work without it
	Only     string // the only distribution that needs it; "": every cluster
	Why      string
}

func rule(why, group string, resources []string, verbs ...string) Rule {
	return Rule{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}, Why: why}
}

func whole(r Rule) Rule {
	r.Whole = true
	return r
}

func optional(r Rule) Rule {
	r.Optional = true
	r.Why += "; studies work without this"
	return r
}

// purpose says in a message what tare does with a right.
func (r Rule) purpose() string {
	if r.Optional {
		return "tare uses this right to " + r.Why
	}
	return "tare needs this right to " + r.Why
}

// CoordinatorRules are the rights of a study's coordinator, in the study's namespace.
func CoordinatorRules() []Rule {
	return []Rule{
		rule("start a pod for each sandbox, wait for it, delete it", "", []string{"pods"}, "create", "get", "watch", "delete"),
		rule("time the steps of a pod's start", "", []string{"events"}, "watch"),
		rule("create each trial's volumes in the study's StorageClass, and delete them after it", "", []string{"persistentvolumeclaims"}, "create", "list", "deletecollection"),
	}
}

// LoadRules are the rights of roles that use the cluster's API: the loads on objects and claims, in namespaces that they
// create. They get an optional one only from a user who has it.
func LoadRules() []Rule {
	metrics := whole(Rule{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, Why: "read the API server's own metrics; without it, studies do not say what bound it"})
	kinds := map[string][]string{} // by group
	for _, k := range loadfile.Kinds() {
		kinds[k.Group] = append(kinds[k.Group], k.Resource)
	}
	// Whoever may change a secret gets to read it.
	open := slices.DeleteFunc(slices.Clone(kinds[""]), func(r string) bool { return r == "secrets" })
	out := []Rule{
		whole(rule("create the namespaces of the objects, and delete them", "", []string{"namespaces"}, "create", "get", "delete")),
		whole(rule("wait until a namespace takes pods", "", []string{"serviceaccounts"}, "get")),
		whole(rule("create objects, and delete some to replace them", "", kinds[""], "create", "delete")),
		whole(rule("change and read objects, where a file says so, and see when they are gone", "", open, "get", "patch")),
		whole(rule("see when pods run, and when claims are bound and gone with their volumes", "", []string{"pods", "persistentvolumeclaims", "persistentvolumes"}, "list", "watch")),
		whole(rule("see when volumes are attached and detached", "storage.k8s.io", []string{"volumeattachments"}, "list", "watch")),
		whole(rule("find the StorageClass of claims", "storage.k8s.io", []string{"storageclasses"}, "list")),
		whole(rule("say why a claim is not bound", "", []string{"events"}, "list")),
		whole(rule("find the nodes that run the objects' pods, and whether the load runs on one of them", "", []string{"nodes"}, "get", "list")),
		whole(rule("create virtual machines, and see when their guests run, where the cluster has KubeVirt", "kubevirt.io", []string{"virtualmachineinstances"}, "create", "delete", "list", "watch")),
		optional(whole(rule("read the kubelets' metrics, which say what on the nodes bound the pods", "", []string{"nodes/proxy"}, "get"))),
	}
	for _, group := range slices.Sorted(maps.Keys(kinds)) {
		if group != "" {
			out = append(out, whole(rule("the same for objects of this group", group, kinds[group], "create", "delete", "get", "patch")))
		}
	}
	return append(out, metrics)
}

// Tier is what a user runs on a cluster.
type Tier struct {
	Own     bool // each study gets its own namespace; otherwise studies share an existing one
	Observe bool // also observers on the nodes
	VMs     bool // also virtual machines of KubeVirt
	Objects bool // also the loads on objects and claims, which need Own
}

// UserRules are the rights of a user who runs studies of a tier.
func UserRules(t Tier) []Rule {
	out := []Rule{
		whole(rule("find the nodes that take pods", "", []string{"nodes"}, "list")),
		whole(rule("find the classes to compare", "node.k8s.io", []string{"runtimeclasses"}, "list")),
		optional(whole(rule("find the storage classes", "storage.k8s.io", []string{"storageclasses"}, "list"))),
		optional(whole(rule("name the API server's priority level in results", "flowcontrol.apiserver.k8s.io", []string{"prioritylevelconfigurations"}, "list"))),
	}
	var groups ordered.Groups[string, string]
	for _, k := range routeKinds() {
		groups.Add(k.group, k.resource)
	}
	for group, resources := range groups.All() {
		out = append(out, optional(whole(rule("read the routes of an ingress controller, for a load with objects: cluster:NAMESPACE", group, resources, "list"))))
	}
	if t.VMs {
		out = append(out, optional(whole(rule("find KubeVirt's version, and whether it emulates machines", "kubevirt.io", []string{"kubevirts"}, "list"))))
	}
	if t.Observe {
		privileged := whole(rule("start the observers, which see their node's processes (hostPID) and control groups (hostPath); the namespace's Pod Security label must allow this",
			"security.openshift.io", []string{"securitycontextconstraints"}, "use"))
		privileged.ResourceNames, privileged.Only = []string{"privileged"}, "OpenShift"
		out = append(out, privileged,
			optional(whole(rule("find the pods of an ingress controller, and of the servers behind it, to observe them", "discovery.k8s.io", []string{"endpointslices"}, "list"))),
			optional(whole(rule("find the pods of an ingress controller by its address, to observe them", "", []string{"services"}, "list"))))
	}
	if t.Objects && t.Own {
		out = append(out, whole(rule("give the load on objects or claims its rights, which Kubernetes deletes with the study's namespace", rbacv1.GroupName, []string{"clusterroles", "clusterrolebindings"}, "create")))
		for _, r := range LoadRules() {
			if r.Optional { // it gives access to all pods of all nodes: nobody should get it only for tare
				continue
			}
			r.Why += "; only the load on objects or claims does this"
			out = append(out, r)
		}
	}
	if t.Own {
		out = append(out,
			whole(rule("create a namespace for each study, and delete it with everything in it", "", []string{"namespaces"}, "create", "get", "list", "delete")),
			rule("limit the number of a study's pods", "", []string{"resourcequotas"}, "create"))
	}
	out = append(out, optional(whole(rule("find out before a study starts whether the pods of a block in turns have room on a node together", "", []string{"pods"}, "list"))))
	elsewhere := []string{"serviceaccounts"}
	removes, finds := []string{"create"}, []string{"create"}
	if !t.Own {
		elsewhere = append(elsewhere, "namespaces")
		removes = append(removes, "deletecollection")
		finds = append(slices.Clone(removes), "list") // `tare clean` finds studies by them
	}
	if !t.Own {
		out = append(out, optional(rule("find out before a study starts whether its pods fit in the namespace", "", []string{"limitranges", "resourcequotas"}, "list")))
	}
	out = append(out,
		optional(whole(rule("keep off the nodes on which studies in other namespaces measure", "", elsewhere, "list"))),
		rule("give the coordinator and the agents their certificates", "", []string{"secrets"}, removes...),
		rule("give the coordinator an identity", "", []string{"serviceaccounts"}, finds...),
		rule("give the coordinator its rights on pods, events and volume claims; you can give only rights that you have", rbacv1.GroupName, []string{"roles", "rolebindings"}, removes...),
		rule("let only the study's pods reach each other", "networking.k8s.io", []string{"networkpolicies"}, removes...),
		rule("start, watch and delete the study's pods", "", []string{"pods"}, append(slices.Clone(finds), "get", "watch", "delete")...),
		rule("connect to the coordinator", "", []string{"pods/portforward"}, "create"),
		rule("time the steps of a pod's start; only the coordinator does this", "", []string{"events"}, "watch"),
		rule("create volumes for trials, and delete them; only the coordinator and `tare clean` do this", "", []string{"persistentvolumeclaims"}, "create", "list", "deletecollection"))
	if t.VMs {
		for _, r := range VMRules() {
			r.Why += "; only the coordinator does this"
			out = append(out, r)
		}
	}
	return out
}
