package pod

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/observer"
	"tare/record"
	"tare/volume"
)

// Facts implements sandbox.Instance: what was in force, as far as it is known. The kubelet reports
// the image only some time after the pod's start.
func (i *instance) Facts() map[string]string {
	p := i.pod
	f := map[string]string{
		"sandbox": i.kind.name, record.FactNode: p.Spec.NodeName, record.FactPod: string(p.UID), record.FactRuntimeClass: i.kind.class,
		"image": p.Spec.Containers[0].Image, record.FactImageDigest: digest(p),
		record.FactHandler: i.kind.handler, record.FactQOS: string(p.Status.QOSClass),
	}
	set := &i.kind.set
	if p.Spec.Priority != nil {
		f[record.FactPriority] = strconv.Itoa(int(*p.Spec.Priority))
	}
	f[record.FactPriorityLevel] = cmp.Or(i.kind.study.Levels[i.level], i.level)
	if n := slices.IndexFunc(i.kind.study.Machines, func(n record.Node) bool { return n.Name == i.spec.Node }); n >= 0 {
		h := &i.kind.study.Machines[n].Host
		f[record.FactMachine] = i.kind.study.Machines[n].Machine
		f[record.FactKernel], f[record.FactOS], f[record.FactRuntime] = h.Kernel, h.OS, h.Tools["container runtime"]
	}
	if slices.ContainsFunc(i.spec.Volumes, func(v volume.Volume) bool { return v.Medium == volume.Disk }) {
		f[record.FactStorageClass] = cmp.Or(i.spec.Options[storageClass], noClass)
	}
	for _, v := range i.spec.Volumes {
		switch text := i.found.Stored[v.Path()]; {
		case text == "":
		case v.Mode == volume.Block:
			f[record.FactStorage+v.Name] = "block, on " + text
		default:
			f[record.FactStorage+v.Name] = "filesystem, on " + text
		}
	}
	if found := &i.found; found.Cgroup != "" {
		f[record.FactCPULimit], f[record.FactMemoryLimit] = observer.Limit(found.CPU), observer.Limit(float64(found.Memory))
		f[record.FactKernel], f[record.FactRoot] = found.Kernel, found.Root
		f[record.FactNetwork], f[record.FactDevice] = found.Network, found.Device
		f[record.FactProgram] = found.Runtime
		f[record.FactSizing] = found.Sizing // "": the name of the handler tells, or nothing
	}
	for name, defined := range map[string]bool{
		record.FactPriority: set.priority != "", record.FactQOS: set.request != nil,
		record.FactNetwork: set.hostNetwork, record.FactDevice: set.hostNetwork,
	} {
		if defined { // by the study: what it compares makes no comparison unfair
			delete(f, name)
		}
	}
	maps.DeleteFunc(f, func(name, v string) bool { return v == "" && name != record.FactRuntimeClass })
	return f
}

// digest is that of the image that ran; "" if the kubelet has not told it. An image that came from
// no registry has the digest of its configuration.
func digest(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if i := strings.LastIndex(s.ImageID, "sha256:"); i >= 0 {
			return s.ImageID[i:]
		}
	}
	return ""
}

// Doubts implements sandbox.Doubter: it compares the requested limits with those in force. The limit of a
// pod's group may be higher by the overhead that its RuntimeClass declares for the sandbox itself.
func (i *instance) Doubts() []record.Warning {
	if i.found.Cgroup == "" {
		return nil
	}
	var out []record.Warning
	over := i.pod.Spec.Overhead
	for _, l := range []struct {
		what                  string
		asked, found, allowed float64
	}{
		{"a CPU limit of %s cores", i.spec.CPULimit, i.found.CPU, over.Cpu().AsApproximateFloat64()},
		{"a memory limit of %s bytes", float64(i.spec.MemoryLimit), float64(i.found.Memory), over.Memory().AsApproximateFloat64()},
	} {
		const rounding = 1e-3 // a limit is set in thousandths of a core, and in pages
		if l.asked != 0 && (l.found < l.asked*(1-rounding) || l.found > (l.asked+l.allowed)*(1+rounding)) {
			out = append(out, record.Warning{Code: record.LimitNotInForce, Text: fmt.Sprintf(l.what+" was requested, but on the node %s is in force for this pod", observer.Limit(l.asked), observer.Limit(l.found))})
		}
	}
	return out
}
