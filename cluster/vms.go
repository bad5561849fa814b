package cluster

import (
	"slices"

	"tare/cluster/kubevirt"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/study"
)

// Kinds are the sandboxes that a study can name or define on this cluster: they describe, and start
// nothing.
func (b *Brief) Kinds() []sandbox.Kind {
	var out []sandbox.Kind
	for _, k := range pod.RuntimeClasses(b.Classes, nil, nil, nil) {
		out = append(out, k)
	}
	return append(out, kubevirt.New(b.KubeVirt, nil, nil, nil))
}

// needsVMs reports whether a study defines virtual machines.
func needsVMs(st *study.Study) bool {
	return st != nil && slices.ContainsFunc(st.Sandboxes, func(s study.Sandbox) bool { return s.Kind == kubevirt.Word })
}

// vms are base and the virtual machines that a study defines, made like it.
func vms(st *study.Study, base *kubevirt.Machines) []sandbox.Kind {
	out := []sandbox.Kind{base}
	for _, d := range st.Sandboxes {
		if d.Kind != kubevirt.Word {
			continue
		}
		if k, err := base.Define(d.Name, d.Values); err == nil { // study.Parse has refused others
			out = append(out, k)
		}
	}
	return out
}

// rules are the rights of a study's coordinator.
func (b *Brief) rules() []Rule {
	if b.VMs {
		return append(CoordinatorRules(), VMRules()...)
	}
	return CoordinatorRules()
}

// VMRules are the further rights of a coordinator whose study has virtual machines.
func VMRules() []Rule {
	return []Rule{
		rule("start a virtual machine for each sandbox, wait for it, remove it", "kubevirt.io", []string{"virtualmachineinstances"}, "create", "get", "watch", "delete"),
		rule("make the disks of a virtual machine's volumes, with storage-class", "", []string{"persistentvolumeclaims"}, "create", "get", "delete"),
	}
}

// admits is the level of the Pod Security Standards that a study's namespace enforces. KubeVirt's
// launcher pods have no seccomp profile unless the cluster sets one, which restricted wants.
func (b *Brief) admits() string {
	if b.VMs {
		return "baseline"
	}
	return "restricted"
}
