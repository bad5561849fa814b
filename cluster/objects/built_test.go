package objects

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"

	"tare/workload/objects"
	"tare/workload/registry/app"
)

// TestBuilder: each object has an image of its own, which its pod names by its digest and can run.
func TestBuilder(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	to, err := name.NewRepository(strings.TrimPrefix(s.URL, "http://")+"/pipeline", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{to: to, load: "load", transport: http.DefaultTransport}
	if b.source, err = app.New(t.TempDir(), 1, 100); err != nil {
		t.Fatal(err)
	}
	o := options{study: "t1", image: "example.org/tare", kind: objects.Pod, nodes: objects.Untainted, build: to.String()}
	m, err := newMaker(&o, "load")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, object := range []string{"o-1", "o-2"} {
		image, times, err := b.image(t.Context(), object)
		if err != nil || seen[image] || times.built.Before(times.begun) || times.pushed.Before(times.built) {
			t.Fatal(image, times, err)
		}
		seen[image] = true
		var p corev1.Pod
		strict(t, withImage(m.object(object), image), &p)
		c := p.Spec.Containers[0]
		if c.Image != image || c.Command[0] != app.Program {
			t.Errorf("%+v", c)
		}
		ref, err := name.ParseReference(c.Image, name.Insecure)
		if err == nil {
			_, err = remote.Image(ref)
		}
		if err != nil {
			t.Error(err)
		}
	}
	s.Close()
	if _, _, err := b.image(t.Context(), "o-3"); err == nil || !strings.Contains(err.Error(), "cannot push an image to "+to.String()) {
		t.Errorf("without its registry: %v", err)
	}
}

// TestPulls: the time of a pull is that of the kubelet's event. A step's means are of pods that ran, and the time until the API server's answer
// begins when the image was pushed.
func TestPulls(t *testing.T) {
	for message, want := range map[string]time.Duration{
		`Successfully pulled image "10.77.0.1:5000/p@sha256:00" in 1.3s (1.5s including waiting). Image size: 41234567 bytes.`:      1500 * time.Millisecond,
		`Successfully pulled image "10.77.0.1:5000/p@sha256:00" in 93ms (2m1.25s including waiting). Image size: 41234567 bytes.`:   121250 * time.Millisecond,
		`Container image "10.77.0.1:5000/p@sha256:00" already present on machine`:                                                   0,
		`Successfully pulled image "10.77.0.1:5000/p@sha256:00" in 1.3s (9999999999999999999h including waiting). Image size: 4 B.`: 0,
	} {
		if got := pullOf(message); got != want {
			t.Errorf("%s: %v, want %v", message, got, want)
		}
	}
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		space := strings.Split(r.URL.Path, "/")[4]
		_, _ = fmt.Fprintf(w, `{"items":[{"message":"Successfully pulled image \"x\" in 1s (%s including waiting).","involvedObject":{"name":"o-%s"}}]}`, map[string]string{"n1": "1s", "n2": "3s"}[space], space)
	})
	l := &load{api: a, spaces: []string{"n1", "n2"}}
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	of := func(space string, ran time.Time) *start {
		o := &origin{due: at(0), answered: at(5), made: &made{at(1), at(3), at(4)}}
		return &start{origin: o, name: "o-" + space, placed: at(5), ran: ran}
	}
	all := []*start{of("n1", at(9)), of("n2", at(9)), of("n3", time.Time{})}
	if err := l.pulls(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	s, err := starts(all, at(10), "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, x := range s.Image {
		got[x.Name] = x.Part
	}
	for stage, want := range map[string]float64{objects.Waited: 1, objects.Built: 2, objects.Pushed: 1, objects.Pulled: 2} {
		if d := got[stage] - want; d > 1e-6 || d < -1e-6 {
			t.Errorf("%s: %g s, want %g", stage, got[stage], want)
		}
	}
	if s.Answered != 1 || s.Ran != 4 || s.Never != 1 {
		t.Errorf("%+v", s)
	}
	l.api = server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	var r *refusal
	if err := l.pulls(t.Context(), all); !errors.As(err, &r) {
		t.Errorf("without the right to list events: %v", err)
	}
}

// TestPulled: the time of a pull finds its pod, which the watch has told of in the server's own encoding.
func TestPulled(t *testing.T) {
	pod := example()
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			_, _ = fmt.Fprintf(w, `{"items":[{"message":"Successfully pulled image \"x\" in 1s (2s including waiting).","involvedObject":{"name":%q}}]}`, pod.Name)
			return
		}
		_, _ = w.Write(watched(t, []string{"ADDED"}, pod))
	})
	l := &load{api: a, spaces: []string{"n1"}, pods: newPods()}
	l.pods.expect("o-000001-0", time.Now(), 1)
	if err := streamPods(t.Context(), a, "/api/v1/pods?x=y", l.pods.see); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	all, _ := l.pods.take()
	if err := l.pulls(t.Context(), all); err != nil || len(all) != 1 || all[0].pulled != 2*time.Second {
		t.Errorf("%+v, %v", all, err)
	}
}
