package pod

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestImageCopy: a cold start runs the copy of tare's own image or of the study's image. Nothing else changes.
func TestImageCopy(t *testing.T) {
	k := kind(Class{Name: sandbox.Native})
	k.study.Images = map[string]Image{"app": {Reference: "r/app@sha256:2"}}
	for _, of := range []string{"", "app"} {
		warm, cold := k.manifest(&sandbox.Want{Image: of}, "x"), k.manifest(&sandbox.Want{Image: of, Copy: "r/copy@sha256:3"}, "x")
		if got := cold.Spec.Containers[0].Image; got != "r/copy@sha256:3" {
			t.Errorf("%q: %s", of, got)
		}
		cold.Spec.Containers[0].Image = warm.Spec.Containers[0].Image
		if d := cmp.Diff(warm, cold); d != "" {
			t.Errorf("%q: %s", of, d)
		}
	}
}

// TestCold: a start counts as cold only if the kubelet reported that it pulled.
func TestCold(t *testing.T) {
	at := func(reasons ...string) heard {
		h := heard{at: map[string]time.Time{}}
		for _, r := range reasons {
			h.at[r] = time.Now()
		}
		return h
	}
	for _, c := range []struct {
		copy  string
		heard heard
		want  string
	}{
		{"", at(eventPulled), ""}, {"", heard{}, ""}, {"r/copy", at(eventPulling, eventPulled), ""},
		{"r/copy", at(eventPulled), "was not cold: the node n1 already had the image r/copy"},
		{"r/copy", at(eventStarted), "did not arrive"}, {"r/copy", at(eventCopy+eventPulling, eventCopy+eventPulled), "did not arrive"},
	} {
		i := &instance{spec: sandbox.Spec{Want: sandbox.Want{Copy: c.copy}}, heard: c.heard, pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}}
		if err := i.cold(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestLooksAt: a missing image is told apart from an image that the node has, whatever happens to its container.
func TestLooksAt(t *testing.T) {
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 4)}}
	if _, known := LooksAt(p); known {
		t.Error("known before the kubelet has said anything")
	}
	for name, s := range map[string]corev1.ContainerState{"missing": waits("ErrImageNeverPull"), "ended": {Terminated: &corev1.ContainerStateTerminated{}}, "broken": waits("RunContainerError"), "later": waits("ContainerCreating")} {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: s})
	}
	if _, known := LooksAt(p); known {
		t.Error("known before the last container was looked at")
	}
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == "later" {
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}
	}
	has, known := LooksAt(p)
	if d := cmp.Diff(map[string]bool{"missing": false, "ended": true, "broken": true, "later": true}, has); d != "" || !known {
		t.Error(known, d)
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
	for _, large := range []string{"4294967296", "0:4294967296"} { // in 32 bits they would be root
		if err := Number([]string{large}, &out); err == nil {
			t.Errorf("%s: %s", large, out.String())
		}
	}
	if err := Number([]string{"nobody-has-this"}, &out); err == nil {
		t.Error("a user that is not there has a number")
	}
}
