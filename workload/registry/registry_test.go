package registry

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tare/param"
	"tare/workload/workloadtest"
)

// The captures are of go-containerregistry's registry, natively.
func cases() []workloadtest.Case {
	out := func(client string) map[string]string { return map[string]string{"client": "testdata/" + client} }
	return []workloadtest.Case{
		{Name: "pull", Outputs: out("pull.json")},
		{Name: "push", Params: param.Values{"operation": push, "program": own}, Outputs: out("push.json")},
		{Name: "cold", Params: param.Values{"cache": dropped}, Outputs: out("cold.json")},
		{Name: "pipeline", Params: param.Values{"operation": operationPipeline, "layer-size": "1MiB", "rate": "4", "duration": "2s"}, Outputs: out("pipeline.json")},
		{Name: "a cold pipeline", Params: param.Values{"operation": operationPipeline, "cache": dropped}, Refused: true},
		{Name: "a rate of pulls", Params: param.Values{"rate": "4"}, Refused: true},
		{Name: "a cold push", Params: param.Values{"operation": push, "cache": dropped}, Refused: true},
		{Name: "more than a disk", Params: param.Values{"images": "10000", "layers": "64", "layer-size": "1GiB"}, Refused: true},
		{Name: "more than memory", Params: param.Values{"operation": push, "clients": "256", "layers": "64", "layer-size": "1MiB"}, Refused: true},
		{Name: "clients without an image", Params: param.Values{"cache": dropped, "images": "2"}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

// TestImpossible: a report that contradicts itself or the study is refused.
func TestImpossible(t *testing.T) {
	text, err := os.ReadFile("testdata/pull.json")
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"tare_registry":1`:  `"tare_registry":2`,
		`"clients":4`:        `"clients":5`,
		`"operation":"pull"`: `"operation":"push"`,
		`"window_s":1`:       `"window_s":0`,
		`"images":3`:         `"images":4`, // the bytes of the layers contradict it
	} {
		changed := strings.Replace(string(text), from, to, 1)
		if changed == string(text) {
			t.Fatalf("the capture has no %s", from)
		}
		if _, err := workloadtest.Parse(t, New(), "client", param.Values{}, changed); err == nil {
			t.Errorf("%s is accepted", to)
		}
	}
}

// TestPart: an image counts by the part of its time that is in the window. The latencies are of those that began there.
func TestPart(t *testing.T) {
	from := time.Now()
	at := func(s float64) time.Time { return from.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct{ begun, ended, whole, took float64 }{
		{-1, -0.5, 0, 0}, {-1, 1, 0.5, 0}, {1, 2, 1, 1}, {9, 11, 0.5, 2}, {10, 12, 0, 0}, {-10, 20, 10. / 30, 0},
	} {
		var x times
		x.add(at(c.begun), at(c.ended), from, at(10))
		took := 0.0
		for _, d := range x.took {
			took += d.Seconds()
		}
		if d := x.whole - c.whole; d > 1e-6 || d < -1e-6 || took != c.took {
			t.Errorf("%g to %g s: %g images and %g s, want %g and %g", c.begun, c.ended, x.whole, took, c.whole, c.took)
		}
	}
}

// TestHandler: what one process was given, the next one that serves the same storage has, to the last byte; a blob that was
// changed on the disk is found.
func TestHandler(t *testing.T) {
	dir := t.TempDir()
	c := newContent(2, 4096)
	serveIn := func() string {
		h, err := newHandler(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	if err := pushAll(t.Context(), serveIn(), 3, c); err != nil {
		t.Fatal(err)
	}
	at := serveIn()
	l := &load{content: c, transport: http.DefaultTransport}
	for n := range uint64(3) {
		ref, err := name.ParseReference(reference(at, n), name.Insecure)
		if err == nil {
			err = l.pull(t.Context(), ref)
		}
		if err != nil {
			t.Errorf("image %d: %v", n, err)
		}
	}
	ref, err := name.ParseReference(reference(at, 0), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(dir, "blobs", "sha256", m.Layers[1].Digest.Hex)
	text, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(blob, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.pull(t.Context(), ref); err == nil {
		t.Error("a changed layer is pulled without an error")
	}
}

// TestPipeline: an arrival is timed from when it was due, and a late one waits. What is not finished counts with the time until the end, and a
// load in which nothing was finished is no result.
func TestPipeline(t *testing.T) {
	h, err := newHandler(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	slow := 50 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			time.Sleep(slow)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	l := &load{at: strings.TrimPrefix(s.URL, "http://"), operation: operationPipeline, clients: 1, content: newContent(2, 4096), duration: time.Second, transport: http.DefaultTransport}
	l.reference = func(n uint64) (name.Reference, error) { return name.ParseReference(reference(l.at, n), name.Insecure) }
	p, err := newPipeline(l, t.TempDir(), "burst 3 every 5s")
	if err != nil || len(p.due) != 3 {
		t.Fatal(p, err)
	}
	r, err := p.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Images != 3 || r.Arrivals != 3 || r.Unfinished != 0 || r.Steps[0].Mean < slow.Seconds() || r.Steps[2].Mean < slow.Seconds() {
		t.Errorf("%+v: 3 images are due at once, the registry takes %v for each", r, slow)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "image-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}

	begun := time.Now()
	u := &report{}
	all := []arrived{{parts: []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second}, ended: begun.Add(5 * time.Second)}, {parts: []time.Duration{time.Second}}, {}}
	if err := p.sum(u, all, begun, begun.Add(7*time.Second)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{3, 7. / 3, 1. / 3, 1. / 3, 1. / 3} {
		if got := u.Steps[i].Mean; got < want-0.01 || got > want+0.01 {
			t.Errorf("%s takes %g s, want %g", u.Steps[i].Name, got, want)
		}
	}
	if u.Unfinished != 2 {
		t.Errorf("%d unfinished", u.Unfinished)
	}
	behind, err := os.ReadFile("testdata/behind.json") // 600 arrivals in 2 s on two processors
	if err != nil {
		t.Fatal(err)
	}
	v := param.Values{"operation": operationPipeline, "layer-size": "1MiB", "rate": "300", "duration": "2s"}
	if _, err := workloadtest.Parse(t, New(), "client", v, string(behind)); err == nil || !strings.Contains(err.Error(), "make duration longer, or rate smaller") {
		t.Errorf("a load without a finished image: %v", err)
	}
}

// TestArrivals: the schedule has all arrivals before the end, in order, and no other.
func TestArrivals(t *testing.T) {
	for text, want := range map[string]int{"4": 8, "burst 3 every 1s": 6, "0.1": 1, "10 burst 5": 24} {
		p, err := parseRate(text)
		if got := arrivals(p, 2*time.Second); err != nil || len(got) != want {
			t.Errorf("%s: %d arrivals, want %d (%v)", text, len(got), want, err)
		}
	}
	for _, text := range []string{"0", "within 3s", "x"} {
		if _, err := parseRate(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
