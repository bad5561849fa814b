package pod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/volume"
)

// StorageClass is a StorageClass of the cluster.
type StorageClass struct {
	Name    string `json:"name"`
	Default bool   `json:"default"`
	Keeps   bool   `json:"keeps"`           // volumes whose claims are deleted: its reclaimPolicy is Retain
	Waits   bool   `json:"waits,omitempty"` // until a pod uses a claim: its volumeBindingMode is WaitForFirstConsumer
}

// Settings of a pod's volumes. Both can be factors.
const (
	storageClass = "storage-class"
	claimSize    = "claim-size"
	usualClaim   = "10GiB"
	noClass      = "none"    // no claim: an emptyDir
	defaultClass = "default" // the cluster's choice
)

// storageParams returns the storage parameters that every pod has. They refuse a StorageClass that the cluster lacks, if the
// cluster's classes are known.
func (k *RuntimeClass) storageParams() []param.Param {
	return []param.Param{
		{Name: storageClass, Type: param.String, Default: noClass, Storage: true, Valid: k.study.hasClass, Help: "storage of volumes on disk: none (a directory on the node, emptyDir), default (a claim of the cluster's default StorageClass), or the name of a StorageClass"},
		{Name: claimSize, Type: param.Size, Default: usualClaim, Min: 1 << 20, Max: 1 << 50, Storage: true, Help: "size of each claim, at least what the workload needs; in some StorageClasses, larger volumes are faster"},
	}
}

// DiskGroup is the group of block devices on nodes: disk, whose number is 6 in Debian, Red Hat, Alpine and
// what is made of them. Device nodes in a container have the node's owner and mode, and the pod's fsGroup is
// for file systems alone (https://kubernetes.io/blog/2021/11/09/non-root-containers-and-devices/).
const DiskGroup = 6

// claimed says that a volume is a claim of a StorageClass.
func claimed(v *volume.Volume, options map[string]string) bool {
	c := options[storageClass]
	return v.Medium == volume.Disk && c != "" && c != noClass
}

// CheckRoom refuses files for which the claim of their volume is too small. How much other storage of pods holds is known
// only on the nodes, whose kubelets end a pod that takes too much.
func CheckRoom(v *volume.Volume, bytes int64, options map[string]string) error {
	if v == nil || !claimed(v, options) || v.Size > 0 { // the claim of a volume with a size is at least as large
		return nil
	}
	if size := param.Values(options).Size(claimSize); size > 0 && bytes > size {
		return fmt.Errorf("%s is %s, and the workload's files need %s; write a larger %[1]s, or a smaller size", claimSize, param.FormatSize(size), param.FormatSize(bytes))
	}
	return nil
}

// Claims returns the claims of a sandbox's volumes. All sandboxes of a role share them.
func (s *Study) Claims(want *sandbox.Want) (out []*corev1.PersistentVolumeClaim) {
	for i := range want.Volumes {
		v := &want.Volumes[i]
		if !claimed(v, want.Options) {
			continue
		}
		mode := corev1.PersistentVolumeFilesystem
		if v.Mode == volume.Block {
			mode = corev1.PersistentVolumeBlock
		}
		size := max(v.Size, param.Values(want.Options).Size(claimSize))
		c := &corev1.PersistentVolumeClaim{ObjectMeta: s.meta(claimName(want, v), want), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}},
		}}
		if name := want.Options[storageClass]; name != defaultClass {
			c.Spec.StorageClassName = &name
		}
		out = append(out, c)
	}
	return out
}

func claimName(want *sandbox.Want, v *volume.Volume) string {
	return strings.ToLower(want.Trial + "-" + want.Role + "-" + v.Name)
}

// meta is that of what a study makes for a sandbox.
func (s *Study) meta(name string, want *sandbox.Want) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: name, Namespace: s.Namespace,
		Labels: map[string]string{LabelManaged: Managed, LabelStudy: s.ID, LabelTrial: want.Trial, LabelRole: want.Role},
	}
	if s.Owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*s.Owner}
	}
	return m
}

// addVolumes gives a pod the volumes of its sandbox.
func addVolumes(p *corev1.Pod, want *sandbox.Want) {
	c := &p.Spec.Containers[0]
	for i := range want.Volumes {
		v := &want.Volumes[i]
		name := "volume-" + strings.ToLower(v.Name)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source(v, want)})
		if v.Mode != volume.Block {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: v.Path(), ReadOnly: v.ReadOnly})
			continue
		}
		c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: name, DevicePath: v.Path()})
		p.Spec.SecurityContext.SupplementalGroups = []int64{DiskGroup}
	}
}

func source(v *volume.Volume, want *sandbox.Want) corev1.VolumeSource {
	switch {
	case claimed(v, want.Options):
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(want, v)}}
	case v.Medium == volume.Bind:
		is := corev1.HostPathDirectory
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.Host, Type: &is}}
	}
	dir := &corev1.EmptyDirVolumeSource{}
	if v.Medium == volume.Memory {
		dir.Medium = corev1.StorageMediumMemory
	}
	if v.Size > 0 {
		dir.SizeLimit = resource.NewQuantity(v.Size, resource.BinarySI)
	}
	return corev1.VolumeSource{EmptyDir: dir}
}

// className is what the API server takes as the name of an object.
var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// checkClass refuses what is not a name of a StorageClass.
func checkClass(options map[string]string) error {
	if c := options[storageClass]; c != "" && !className.MatchString(c) {
		return fmt.Errorf("%s %q is not the name of a StorageClass; write none, default, or a name that `kubectl get storageclass` lists", storageClass, c)
	}
	return nil
}

// Cannot returns an error if a pod of the class cannot have the wanted volumes on any cluster.
func (k *RuntimeClass) Cannot(want *sandbox.Want) error {
	for i := range want.Volumes {
		switch v := &want.Volumes[i]; {
		case v.Mode == volume.Block && k.Traits(nil).Family == record.FamilyGVisor:
			return errors.New("gVisor cannot open block devices of the host; use a volume with a file system")
		case v.Mode == volume.Block && !claimed(v, want.Options):
			return fmt.Errorf("volume %s: on a cluster, a block device needs a claim; add %s, or write the same under factors; in place of default, you can name a StorageClass", v.Name, claimFlags(v.Size, want.Options[claimSize]))
		case claimed(v, want.Options) && tooSmall(v.Size, want.Options[claimSize]):
			return fmt.Errorf("%s %s: the workload needs %s; write that size or a larger one", claimSize, want.Options[claimSize], param.FormatSize(v.Size))
		}
	}
	return nil
}

// claimFlags are the flags that give a study claims for volumes of this size. The usual size of a claim is more than many clusters have on
// each node, so they name one that is enough, in whole GiB.
func claimFlags(need int64, given string) string {
	out := "--set " + storageClass + "=" + defaultClass
	if given == "" || given == usualClaim {
		out += " --set " + claimSize + "=" + param.FormatSize(max((need+1<<30-1)>>30, 1)<<30)
	}
	return out
}

// tooSmall reports whether the study sets a claim size below what a volume needs. The default grows with the need.
func tooSmall(need int64, given string) bool {
	return given != "" && given != usualClaim && param.Values{claimSize: given}.Size(claimSize) < need
}

// checkVolumes says why a pod cannot have its volumes.
func (k *RuntimeClass) checkVolumes(ctx context.Context, spec sandbox.Spec) error {
	class := spec.Options[storageClass]
	if err := errors.Join(k.study.hasClass(class), k.study.keeps(class)); err != nil {
		return err
	}
	if err := k.Cannot(&spec.Want); err != nil {
		return err
	}
	if !slices.ContainsFunc(spec.Volumes, func(v volume.Volume) bool { return v.Medium == volume.Bind }) {
		return nil
	}
	want := spec.Want
	want.Name, want.Image = k.study.ID+"-try", ""
	if err := k.api.Try(ctx, k.manifest(&want, "")); err != nil {
		if why := k.insecure(err, &want); why != nil {
			return why
		}
		return fmt.Errorf("%w; give -n with a namespace that allows directories of the nodes", err)
	}
	return nil
}

// hasClass refuses a level of storageClass that the cluster lacks, as far as the classes are known.
func (s *Study) hasClass(name string) error {
	if s == nil || s.Storage == nil || name == "" || name == noClass {
		return nil
	}
	names := []string{noClass}
	if slices.ContainsFunc(s.Storage, func(c StorageClass) bool { return c.Default }) {
		names = append(names, defaultClass)
	}
	for _, c := range s.Storage {
		if names = append(names, c.Name); c.Name == name || name == defaultClass && c.Default {
			return nil
		}
	}
	if name == defaultClass {
		return fmt.Errorf("%s: the cluster has no default StorageClass; %s", storageClass, param.Suggest("", names))
	}
	return fmt.Errorf("%s: the cluster has no StorageClass %q; %s", storageClass, name, param.Suggest(name, names))
}

// keeps refuses a class that keeps the volumes of deleted claims.
func (s *Study) keeps(name string) error {
	i := slices.IndexFunc(s.Storage, func(c StorageClass) bool { return c.Name == name || name == defaultClass && c.Default })
	if i >= 0 && s.Storage[i].Keeps {
		return fmt.Errorf("%s %s keeps the volumes of deleted claims (reclaimPolicy Retain), so each trial would leave one behind; use a class with reclaimPolicy Delete", storageClass, s.Storage[i].Name)
	}
	return nil
}

// bindWithin is how long the claims of a pod may take to be bound.
const bindWithin = time.Minute

// unbound says that a pod cannot be scheduled for the sake of its claims, which may pass. The scheduler's
// messages name them: claims that are unbound, or not known to it yet, or volumes that are not there yet.
func unbound(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			strings.Contains(strings.ReplaceAll(strings.ToLower(c.Message), " ", ""), "persistentvolume")
	})
}

// claimsOf are the names of a pod's claims.
func claimsOf(p *corev1.Pod) (out []string) {
	for i := range p.Spec.Volumes {
		if c := p.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	return out
}

// openDevices says why the pod's user may not open its block devices.
func (i *instance) openDevices(ctx context.Context) error {
	for _, d := range i.pod.Spec.Containers[0].VolumeDevices {
		var wrong bytes.Buffer
		exit, err := i.client.Run(ctx, sandbox.Command{Args: []string{program, "internal", "device", d.DevicePath}, Stderr: &wrong})
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("%.300s", strings.TrimSpace(wrong.String()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Device is `tare internal device PATH`: it opens a device as the programs of a workload will.
func Device(args []string, _ io.Writer) error {
	if len(args) != 1 {
		return errors.New("give the path of a device")
	}
	f, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	var st unix.Stat_t
	if unix.Stat(args[0], &st) != nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	groups, _ := os.Getgroups() // for the message alone
	return fmt.Errorf("user %d with groups %v may not open it: on the node, its owner is %d:%d and its mode %#o; set device_ownership_from_security_context in the node's container runtime (docs/cluster.md)", os.Getuid(), groups, st.Uid, st.Gid, st.Mode&0o777)
}
