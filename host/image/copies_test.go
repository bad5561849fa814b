package image

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestPushCopies: copies have the files of their image, but share no blob with it or with each other. A client that pulls the reference
// gets the image itself, and Ask finds the copies for a processor. Another push of the image replaces its copies.
func TestPushCopies(t *testing.T) {
	h := newHub(t)
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	tree := mustBuild(t, b, "app")
	tree.Arch = "amd64"
	arm := tree
	arm.Arch = "arm64"
	to := h.at + "/tare/app:1"
	if _, err := b.Push(t.Context(), tree, to, PushOptions{Copies: 3, Others: []Tree{arm}}); err != nil {
		t.Fatal(err)
	}
	ref := h.ref(t, "tare/app:1")
	img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		t.Fatal(err)
	}
	asked, err := Ask(t.Context(), to, "amd64", false)
	if err != nil {
		t.Fatal(err)
	}
	if len(asked.Copies) != 3 {
		t.Fatalf("copies: %q", asked.Copies)
	}
	var seen []v1.Hash
	for _, of := range append([]string{""}, asked.Copies...) {
		one := img
		if of != "" {
			at, err := name.ParseReference(of)
			if err != nil {
				t.Fatal(err)
			}
			if one, err = remote.Image(at); err != nil {
				t.Fatal(err)
			}
		}
		if err := validate.Image(one); err != nil { // its sizes and digests are right
			t.Errorf("%s: %v", of, err)
		}
		if diff := cmp.Diff(listing(t, tree.Path), members(t, one)); diff != "" {
			t.Errorf("%s (-tree +layer):\n%s", of, diff)
		}
		c, err := one.ConfigFile()
		if err != nil || c.Architecture != "amd64" {
			t.Errorf("%s: %+v, %v", of, c, err)
		}
		layers, err := one.Layers()
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, config)
		for _, l := range layers {
			for _, ask := range []func() (v1.Hash, error){l.Digest, l.DiffID} {
				d, err := ask()
				if err != nil || slices.Contains(seen, d) {
					t.Errorf("%s has the blob %v of another image, %v", of, d, err)
				}
				seen = append(seen, d)
			}
		}
	}
	if other, err := Ask(t.Context(), to, "arm64", false); err != nil || len(other.Copies) != 3 || slices.ContainsFunc(other.Copies, func(c string) bool { return slices.Contains(asked.Copies, c) }) {
		t.Errorf("for another processor: %q, %v", other.Copies, err)
	}
	if _, err := b.Push(t.Context(), tree, to, PushOptions{Add: true, Copies: 2}); err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]int{"amd64": 2, "arm64": 3} {
		if a, err := Ask(t.Context(), to, arch, false); err != nil || len(a.Copies) != want || slices.Contains(a.Copies, asked.Copies[0]) {
			t.Errorf("after another push, %s: %q, %v", arch, a.Copies, err)
		}
	}
}
