package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/kube"
	"tare/cluster/kubevirt"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/study"
)

// Kinds are the sandboxes that a study can name or define on this cluster: they describe, and start
// nothing.
func (b *Brief) Kinds() []sandbox.Kind {
	var out []sandbox.Kind
	for _, k := range pod.RuntimeClasses(b.Classes, nil, nil, &pod.Study{Storage: b.Storage}) {
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

// VMRules are the additional rights of a coordinator whose study has virtual machines.
func VMRules() []Rule {
	return []Rule{
		rule("start a virtual machine for each sandbox, wait for it, delete it", "kubevirt.io", []string{"virtualmachineinstances"}, "create", "get", "watch", "delete"),
		rule("create the disks of a virtual machine's volumes, with storage-class", "", []string{"persistentvolumeclaims"}, "create", "get", "delete"),
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

// findVMs finds KubeVirt, whether it admits a machine, and the nodes that take machines. A study without
// virtual machines needs none of it.
func (s *Site) findVMs(ctx context.Context) []Finding {
	c, err := kubevirt.Find(ctx, s.api)
	switch {
	case err != nil:
		return cannotList(AreaVMs, err)
	case c == nil:
		return []Finding{{Area: AreaVMs, Name: "none", Detail: "sandboxes of the kind " + kubevirt.Word + " are skipped"}}
	}
	version := Finding{Area: AreaVMs, Name: "version", Detail: cmp.Or(c.Version, "unknown")}
	if c.Emulated == record.Yes {
		version.Detail += "; it emulates machines (useEmulation), so their ratios are those of an emulator"
	}
	admission := Finding{Area: AreaVMs, Name: "admission", Detail: "the API server admits a machine (dry run)"}
	namespace := cmp.Or(s.Namespace, corev1.NamespaceDefault)
	if err := kubevirt.Admits(ctx, s.api, namespace); kube.IsForbidden(err) {
		admission.Optional = true
		admission.Err = fmt.Errorf("not tried: you may not create VirtualMachineInstances in namespace %s; studies without virtual machines work without this", namespace)
	} else if err != nil {
		admission.Err = fmt.Errorf("the API server refuses a machine: %w", err)
	}
	return append([]Finding{version, admission}, s.nodesForVMs(c))
}

// nodesForVMs says how many of the nodes that take pods take machines, and why the others do not.
func (s *Site) nodesForVMs(c *kubevirt.Cluster) Finding {
	takes, reasons := 0, map[string]int{}
	for _, n := range s.ready {
		if why := c.Refuses(n); why != "" {
			reasons[why]++
		} else {
			takes++
		}
	}
	var without []string
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		without = append(without, fmt.Sprintf("%d of %d nodes: %s", reasons[why], len(s.ready), why))
	}
	f := Finding{Area: AreaVMs, Name: "nodes", Detail: strings.Join(append([]string{fmt.Sprintf("%d of %d nodes take virtual machines", takes, len(s.ready))}, without...), "; ")}
	switch {
	case len(s.ready) == 0:
		f.Err = errors.New("not checked: tare found no node that takes pods")
	case takes == 0:
		f.Err = errors.New("no node takes virtual machines; " + strings.Join(without, "; "))
	}
	return f
}
