package image

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestAsk: a registry tells how an image's programs run, and what a tag stands for now; no layer is
// fetched.
func TestAsk(t *testing.T) {
	h := newHub(t)
	img := imageOf(t, v1.Config{Entrypoint: []string{"/app"}, Cmd: []string{"serve"}, Env: []string{"A=1"}, WorkingDir: "srv", User: "app:web"}, archive(t, reg("app", "x")))
	if err := remote.Write(h.ref(t, "me/app:1"), img); err != nil {
		t.Fatal(err)
	}
	other := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	if err := remote.WriteIndex(h.ref(t, "me/many:1"), other); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]interface{ Digest() (v1.Hash, error) }{"me/app": img, "me/many": other} {
		h.behave(nil)
		a, err := Ask(t.Context(), h.at+"/"+name+":1", runtime.GOARCH, false)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := of.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if a.Pinned != h.at+"/"+name+"@"+digest.String() || a.Dir != "/srv" || a.User != "app:web" || !slices.Equal(a.Entrypoint, []string{"/app"}) || !slices.Equal(a.Command, []string{"serve"}) || !slices.Equal(a.Env, []string{"A=1"}) {
			t.Errorf("%s: %+v", name, a)
		}
		if n := h.blobs(); n != 1 {
			t.Errorf("%s: %d blobs were fetched, not the config alone", name, n)
		}
	}
	if _, err := Ask(t.Context(), h.at+"/me/app:1", "s390x", false); !errors.Is(err, ErrPlatform) || !strings.Contains(err.Error(), "not linux/s390x") {
		t.Errorf("for another processor: %v", err)
	}
	if _, err := Ask(t.Context(), "NOT A REFERENCE", runtime.GOARCH, false); !errors.Is(err, ErrReference) {
		t.Errorf("no reference: %v", err)
	}
	if _, err := Ask(t.Context(), "https://r.example.org/app:1", runtime.GOARCH, false); !errors.Is(err, ErrReference) || !strings.Contains(err.Error(), "write r.example.org/app:1") {
		t.Errorf("with a scheme: %v", err)
	}
	if _, err := Ask(t.Context(), h.at+"/me/none:1", runtime.GOARCH, false); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "has no such image; check its name and tag") {
		t.Errorf("no image: %v", err)
	}
}
