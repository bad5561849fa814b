package pod

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tare/sandbox"
)

// TestImage: the pod of a user's image runs this program, as the image's user where that is not root, and
// needs no more privileges than others.
func TestImage(t *testing.T) {
	k := kind(Class{Name: sandbox.Native})
	uid, gid := int64(1001), int64(0)
	k.study.Images = map[string]Image{"app": {Reference: "r/app@sha256:2", UID: &uid, GID: &gid}, "root": {Reference: "r/root:1"}}
	p := k.manifest(&sandbox.Want{Name: "t1-4-main", Image: "app", CPULimit: 1}, "x")
	first, c := p.Spec.InitContainers[0], p.Spec.Containers[0]
	for what, ok := range map[string]bool{
		"image":   c.Image == "r/app@sha256:2" && first.Image == k.study.Image,
		"program": c.Command[0] == "/tare" && hasMount(c, corev1.VolumeMount{Name: "program", MountPath: "/tare", SubPath: "tare", ReadOnly: true}),
		"copy":    first.Command[3] == "/copy/tare" && hasMount(first, corev1.VolumeMount{Name: "program", MountPath: "/copy"}),
		"user":    *c.SecurityContext.RunAsUser == 1001 && *c.SecurityContext.RunAsGroup == 0 && *first.SecurityContext.RunAsUser == User,
		"pod":     p.Spec.SecurityContext.RunAsUser == nil && *p.Spec.SecurityContext.RunAsNonRoot,
		"limits":  first.Resources.Limits.Cpu().MilliValue() == 1000, // or the pod is not of the class Guaranteed
		"rights":  !*first.SecurityContext.AllowPrivilegeEscalation && len(first.SecurityContext.Capabilities.Drop) == 1,
		"home":    len(k.environment("app")) == 0,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, p.Spec)
		}
	}
	p = k.manifest(&sandbox.Want{Name: "t1-5-main", Image: "root"}, "x")
	if c := p.Spec.Containers[0]; c.SecurityContext.RunAsUser != nil || *p.Spec.SecurityContext.RunAsUser != User || len(k.environment("root")) != 1 {
		t.Errorf("an image of root: %+v", p.Spec)
	}
}

func hasMount(c corev1.Container, want corev1.VolumeMount) bool {
	for _, m := range c.VolumeMounts {
		if m == want {
			return true
		}
	}
	return false
}

// TestCopy: the copy is this program, which anyone may run.
func TestCopy(t *testing.T) {
	to := filepath.Join(t.TempDir(), "tare")
	if err := Copy([]string{to}, nil); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(self)
	b, err := os.ReadFile(to)
	if st, serr := os.Stat(to); err != nil || serr != nil || st.Mode().Perm()&0o555 != 0o555 || !bytes.Equal(a, b) {
		t.Errorf("%v, %v, %d bytes of %d", err, serr, len(b), len(a))
	}
}

// TestNumber: a name is looked up where the image has it.
func TestNumber(t *testing.T) {
	var out bytes.Buffer
	if err := Number([]string{"nobody:root"}, &out); err != nil || out.String() != "65534:0\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := Number([]string{"nobody-has-this"}, &out); err == nil {
		t.Error("a user that is not there has a number")
	}
}
