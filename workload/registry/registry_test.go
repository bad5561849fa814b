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
