package objects

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// watched returns a watch as the API server's own code writes it.
func watched(t testing.TB, kinds []string, objects ...runtime.Object) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	var out bytes.Buffer
	frames := protobuf.LengthDelimitedFramer.NewFrameWriter(&out)
	for i, o := range objects {
		var raw bytes.Buffer
		if err := protobuf.NewSerializer(scheme, scheme).Encode(o, &raw); err != nil {
			t.Fatal(err)
		}
		event := &metav1.WatchEvent{Type: kinds[i], Object: runtime.RawExtension{Raw: raw.Bytes()}}
		if err := protobuf.NewRawSerializer(scheme, scheme).Encode(event, frames); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func example() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "o-1", Generation: 3, Labels: map[string]string{"a": "b", labelObject: "o-000001-0", labelLoad: "x"}, ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kwok", FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat(`{"f:status":{}}`, 100))}},
		}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "pause"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}},
		},
	}
}

// TestEvents: readers find the needed fields of a pod in the server's own encoding, and an error ends the watch.
func TestEvents(t *testing.T) {
	text := watched(t, []string{"ADDED", "DELETED", "ERROR"}, &corev1.Pod{}, example(), &metav1.Status{Message: "too old", Code: 410})
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "x=y"+watching || r.Header.Get("Accept") != "application/vnd.kubernetes.protobuf;stream=watch" {
			t.Errorf("it asked for %s as %s", r.URL, r.Header.Get("Accept"))
		}
		_, _ = w.Write(text)
	})
	var got []event[seenPod]
	err := streamPods(t.Context(), a, "/?x=y", func(e *event[seenPod], _ time.Time) { got = append(got, *e) })
	if !errors.Is(err, errEnded) || len(got) != 2 {
		t.Fatalf("%+v, and then %v", got, err)
	}
	if got[0].Type != "ADDED" || got[0].Object.Metadata.Labels.Object != "" {
		t.Errorf("%+v", got[0])
	}
	var want seenPod
	want.Metadata.Name = "o-1"
	want.Metadata.Labels.Object, want.Spec.NodeName, want.Status.Phase = "o-000001-0", "n1", running
	want.Status.Conditions = []condition{{Type: "PodScheduled", Status: "False", Message: "no room"}}
	want.Status.ContainerStatuses = make([]containerStatus, 1)
	want.Status.ContainerStatuses[0].State.Waiting.Reason, want.Status.ContainerStatuses[0].State.Waiting.Message = "ErrImagePull", "not found"
	if got[1].Type != deleted || !reflect.DeepEqual(got[1].Object, want) {
		t.Errorf("%+v, want %+v", got[1].Object, want)
	}
	if _, err := nextFrame(strings.NewReader("\xff\xff\xff\xff"), nil); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("an event of 4 GB: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(watched(f, []string{"MODIFIED"}, example())[4:])
	f.Add([]byte("\x0a\x05"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = readEvent(text) })
}

func BenchmarkEvents(b *testing.B) {
	text := watched(b, []string{"MODIFIED"}, example())[4:]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readEvent(text); err != nil {
			b.Fatal(err)
		}
	}
}
