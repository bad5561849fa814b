package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// members is what a layer unpacks to, as listing tells it of a tree.
func members(t *testing.T, img v1.Image) []string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v; want one", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := []string{". drwxr-xr-x "}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // of a copy: it is no file
			continue
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != sealTime {
			t.Errorf("%s belongs to %d:%d, time %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		out = append(out, strings.Join([]string{strings.TrimSuffix(h.Name, "/"), linkMode(h), h.Linkname}, " "))
	}
}

func linkMode(h *tar.Header) string {
	if h.Typeflag == tar.TypeSymlink {
		return "Lrwxrwxrwx"
	}
	return h.FileInfo().Mode().String()
}

// TestExport: the layout is whole, the same in two caches, and has just the
// tree in it, without what is put in at use.
func TestExport(t *testing.T) {
	recipe := recipes("app", oneFile+"command: [/app/a.txt, x]\nenv: {B: c, A: b}\n", "two", oneFile)
	var digests []string
	var img v1.Image
	var want []string
	for range 2 {
		b := &Builder{Cache: t.TempDir(), Recipes: recipe}
		tree := mustBuild(t, b, "app")
		want = listing(t, tree.Path)
		self, _ := os.Executable()
		if err := Dress(tree.Path, self); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "layout")
		for range 2 { // the second replaces the first
			d, err := b.Export(t.Context(), tree, dir)
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, d)
		}
		if _, err := b.Export(t.Context(), mustBuild(t, b, "two"), dir); err != nil {
			t.Fatal(err)
		}
		p, err := layout.FromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		index, err := p.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		m, err := index.IndexManifest()
		if err != nil || len(m.Manifests) != 2 {
			t.Fatalf("%d manifests, %v", len(m.Manifests), err)
		}
		if img, err = index.Image(m.Manifests[0].Digest); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(b.Cache, buildingPrefix+"*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	for _, d := range digests {
		if d != digests[0] {
			t.Errorf("digests differ: %v", digests)
		}
	}
	if diff := cmp.Diff(want, members(t, img)); diff != "" {
		t.Errorf("the layer is not the tree (-tree +layer):\n%s", diff)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(cfg.Config.Cmd, []string{"/app/a.txt", "x"}) || !cmp.Equal(cfg.Config.Env, []string{"PATH=" + stepPath, "A=b", "B=c"}) || cfg.OS != "linux" {
		t.Errorf("%+v", cfg.Config)
	}
	m, err := img.Manifest()
	if err != nil || len(m.Annotations[AnnotationDigest]) != 64 {
		t.Errorf("%v %v", m.Annotations, err)
	}
}

func TestExportRefusesAFolderOfOtherThings(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Export(t.Context(), mustBuild(t, b, "app"), dir); err == nil || !strings.Contains(err.Error(), "holds other files") {
		t.Errorf("%v", err)
	}
}

// TestPush: a real registry takes it and gives it back.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	var said []string
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile), Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	tree := mustBuild(t, b, "app")
	host := strings.TrimPrefix(server.URL, "http://")
	pushed, err := b.Push(t.Context(), tree, host+"/tare/app:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/tare/app:1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	if d, err := img.Digest(); err != nil || pushed != host+"/tare/app@"+d.String() {
		t.Errorf("pushed %s, there is %v %v", pushed, d, err)
	}
	if diff := cmp.Diff(listing(t, tree.Path), members(t, img)); diff != "" {
		t.Errorf("(-tree +layer):\n%s", diff)
	}
	said = nil
	if _, err := b.Push(t.Context(), Tree{Name: Program, Path: tree.Path}, host+"/tare/tare:1", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"packing the image tare", "pushing the image tare for linux/" + runtime.GOARCH + " to " + host + "/tare/tare:1"}; !slices.Equal(said, want) {
		t.Errorf("tare's own image: %q, want %q", said, want)
	}
	server.Close()
	if _, err := b.Push(t.Context(), tree, host+"/tare/app:1", PushOptions{}); err == nil || !strings.Contains(err.Error(), "no registry answers at "+host) {
		t.Errorf("%v", err)
	}
	for _, ref := range []string{"NO SUCH", host + "/tare/app@sha256:" + strings.Repeat("a", 64)} {
		if _, err := b.Push(t.Context(), tree, ref, PushOptions{}); !errors.Is(err, ErrReference) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestPushOwn: another host that pulls an image from a path gets the same files and the same command.
func TestPushOwn(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	own := mustBuild(t, b, layoutOf(t, app(t)))
	to := strings.TrimPrefix(server.URL, "http://") + "/own:1"
	if _, err := b.Push(t.Context(), own, to, PushOptions{}); err != nil {
		t.Fatal(err)
	}
	wantApp(t, mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}, to))
}

// TestPushInsecure: a registry without TLS, or whose certificate nothing vouches for, takes images and
// tells of them only if the user insists.
func TestPushInsecure(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"has no TLS": (*httptest.Server).Start, "cannot be checked": (*httptest.Server).StartTLS} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			start(server)
			defer server.Close()
			b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
			tree := mustBuild(t, b, "app")
			_, port, err := net.SplitHostPort(server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			to := "0.0.0.0:" + port + "/tare/app:1" // this host, by a name that is not known to be
			if _, err := b.Push(t.Context(), tree, to, PushOptions{}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--insecure") {
				t.Errorf("%v", err)
			}
			pushed, err := b.Push(t.Context(), tree, to, PushOptions{Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Ask(t.Context(), to, runtime.GOARCH, false); !errors.Is(err, ErrInsecure) {
				t.Errorf("%v", err)
			}
			if a, err := Ask(t.Context(), to, runtime.GOARCH, true); err != nil || a.Pinned != pushed {
				t.Errorf("pushed %s, there is %s %v", pushed, a.Pinned, err)
			}
		})
	}
}

// TestPushIndex: one reference has an image for each processor, whether they are pushed at once or one
// after the other, and the newer one counts.
func TestPushIndex(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile, "newer", strings.ReplaceAll(oneFile, "/l:", "/newer:"))}
	of := func(name, arch string) Tree {
		tree := mustBuild(t, b, name)
		tree.Arch = arch
		return tree
	}
	host := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		name   string
		pushes []PushOptions // of app for amd64
		then   string        // what is then added for arm64
		want   []string
	}{
		{"at once", []PushOptions{{Others: []Tree{of("app", "arm64")}}}, "", []string{"amd64", "arm64"}},
		{"one after the other", []PushOptions{{Add: true}}, "app", []string{"amd64", "arm64"}},
		{"to an image", []PushOptions{{}}, "app", []string{"amd64", "arm64"}},
		{"newer", []PushOptions{{Others: []Tree{of("app", "arm64")}}, {Add: true}}, "newer", []string{"amd64", "arm64"}},
		{"instead of the index", []PushOptions{{Others: []Tree{of("app", "arm64")}}, {Others: []Tree{of("app", "s390x")}}}, "", []string{"amd64", "s390x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := host + "/tare/" + strings.ReplaceAll(c.name, " ", "-") + ":1"
			var pushed string
			var err error
			for _, o := range c.pushes {
				if pushed, err = b.Push(t.Context(), of("app", "amd64"), to, o); err != nil {
					t.Fatal(err)
				}
			}
			if c.then != "" {
				if pushed, err = b.Push(t.Context(), of(c.then, "arm64"), to, PushOptions{Add: true}); err != nil {
					t.Fatal(err)
				}
			}
			ref, err := name.ParseReference(to)
			if err != nil {
				t.Fatal(err)
			}
			index, err := remote.Index(ref)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(index); err != nil {
				t.Error(err)
			}
			m, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range m.Manifests {
				got = append(got, d.Platform.Architecture)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("it is for %v", got)
			}
			for _, arch := range c.want {
				if a, err := Ask(t.Context(), to, arch, false); err != nil || a.Pinned != pushed {
					t.Errorf("pushed %s, for %s there is %s %v", pushed, arch, a.Pinned, err)
				}
			}
			img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
			if c.then == "" {
				return
			}
			if err != nil || !slices.Equal(members(t, img), listing(t, of(c.then, "").Path)) {
				t.Errorf("for arm64 it is not %s: %v", c.then, err)
			}
		})
	}
}
