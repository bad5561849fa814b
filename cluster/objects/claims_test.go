package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/workload/objects"
)

// TestClaimManifests: the manifests of claims and pods are valid for the API, and a pod's volume is its claim.
func TestClaimManifests(t *testing.T) {
	o := options{study: "t1", image: "example.org/tare", kind: objects.Claim, nodes: objects.Untainted, storage: "fast", size: 1 << 20}
	for _, o.mode = range []string{objects.Filesystem, objects.Block} {
		m, err := newMaker(&o, "load")
		if err != nil {
			t.Fatal(err)
		}
		var claim corev1.PersistentVolumeClaim
		strict(t, m.object("o-1"), &claim)
		if m.path("n") != "/api/v1/namespaces/n/persistentvolumeclaims" || string(*claim.Spec.VolumeMode) != map[string]string{objects.Filesystem: "Filesystem", objects.Block: "Block"}[o.mode] ||
			*claim.Spec.StorageClassName != "fast" || claim.Spec.Resources.Requests.Storage().Value() != 1<<20 || claim.Labels[labelObject] != "o-1" {
			t.Errorf("%s: %+v", o.mode, claim)
		}
		users, err := newUsers(&o, "load")
		if err != nil {
			t.Fatal(err)
		}
		var p corev1.Pod
		strict(t, users.object("o-1"), &p)
		c := p.Spec.Containers[0]
		if p.Name != claim.Name || p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name || p.Labels[labelObject] != "o-1" ||
			(len(c.VolumeDevices) == 1) != (o.mode == objects.Block) || (len(c.VolumeMounts) == 1) != (o.mode == objects.Filesystem) {
			t.Errorf("%s: %+v", o.mode, p)
		}
	}
}

// TestChooseClass: a class that does not fit is refused, and the message says what to do.
func TestChooseClass(t *testing.T) {
	all := []storageClass{{Provisioner: "p", Binding: waits, ReclaimPolicy: "Delete"}, {Provisioner: "p", Binding: "Immediate"}, {Provisioner: noProvisioner}, {Provisioner: "p", ReclaimPolicy: retain}}
	for i, name := range []string{"late", "now", "by-hand", "keeps"} {
		all[i].Metadata.Name = name
	}
	with := append([]storageClass{{Provisioner: "q"}}, all...)
	with[0].Metadata.Annotations = map[string]string{isDefault: "true"}
	for _, c := range []struct {
		all            []storageClass
		name, consumer string
		want           string // the provisioner, or a part of the error
	}{
		{with, "", objects.ConsumerNone, "q"}, {all, "late", objects.ConsumerPod, "p"}, {all, "now", objects.ConsumerNone, "p"},
		{all, "", objects.ConsumerPod, "no default StorageClass"}, {all, "fast", objects.ConsumerPod, "no StorageClass of this name"},
		{all, "late", objects.ConsumerNone, "would wait forever"}, {all, "by-hand", objects.ConsumerPod, "has no provisioner"}, {all, "keeps", objects.ConsumerPod, "leave a volume behind"},
	} {
		got, err := chooseClass(c.all, c.name, c.consumer)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.Provisioner != c.want {
			t.Errorf("%s, %s: %v, %v; want %s", c.name, c.consumer, got, err, c.want)
		}
	}
}

// story passes events to the watches of a load. Its times are in seconds since its beginning.
type story struct {
	*testing.T
	v     *volumes
	begin time.Time
}

func newStory(t *testing.T, consumer string) *story {
	return &story{t, newVolumes(&options{study: "t1", consumer: consumer}, "load"), time.Now()}
}

func (s *story) at(seconds float64) time.Time {
	return s.begin.Add(time.Duration(seconds * float64(time.Second)))
}

func tell[T any](s *story, see func(*event[T], time.Time), seconds float64, typ, object string) {
	s.Helper()
	var e event[T]
	if err := json.Unmarshal(fmt.Appendf(nil, `{"type":%q,"object":%s}`, typ, object), &e); err != nil {
		s.Fatal(err)
	}
	see(&e, s.at(seconds))
}

func (s *story) claim(seconds float64, typ, name, node, phase string) {
	tell(s, s.v.seeClaim, seconds, typ, fmt.Sprintf(`{"metadata":{"labels":{"tare/object":%q},"annotations":{"volume.kubernetes.io/selected-node":%q}},"status":{"phase":%q}}`, name, node, phase))
}

func (s *story) volume(seconds float64, typ, name string) {
	tell(s, s.v.seeVolume, seconds, typ, fmt.Sprintf(`{"metadata":{"name":"pv-%s"},"spec":{"claimRef":{"namespace":"tare-t1-load-0","name":%q}}}`, name, name))
}

func (s *story) pod(seconds float64, typ, name, node, phase, message string) {
	state := `{}`
	if message != "" {
		state = fmt.Sprintf(`{"terminated":{"message":%q}}`, message)
	}
	tell(s, s.v.seePod, seconds, typ, fmt.Sprintf(`{"metadata":{"labels":{"tare/object":%q}},"spec":{"nodeName":%q},"status":{"phase":%q,"containerStatuses":[{"state":%s}]}}`, name, node, phase, state))
}

// wrote adds the report of the program in a pod.
func (s *story) wrote(started, written float64) string {
	return fmt.Sprintf(`{"started":%d,"written":%d}`, s.at(started).UnixNano(), s.at(written).UnixNano())
}

func (s *story) attachment(seconds float64, typ, name string) {
	tell(s, s.v.seeAttachment, seconds, typ, fmt.Sprintf(`{"spec":{"source":{"persistentVolumeName":"pv-%s"}},"status":{"attached":true}}`, name))
}

func parts(stages []objects.Stage) string {
	var out []string
	for _, s := range stages {
		out = append(out, fmt.Sprintf("%s %.3g", s.Name, s.Part))
	}
	return strings.Join(out, ", ")
}

// TestStages: a claim has each stage once, with the times of the program in its pod.
func TestStages(t *testing.T) {
	s := newStory(t, objects.ConsumerPod)
	s.v.late = true
	c := s.v.expect("a", s.at(0))
	s.v.answered(c, s.at(1), nil)
	s.claim(1, "ADDED", "a", "", "Pending")
	s.claim(2, "MODIFIED", "a", "n1", "Pending")
	s.volume(4, "ADDED", "a")
	s.claim(7, "MODIFIED", "a", "n1", "Bound")
	s.claim(8, "MODIFIED", "a", "n1", "Bound")
	s.pod(11, "MODIFIED", "a", "n1", "Pending", "")
	s.attachment(12, "MODIFIED", "a")
	if done(c.usable) {
		t.Error("it can be used before its pod runs")
	}
	s.pod(20, "MODIFIED", "a", "n1", "Running", "")
	if !done(c.usable) {
		t.Error("it cannot be used")
	}
	if all := s.v.starts([]*claim{c, nil}); len(all) != 1 || all[0].node != "n1" || !all[0].ran.Equal(s.at(20)) {
		t.Errorf("the starts of its pod are %+v", all)
	}
	s.v.remove(c, s.at(30))
	s.pod(31, "MODIFIED", "a", "n1", "Running", s.wrote(16, 17))
	s.pod(32, "DELETED", "a", "n1", "Running", s.wrote(16, 17))
	s.claim(34, "DELETED", "a", "n1", "Bound")
	s.attachment(37, "DELETED", "a")
	if done(c.gone) {
		t.Error("it is gone before its volume")
	}
	s.volume(41, "DELETED", "a")
	if !done(c.gone) {
		t.Error("it is not gone")
	}
	var out objects.Claims
	if n, err := s.v.sum(&out, span{s.at(0), s.at(20)}, span{s.at(30), s.at(42)}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got, want := parts(out.Way), "answered 1, chosen 1, provisioned 2, bound 3, scheduled 4, attached 1, mounted 4, written 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := parts(out.Removal), "pod_gone 2, claim_gone 2, detached 3, volume_gone 4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if out.Settled != 1 || out.Gone != 1 || out.Bound != 1 || out.Bind != 7 || out.Remove != 11 || out.Volumes != 1 || out.Vanished != 1 || out.Skewed != 0 || out.Stuck+out.Held != "" || len(s.v.claims) != 0 {
		t.Errorf("%+v", out)
	}
}

// TestStuck: the load tells apart claims that are not bound, cannot be written to, or do not disappear, and gives the reason.
func TestStuck(t *testing.T) {
	s := newStory(t, objects.ConsumerPod)
	all := map[string]*claim{}
	for _, name := range []string{"never", "never2", "unwritten", "refused"} {
		all[name] = s.v.expect(name, s.at(0))
		s.v.answered(all[name], s.at(1), map[string]error{"refused": errors.New("quota")}[name])
	}
	s.claim(2, "MODIFIED", "unwritten", "", "Bound")
	s.volume(2, "ADDED", "unwritten")
	s.volume(2, "ADDED", "stranger")
	s.pod(3, "MODIFIED", "unwritten", "n1", "Failed", "cannot write to the volume: read-only")
	if !done(all["unwritten"].usable) {
		t.Error("a pod that failed is waited for")
	}
	s.v.withdraw(s.at(20))
	s.pod(21, "DELETED", "unwritten", "n1", "Failed", "")
	s.claim(21, "DELETED", "unwritten", "", "Bound")
	var out objects.Claims
	if n, err := s.v.sum(&out, span{s.at(0), s.at(20)}, span{s.at(20), s.at(30)}); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if out.Settled != 0 || out.Stuck != objects.Provisioned || out.Held != objects.PodGone || out.Gone != 0 || out.Volumes != 1 || !strings.Contains(out.Message, "read-only") {
		t.Errorf("%+v", out)
	}
	late := map[string]int{}
	for _, x := range out.Way {
		late[x.Name] = x.Late
	}
	if late[objects.BoundTo] != 2 || late[objects.Written] != 3 || late[objects.Answered] != 0 { // never and never2, and the pod that failed
		t.Errorf("late: %v", late)
	}
	if got := parts(out.Way); got != "answered 0, provisioned 0, bound 0, scheduled 0, mounted 0, written 0" {
		t.Error(got)
	}
}

// TestClocks: the load ignores the times of a node whose clock is wrong.
func TestClocks(t *testing.T) {
	for _, c := range []struct {
		name             string
		started, written float64
		skewed           bool
	}{{"right", 5, 6, false}, {"a busy node", 12, 13, false}, {"before the claim", -5, -4, true}, {"after what was seen", 50, 51, true}, {"written after its end", 5, 50, true}} {
		s := newStory(t, objects.ConsumerPod)
		x := s.v.expect("a", s.at(0))
		s.pod(10, "MODIFIED", "a", "n1", "Running", "")
		s.pod(20, "MODIFIED", "a", "n1", "Running", s.wrote(c.started, c.written))
		if got := x.clock(); got != c.skewed {
			t.Errorf("%s: %t", c.name, got)
		}
		want := s.at(c.started)
		if c.skewed {
			want = s.at(10)
		}
		if d := x.at[objects.Mounted].Sub(want).Abs(); d > time.Millisecond {
			t.Errorf("%s: the mount is %s away", c.name, d)
		}
	}
}

// TestMissed: after a broken watch, the load finds the objects that disappeared in the meantime. If the first list is refused, the load ends.
func TestMissed(t *testing.T) {
	var lists atomic.Int64
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("watch") != "":
			if lists.Load() > 1 {
				<-r.Context().Done()
			}
		case lists.Add(1) == 1:
			_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"labels":{"tare/object":"a"}},"status":{"phase":"Bound"}}]}`))
		default:
			_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"9"},"items":[]}`))
		}
	})
	v := newVolumes(&options{study: "t1", consumer: objects.ConsumerNone}, "load")
	c := v.expect("a", time.Now())
	v.answered(c, time.Now(), nil)
	v.remove(c, time.Now())
	listed := make(chan error, 1)
	go feed(t.Context(), a, "/claims?", v.seeClaim, func(all []seenClaim, at time.Time) {
		v.missed(objects.ClaimGone, at, keys(all, func(x *seenClaim) string { return x.Metadata.Labels.Object }), func(name string, _ *claim) string { return name })
	}, func() {}, func(err error) { listed <- err })
	if err := <-listed; err != nil {
		t.Fatal(err)
	}
	<-c.usable
	<-c.gone

	refuses := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"you may not"}`))
	})
	if err := v.watch(t.Context(), refuses, "x=y"); err == nil || err.Error() != "you may not" {
		t.Error(err)
	}
}

// TestWriteFirst: the byte is in a file of the volume, or at the beginning of the device.
func TestWriteFirst(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "device")
	if err := os.WriteFile(device, []byte{0, 0, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeFirst(dir), writeFirst(device)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"tare": "\x01", "device": "\x01\x00\x00"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if err := writeFirst(filepath.Join(dir, "none")); err == nil {
		t.Error("nothing is no error")
	}
}

// TestHeldPods: claims whose pods run are usable, even if the pods do not end in time and so do not tell when they wrote. The step is bound by what
// the other claims wait for.
func TestHeldPods(t *testing.T) {
	s := newStory(t, objects.ConsumerPod)
	for i := range 3 {
		name := fmt.Sprint("o-", i)
		s.v.answered(s.v.expect(name, s.at(0)), s.at(1), nil)
		s.claim(2, "MODIFIED", name, "", "Bound")
		s.volume(2, "ADDED", name)
		if i < 2 {
			s.pod(3, "MODIFIED", name, "n1", running, "")
		}
	}
	var out objects.Claims
	if _, err := s.v.sum(&out, span{s.at(0), s.at(10)}, span{s.at(10), s.at(20)}); err != nil {
		t.Fatal(err)
	}
	if out.Settled != 2 || out.Stuck != objects.Scheduled {
		t.Errorf("%d usable, and the others wait in %q; want 2 and %s", out.Settled, out.Stuck, objects.Scheduled)
	}
}
