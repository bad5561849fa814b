package pod

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tare/sandbox"
	"tare/volume"
)

func onClass(class string, mode volume.Mode, medium volume.Medium) sandbox.Want {
	return sandbox.Want{
		Name: "t1-4-main", Trial: "t1-4", Role: "main", Volumes: []volume.Volume{{Name: "data", Mode: mode, Medium: medium, Size: 20 << 30}},
		Options: map[string]string{storageClass: class, claimSize: usualClaim},
	}
}

// TestClaims: volumes on disk are claims where a class is asked for, others never are.
func TestClaims(t *testing.T) {
	k := kind(Class{Name: "runc", Class: "runc", Handler: "runc"})
	for _, c := range []struct {
		class  string
		mode   volume.Mode
		medium volume.Medium
		want   string // of the claim; "": there is none
	}{
		{noClass, volume.Filesystem, volume.Disk, ""},
		{"", volume.Filesystem, volume.Disk, ""},
		{"fast", volume.Filesystem, volume.Memory, ""},
		{"fast", volume.Filesystem, volume.Disk, "fast Filesystem"},
		{"fast", volume.Block, volume.Disk, "fast Block"},
		{defaultClass, volume.Filesystem, volume.Disk, " Filesystem"},
	} {
		want := onClass(c.class, c.mode, c.medium)
		got := ""
		p := k.manifest(&want, "x")
		for _, claim := range k.study.Claims(&want) {
			if claim.Spec.StorageClassName != nil {
				got = *claim.Spec.StorageClassName
			}
			got += " " + string(*claim.Spec.VolumeMode)
			if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Value() != 20<<30 || claim.Labels[LabelTrial] != "t1-4" || !slices.Equal(claimsOf(p), []string{claim.Name}) {
				t.Errorf("%+v of %v", claim, claimsOf(p))
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
		block := c.mode == volume.Block
		if devices := p.Spec.Containers[0].VolumeDevices; block != (len(devices) == 1 && devices[0].DevicePath == "/dev/data") || block != slices.Contains(p.Spec.SecurityContext.SupplementalGroups, DiskGroup) {
			t.Errorf("%+v: devices %v, groups %v", c, devices, p.Spec.SecurityContext.SupplementalGroups)
		}
	}
	bound := sandbox.Want{Volumes: []volume.Volume{{Name: "mount0", Medium: volume.Bind, Host: "/srv/data", At: "/in", ReadOnly: true}}}
	p := k.manifest(&bound, "x")
	if v, m := p.Spec.Volumes[len(p.Spec.Volumes)-1], p.Spec.Containers[0].VolumeMounts; v.HostPath == nil || v.HostPath.Path != "/srv/data" || m[len(m)-1].MountPath != "/in" || !m[len(m)-1].ReadOnly {
		t.Errorf("a directory of the node: %+v, %+v", v, m)
	}
}

// TestCheckVolumes: the check reports what is not possible before the study runs, and says what to write.
func TestCheckVolumes(t *testing.T) {
	small := onClass("fast", volume.Filesystem, volume.Disk)
	small.Options[claimSize] = "1GiB"
	sized := onClass(noClass, volume.Block, volume.Disk)
	sized.Options[claimSize] = "30GiB"
	tiny := onClass(noClass, volume.Block, volume.Disk)
	tiny.Volumes[0].Size = 1<<30 + 1
	for _, c := range []struct {
		handler string
		want    sandbox.Want
		storage []StorageClass
		says    string // "": it can run
	}{
		{"runc", onClass(noClass, volume.Filesystem, volume.Disk), []StorageClass{}, ""},
		{"runc", onClass("fast", volume.Block, volume.Disk), nil, ""},
		{"runc", onClass("fast", volume.Block, volume.Disk), []StorageClass{{Name: "fast"}}, ""},
		{"runc", onClass(defaultClass, volume.Block, volume.Disk), []StorageClass{{Name: "fast", Default: true}}, ""},
		{"runc", onClass(defaultClass, volume.Filesystem, volume.Disk), []StorageClass{{Name: "fast"}}, "no default"},
		{"runc", onClass("slow", volume.Filesystem, volume.Disk), []StorageClass{{Name: "fast"}}, "no StorageClass \"slow\"; write one of none, fast"},
		{"runc", onClass("slow", volume.Filesystem, volume.Disk), []StorageClass{{Name: "fast", Default: true}}, "write one of none, default, fast"},
		{"runc", onClass("fast", volume.Filesystem, volume.Disk), []StorageClass{{Name: "fast", Keeps: true}}, "Retain"},
		{"runc", onClass(noClass, volume.Block, volume.Disk), nil, "add --set storage-class=default --set claim-size=20GiB, or"},
		{"runc", sized, nil, "add --set storage-class=default, or"},
		{"runc", tiny, nil, "--set claim-size=2GiB, or"},
		{"runsc", onClass("fast", volume.Block, volume.Disk), nil, "gVisor cannot open"},
		{"runc", small, nil, "claim-size 1GiB: the workload needs 20GiB"},
	} {
		k := kind(Class{Name: c.handler, Class: c.handler, Handler: c.handler})
		k.study.Storage = c.storage
		err := k.CheckHere(t.Context(), sandbox.Spec{Want: c.want})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c, err, c.says)
		}
	}
	k := kind(Class{})
	for class, good := range map[string]bool{"none": true, "default": true, "rook-ceph.block": true, "Fast": false, "a b": false, "-x": false} {
		if err := k.CheckOptions(map[string]string{storageClass: class}); (err == nil) != good {
			t.Errorf("%q: %v", class, err)
		}
	}
}

// TestUnbound: claims may take their time, other reasons not.
func TestUnbound(t *testing.T) {
	for text, want := range map[string]bool{
		"0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found":                    true,
		`persistentvolumeclaim "t1-4-main-data" not found`:                                                        true,
		"0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.":                    true,
		"0/2 nodes are available: 2 Insufficient cpu.":                                                            false,
		"0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) didn't match Pod's node": false,
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: text}}}}
		if got := unbound(p); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
