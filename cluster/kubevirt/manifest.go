package kubevirt

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kv "kubevirt.io/api/core/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/param"
	"tare/sandbox"
	"tare/volume"
)

//go:embed guest.sh
var guestScript string

// Names in a machine.
const (
	rootDisk   = "root"
	identity   = "identity"
	cloudInit  = "cloud-init"
	podNetwork = "default"
	label      = "TARE" // of the file system with the agent's identity
)

// diskSize is what a volume without a size gets. Its blocks are allocated when they are written.
const diskSize = 10 << 30

// machine is what a trial's sandbox is made of.
type machine struct {
	vmi    *kv.VirtualMachineInstance
	claims []*corev1.PersistentVolumeClaim // of the volumes' disks
}

// objects are all of it, in the order of creation.
func (m *machine) objects() []kube.Object {
	var out []kube.Object
	for _, c := range m.claims {
		out = append(out, c)
	}
	return append(out, m.vmi)
}

// Manifests are the objects of a sandbox, in the order of creation, without its secret.
func (k *Machines) Manifests(want sandbox.Want) ([]kube.Object, error) {
	m, err := k.machine(&want, "redacted")
	if err != nil {
		return nil, err
	}
	return m.objects(), nil
}

// Manifest implements sandbox.Manifester. The token is left out.
func (k *Machines) Manifest(want sandbox.Want) ([]byte, error) {
	made, err := k.Manifests(want)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, o := range made {
		text, err := kube.YAML(o)
		if err != nil {
			return nil, err //nolint:wrapcheck // of tare's own types
		}
		out = append(out, text)
	}
	return bytes.Join(out, []byte("---\n")), nil
}

// serial is the serial number by which the guest finds a volume's disk.
func serial(i int) string { return fmt.Sprintf("tare-%d", i) }

// machine makes the manifests of a sandbox.
func (k *Machines) machine(want *sandbox.Want, token string) (*machine, error) {
	v, err := param.Fill(k.Params(), want.Options)
	if err != nil {
		return nil, err //nolint:wrapcheck // param says which one
	}
	if want.Image != "" {
		return nil, fmt.Errorf("image %s: a virtual machine boots from its own disk, and runs the programs of that; exclude the combination", want.Image)
	}
	s, no := k.study, int64(0)
	memory := resource.NewQuantity(int64(v.Int(paramMemory))<<20, resource.BinarySI)
	vmi := &kv.VirtualMachineInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: kv.GroupVersion.String(), Kind: kv.VirtualMachineInstanceGroupVersionKind.Kind},
		ObjectMeta: k.meta(want, want.Name),
		Spec: kv.VirtualMachineInstanceSpec{
			TerminationGracePeriodSeconds: &no,
			Domain: kv.DomainSpec{
				CPU:    &kv.CPU{Cores: uint32(v.Int(paramCores)), Sockets: 1, Threads: 1}, //nolint:gosec // within mostCores
				Memory: &kv.Memory{Guest: memory},
			},
			Networks: []kv.Network{{Name: podNetwork, NetworkSource: kv.NetworkSource{Pod: &kv.PodNetwork{}}}},
		},
	}
	vmi.Spec.Tolerations = s.Tolerations
	if want.Node != "" {
		vmi.Spec.NodeSelector = map[string]string{corev1.LabelHostname: want.Node}
	}
	d := &vmi.Spec.Domain
	d.Resources = resources(want)
	d.Devices.Interfaces = []kv.Interface{{Name: podNetwork, Model: kv.VirtIO, InterfaceBindingMethod: binding(v.Str(paramBinding))}}
	d.Devices.BlockMultiQueue, d.Devices.NetworkInterfaceMultiQueue = yes(v.Bool(paramBlockMQ)), yes(v.Bool(paramNetMQ))
	if p := kv.IOThreadsPolicy(v.Str(paramPolicy)); p != none {
		d.IOThreadsPolicy = &p
	}
	if n := uint32(v.Int(paramPool)); n > 0 { //nolint:gosec // within mostThreads
		d.IOThreads = &kv.DiskIOThreads{SupplementalPoolThreadCount: &n}
	}
	m := &machine{vmi: vmi}
	m.disk(kv.Disk{Name: rootDisk}, v.Str(paramBus), k.root())
	script := userData{Env: environment(s, want.Name, token), Label: label, Server: control.Coordinator}
	for i, vol := range want.Volumes {
		g := guestVolume{Path: vol.Path(), Size: vol.Size, Serial: serial(i)}
		if vol.Medium == volume.Memory {
			script.Memory = append(script.Memory, g)
			continue
		}
		script.Disks = append(script.Disks, g)
		m.disk(kv.Disk{Name: g.Serial, Serial: g.Serial, DedicatedIOThread: yes(v.Bool(paramDedicated))}, v.Str(paramBus), k.volume(m, want, vol, g.Serial))
	}
	text, err := script.text()
	if err != nil {
		return nil, err
	}
	m.cdrom(identity, kv.VolumeSource{Secret: &kv.SecretVolumeSource{SecretName: s.Secret, VolumeLabel: label}})
	m.cdrom(cloudInit, kv.VolumeSource{CloudInitNoCloud: &kv.CloudInitNoCloudSource{UserDataBase64: base64.StdEncoding.EncodeToString([]byte(text))}})
	return m, nil
}

func (k *Machines) meta(want *sandbox.Want, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: name, Namespace: k.study.Namespace, // KubeVirt gives the labels to the launcher pod too
		Labels: map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: k.study.ID, pod.LabelTrial: want.Trial, pod.LabelRole: want.Role},
	}
	if k.study.Owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*k.study.Owner}
	}
	return m
}

// root is the disk that the machine boots from. What it writes is lost with it.
func (k *Machines) root() kv.VolumeSource {
	if claim := k.disk.Str(keyPVC); claim != "" {
		return kv.VolumeSource{Ephemeral: &kv.EphemeralVolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: true}}}
	}
	return kv.VolumeSource{ContainerDisk: &kv.ContainerDiskSource{Image: k.disk.Str(keyImage), ImagePullPolicy: corev1.PullIfNotPresent}}
}

// volume is what the disk of a volume is on.
func (k *Machines) volume(m *machine, want *sandbox.Want, v volume.Volume, serial string) kv.VolumeSource {
	size := *resource.NewQuantity(diskSize, resource.BinarySI)
	if v.Size > 0 {
		size = *resource.NewQuantity(v.Size, resource.BinarySI)
	}
	class := k.disk.Str(keyStorageClass)
	if class == "" {
		return kv.VolumeSource{EmptyDisk: &kv.EmptyDiskSource{Capacity: size}}
	}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: k.meta(want, want.Name+"-"+serial),
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	m.claims = append(m.claims, claim)
	return kv.VolumeSource{PersistentVolumeClaim: &kv.PersistentVolumeClaimVolumeSource{
		PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}}
}

func (m *machine) disk(d kv.Disk, bus string, from kv.VolumeSource) {
	d.Disk = &kv.DiskTarget{Bus: kv.DiskBus(bus)}
	m.attach(d, from)
}

// cdrom attaches what is read once. It is not a virtio disk, so that it has no I/O thread.
func (m *machine) cdrom(name string, from kv.VolumeSource) {
	m.attach(kv.Disk{Name: name, DiskDevice: kv.DiskDevice{CDRom: &kv.CDRomTarget{Bus: kv.DiskBusSATA}}}, from)
}

func (m *machine) attach(d kv.Disk, from kv.VolumeSource) {
	spec := &m.vmi.Spec
	spec.Domain.Devices.Disks = append(spec.Domain.Devices.Disks, d)
	spec.Volumes = append(spec.Volumes, kv.Volume{Name: d.Name, VolumeSource: from})
}

func binding(name string) kv.InterfaceBindingMethod {
	if name == bridge {
		return kv.InterfaceBindingMethod{Bridge: &kv.InterfaceBridge{}}
	}
	return kv.InterfaceBindingMethod{Masquerade: &kv.InterfaceMasquerade{}}
}

// yes is a setting that is left out unless it is on.
func yes(on bool) *bool {
	if !on {
		return nil
	}
	return &on
}

// resources are the limits, requested as well. KubeVirt adds what the launcher needs beside the guest.
func resources(want *sandbox.Want) kv.ResourceRequirements {
	l := corev1.ResourceList{}
	if want.CPULimit > 0 {
		l[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Round(want.CPULimit*1000)), resource.DecimalSI)
	}
	if want.MemoryLimit > 0 {
		l[corev1.ResourceMemory] = *resource.NewQuantity(want.MemoryLimit, resource.BinarySI)
	}
	return kv.ResourceRequirements{Limits: l, Requests: l}
}

// userData is what guest.sh is filled in with.
type userData struct {
	Env, Label, Server string
	Disks, Memory      []guestVolume
}

// guestVolume is a volume in the guest.
type guestVolume struct {
	Path, Serial string
	Size         int64 // of a memory file system; 0: half of the memory
}

// environment is what the agent reads of the coordinator. A guest behind masquerade does not know the
// address by which others reach it; the launcher pod's status has it.
func environment(s *pod.Study, name, token string) string {
	var out []string
	for _, e := range [][2]string{{pod.EnvCoordinator, s.Coordinator}, {pod.EnvName, name}, {pod.EnvToken, token}, {pod.EnvAddress, "0.0.0.0"}} {
		out = append(out, e[0]+"='"+e[1]+"'")
	}
	return strings.Join(out, " ")
}

// maxUserData is KubeVirt's bound for user data in a manifest, in bytes.
const maxUserData = 2048

func (u userData) text() (string, error) {
	t, err := template.New("guest.sh").Parse(guestScript)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := t.Execute(&out, u); err != nil {
		return "", err
	}
	if out.Len() > maxUserData {
		return "", fmt.Errorf("what the virtual machine is told at its first start has %d bytes, but KubeVirt takes %d; use fewer volumes", out.Len(), maxUserData)
	}
	return out.String(), nil
}
