package app

import (
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestBuild: an image has all files of its source and a program that runs; another build shares no layer with it, and is not
// taken for it.
func TestBuild(t *testing.T) {
	s, err := New(filepath.Join(t.TempDir(), "source"), 2, 3*each/2)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[v1.Hash]bool{}
	for n := range uint64(2) {
		img, err := s.Build(n)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			d, err := l.Digest()
			if err != nil || seen[d] {
				t.Errorf("build %d: the layer %s is there twice (%v)", n, d, err)
			}
			seen[d] = true
			if size, _ := l.Size(); size < 3*each/4/2 || size > 3*each/2 {
				t.Errorf("a layer of %d B has %d B compressed, want about the half", 3*each/2, size)
			}
		}
		dir := filepath.Join(t.TempDir(), "unpacked")
		if err := Unpack(img, dir, n+1); err == nil {
			t.Error("another build is taken for this one")
		}
		dir = filepath.Join(t.TempDir(), "unpacked")
		if err := Unpack(img, dir, n); err != nil {
			t.Fatal(err)
		}
		got, err := os.Stat(filepath.Join(dir, "app/1/1"))
		if err != nil || got.Size() != each/2 {
			t.Errorf("the last file: %v, %v", got, err)
		}
		stop, err := Start(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
}
