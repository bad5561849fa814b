// Package kubevirt is the sandbox of a cluster with KubeVirt: a virtual machine from the user's disk,
// in which cloud-init starts tare's agent.
//
// The data path: 1. Start creates a VirtualMachineInstance; 2. its first start runs guest.sh, which
// fetches tare's image from the coordinator and starts the agent there; 3. the agent dials the
// coordinator as a pod's does (package control), unless the conditions of the machine or the status of
// its launcher pod say why it never will; 4. Stop deletes the machine and waits until it is gone.
//
// docs/design/0033-kubevirt.md says why.
package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kv "kubevirt.io/api/core/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/observer"
	"tare/cluster/pod"
	"tare/param"
	"tare/record"
	"tare/sandbox"
)

// Word is the word for these sandboxes in a study, and the name of the kind without a disk.
const Word = "kubevirt"

// Cluster is what a cluster has of KubeVirt.
type Cluster struct {
	Version  string        `json:"version,omitempty"`  // "": unknown
	Emulated record.Answer `json:"emulated,omitempty"` // useEmulation: machines run without KVM
}

// Find looks for KubeVirt. nil: the cluster does not have it.
func Find(ctx context.Context, api *kube.Client) (*Cluster, error) {
	has, err := api.HasGroup(ctx, kv.GroupVersion.Group)
	if err != nil || !has {
		return nil, err
	}
	c := &Cluster{}
	var all kv.KubeVirtList
	if err := api.List(ctx, "", "", &all); err != nil || len(all.Items) == 0 {
		return c, nil //nolint:nilerr // the user may not read it, which is no reason to stop
	}
	one := &all.Items[0]
	c.Version, c.Emulated = one.Status.ObservedKubeVirtVersion, record.No
	if d := one.Spec.Configuration.DeveloperConfiguration; d != nil && d.UseEmulation {
		c.Emulated = record.Yes
	}
	return c, nil
}

// Labels and devices of a node that takes machines: KubeVirt's virt-handler on it sets them.
const (
	schedulable = kv.NodeSchedulable + "=true"
	handler     = "KubeVirt's virt-handler"
)

// Refuses says why a node takes no machines. "": it does, as far as KubeVirt says.
func (c *Cluster) Refuses(n *corev1.Node) string {
	kvm := n.Status.Allocatable[deviceKVM]
	switch {
	case n.Labels[kv.NodeSchedulable] != "true":
		return "no label " + schedulable + ": " + handler + " does not run there"
	case c.Emulated != record.Yes && kvm.IsZero():
		return "no device " + deviceKVM + ": " + handler + " found no KVM there"
	}
	return ""
}

// Admits has KubeVirt judge a machine in a namespace, by a dry run.
func Admits(ctx context.Context, api *kube.Client, namespace string) error {
	k := New(&Cluster{}, api, nil, &pod.Study{Namespace: namespace, Coordinator: "192.0.2.1:1", Secret: "none"}) // RFC 5737: of no host
	k.disk = param.Values{keyImage: "example.org/none"}
	m, err := k.machine(&sandbox.Want{Name: "tare-doctor"}, "none")
	if err != nil {
		return err
	}
	return api.Try(ctx, m.vmi)
}

// Keys of a definition.
const (
	keyImage        = "image"
	keyPVC          = "pvc"
	keyStorageClass = "storage-class"
)

// Machines is a kind of sandbox: virtual machines of KubeVirt from one disk.
type Machines struct {
	name    string
	disk    param.Values // of the definition's keys; nil: there is no definition
	cluster *Cluster     // nil: the cluster has no KubeVirt

	api   *kube.Client
	hub   *control.Hub
	study *pod.Study

	// Nodes are the observers. nil: the control groups and limits of machines stay unknown.
	Nodes observer.Nodes
}

// New returns the kind that studies define others like. Without a study it describes, and starts
// nothing.
func New(c *Cluster, api *kube.Client, hub *control.Hub, study *pod.Study) *Machines {
	return &Machines{name: Word, cluster: c, api: api, hub: hub, study: study}
}

// Name implements sandbox.Kind.
func (k *Machines) Name() string { return k.name }

// About implements sandbox.Kind.
func (k *Machines) About() string {
	switch {
	case k.disk.Str(keyImage) != "":
		return "a KubeVirt virtual machine from the container disk " + k.disk.Str(keyImage)
	case k.disk.Str(keyPVC) != "":
		return "a KubeVirt virtual machine from the PersistentVolumeClaim " + k.disk.Str(keyPVC)
	}
	return "a KubeVirt virtual machine; a study defines it with its disk"
}

// Base implements sandbox.Definable.
func (*Machines) Base() (word, about string) {
	return Word, "a KubeVirt virtual machine from a disk of yours"
}

// Keys implements sandbox.Definable.
func (*Machines) Keys() []param.Param {
	return []param.Param{
		{Name: keyImage, Type: param.String, Help: "container disk: reference of an image with the disk of a Linux that has cloud-init and curl"},
		{Name: keyPVC, Type: param.String, Help: "PersistentVolumeClaim with such a disk, in the namespace that -n names; machines write to a copy"},
		{Name: keyStorageClass, Type: param.String, Help: "StorageClass of the disks that volumes are on; a file of the node (emptyDisk) unless said"},
	}
}

// Define implements sandbox.Definable.
func (k *Machines) Define(name string, keys param.Values) (sandbox.Kind, error) {
	switch image, pvc := keys.Str(keyImage), keys.Str(keyPVC); {
	case image == "" && pvc == "":
		return nil, errors.New("a virtual machine needs a disk; write image: REFERENCE or pvc: NAME")
	case image != "" && pvc != "":
		return nil, errors.New("a virtual machine boots from one disk; leave out image or pvc")
	}
	own := *k
	own.name, own.disk = name, keys
	return &own, nil
}

// About how long a machine takes to start and to go, and what bounds Check: its disk is pulled first.
const (
	takes       = time.Minute
	checkWithin = 10 * time.Minute
)

// Traits implements sandbox.Kind.
func (k *Machines) Traits(map[string]string) sandbox.Traits {
	t := sandbox.Traits{Takes: takes, CheckWithin: checkWithin, Traits: record.Traits{
		Family: record.FamilyVM, Runtime: Word, OwnKernel: record.Yes, Native: sandbox.Native,
	}}
	if k.cluster != nil {
		t.Emulated = k.cluster.Emulated
	}
	return t
}

// Check starts a machine and runs the smallest program in it.
func (k *Machines) Check(ctx context.Context) error {
	if k.study == nil {
		return fmt.Errorf("%s: a virtual machine of KubeVirt needs a cluster; write --on k8s, or leave it out of the study", k.name)
	}
	if k.cluster == nil {
		return errors.New("the cluster has no KubeVirt: its API server does not have the group kubevirt.io; install KubeVirt")
	}
	if k.disk == nil {
		return errNoDisk
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkWithin, fmt.Errorf("it took longer than %s", param.FormatDuration(checkWithin)))
	defer cancel()
	return k.study.Try(ctx, k)
}

var (
	_ sandbox.Definable  = (*Machines)(nil)
	_ sandbox.Chooser    = (*Machines)(nil)
	_ sandbox.Manifester = (*Machines)(nil)
	_ sandbox.Booter     = (*instance)(nil)
)
