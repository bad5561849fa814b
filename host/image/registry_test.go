package image

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// hub is a registry of the test's own. before is asked first, and says whether it has answered.
type hub struct {
	at     string // HOST:PORT
	server *httptest.Server
	mu     sync.Mutex
	asked  []string // method and path
	before func(http.ResponseWriter, *http.Request) bool
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.asked = append(h.asked, r.Method+" "+r.URL.Path)
		before := h.before
		h.mu.Unlock()
		if before == nil || !before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.server.CloseClientConnections)
	t.Cleanup(h.server.Close)
	h.at = strings.TrimPrefix(h.server.URL, "http://")
	return h
}

func (h *hub) behave(before func(http.ResponseWriter, *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before, h.asked = before, nil
}

// blobs counts the requests for blobs.
func (h *hub) blobs() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.asked {
		if strings.HasPrefix(a, "GET ") && strings.Contains(a, "/blobs/") {
			n++
		}
	}
	return n
}

func (h *hub) ref(t *testing.T, to string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(h.at + "/" + to)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (h *hub) push(t *testing.T, to string, img v1.Image) string {
	t.Helper()
	if err := remote.Write(h.ref(t, to), img); err != nil {
		t.Fatal(err)
	}
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// noise cannot be compressed, so that a layer has a size.
func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(b)
	return string(b)
}

func TestPull(t *testing.T) {
	h := newHub(t)
	base := archive(t, reg("base", noise(100_000)))
	img := app(t)
	digest := h.push(t, "my/app:1", img)
	b := &Builder{Cache: t.TempDir()}
	h.behave(func(http.ResponseWriter, *http.Request) bool {
		// A tree that is begun meanwhile removes what has its name and nobody's lock.
		mine, _ := filepath.Glob(filepath.Join(b.Cache, buildingPrefix+label(h.at+"/my/app:1")+"~*"))
		for _, p := range mine {
			if st, err := os.Stat(p); err == nil && !st.IsDir() {
				t.Errorf("a layer is fetched to %s", p)
			}
		}
		return false
	})
	tree := mustBuild(t, b, h.at+"/my/app:1")
	wantApp(t, tree)
	if tree.Manifest != digest {
		t.Errorf("manifest %s, want %s", tree.Manifest, digest)
	}
	h.behave(nil)
	if again := mustBuild(t, b, h.at+"/my/app:1"); again.Path != tree.Path || h.blobs() != 0 {
		t.Errorf("unchanged, but %d blobs were fetched; %s, before %s", h.blobs(), again.Path, tree.Path)
	}
	// What has the same layers fetches only what is new, and its config.
	h.push(t, "my/one:1", imageOf(t, v1.Config{Cmd: []string{"/a"}}, base))
	mustBuild(t, b, h.at+"/my/one:1")
	two := h.push(t, "my/two:1", imageOf(t, v1.Config{Cmd: []string{"/b"}}, base, archive(t, reg("new", "x"))))
	h.behave(nil)
	mustBuild(t, b, h.at+"/my/two:1")
	if n := h.blobs(); n != 2 {
		t.Errorf("%d blobs were fetched, want the new layer and the config", n)
	}
	// A newer image under the same tag is seen.
	h.push(t, "my/app:1", imageOf(t, v1.Config{Cmd: []string{"/c"}}, base))
	if newer := mustBuild(t, b, h.at+"/my/app:1"); newer.Digest == tree.Digest {
		t.Error("the newer image is not taken")
	}
	// By digest nobody is asked again, and without a registry there is what was pulled.
	mustBuild(t, b, h.at+"/my/two@"+two)
	h.server.Close()
	var said strings.Builder
	b.Say = func(f string, args ...any) { fmt.Fprintf(&said, f+"\n", args...) }
	mustBuild(t, b, h.at+"/my/two@"+two)
	if said.String() != "" {
		t.Errorf("by digest: %s", &said)
	}
	mustBuild(t, b, h.at+"/my/two:1")
	if !strings.Contains(said.String(), "taking what was pulled at") {
		t.Errorf("without the registry: %s", &said)
	}
	if _, err := b.Build(t.Context(), h.at+"/my/three:1"); err == nil || !strings.Contains(err.Error(), "cannot reach the registry "+h.at) {
		t.Error(err)
	}
	if left, err := b.Prune(t.Context(), PruneOptions{All: true}); err != nil || !slices.ContainsFunc(left, func(e Entry) bool { return e.Kind == KindLayer }) {
		t.Errorf("prune: %v, %v", left, err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.Cache, "layers", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPullForThisMachine: of an image for several machines.
func TestPullForThisMachine(t *testing.T) {
	h := newHub(t)
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	here := app(t)
	far := imageOf(t, v1.Config{Cmd: []string{"/far"}})
	at := func(arch string) v1.Descriptor {
		return v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}
	}
	all := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: imageOf(t, v1.Config{}), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}}},
		mutate.IndexAddendum{Add: far, Descriptor: at(other)}, mutate.IndexAddendum{Add: here, Descriptor: at(runtime.GOARCH)})
	others := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: far, Descriptor: at(other)})
	alone, err := mutate.ConfigFile(far, &v1.ConfigFile{Architecture: other, OS: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	h.push(t, "alone:1", alone)
	for to, index := range map[string]v1.ImageIndex{"all:1": all, "others:1": others} {
		if err := remote.WriteIndex(h.ref(t, to), index); err != nil {
			t.Fatal(err)
		}
	}
	b := &Builder{Cache: t.TempDir()}
	tree := mustBuild(t, b, h.at+"/all:1")
	if d, err := here.Digest(); err != nil || tree.Manifest != d.String() {
		t.Errorf("manifest %s, want %s", tree.Manifest, d)
	}
	for _, n := range []string{"/others:1", "/alone:1"} {
		if _, err := b.Build(t.Context(), h.at+n); err == nil || !strings.Contains(err.Error(), "it is for linux/"+other+": this host runs linux/"+runtime.GOARCH) {
			t.Errorf("%s: %v", n, err)
		}
	}
}

// TestPullOfAHole: an index may list what the registry no longer has.
func TestPullOfAHole(t *testing.T) {
	h := newHub(t)
	here := app(t)
	d, err := here.Digest()
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: here, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	if err := remote.WriteIndex(h.ref(t, "hole:1"), index); err != nil {
		t.Fatal(err)
	}
	h.behave(func(w http.ResponseWriter, r *http.Request) bool {
		gone := strings.Contains(r.URL.Path, d.Hex)
		if gone {
			w.WriteHeader(http.StatusNotFound)
		}
		return gone
	})
	if _, err := (&Builder{Cache: t.TempDir()}).Build(t.Context(), h.at+"/hole:1"); err == nil || !strings.Contains(err.Error(), "has no such image") {
		t.Error(err)
	}
}

// TestPullRefused: what a registry refuses is said with what to do.
func TestPullRefused(t *testing.T) {
	h := newHub(t)
	h.push(t, "app:1", app(t))
	for status, want := range map[int]string{
		http.StatusUnauthorized:    "log in with docker login " + h.at + " or podman login " + h.at,
		http.StatusForbidden:       "the registry refuses the pull",
		http.StatusNotFound:        "has no such image; check its name and tag",
		http.StatusBadGateway:      "does not work at the moment; try again later",
		http.StatusTooManyRequests: "allows no more pulls for now",
	} {
		h.behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(status)
			}
			return r.URL.Path != "/v2/"
		})
		if _, err := (&Builder{Cache: t.TempDir()}).Build(t.Context(), h.at+"/app:1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", status, err, want)
		}
	}
}

// TestPullStalls: a registry that says nothing ends a pull, with its manifest or within a layer.
func TestPullStalls(t *testing.T) {
	h := newHub(t)
	h.push(t, "app:1", imageOf(t, v1.Config{}, archive(t, reg("a", noise(300_000)))))
	for what, stalls := range map[string]func(*http.Request) bool{
		"manifest": func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/manifests/") },
		"blob":     func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/") },
	} {
		h.behave(func(w http.ResponseWriter, r *http.Request) bool {
			if !stalls(r) {
				return false
			}
			if what == "blob" { // some of it comes
				_, _ = w.Write(make([]byte, 10))
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			return true
		})
		b := &Builder{Cache: t.TempDir(), stall: 50 * time.Millisecond}
		_, err := b.Build(t.Context(), h.at+"/app:1")
		if err == nil || !errors.Is(err, errStalled) || !strings.Contains(err.Error(), "nothing came for 50ms") {
			t.Errorf("%s: %v", what, err)
		}
		if left, _ := filepath.Glob(filepath.Join(b.Cache, buildingPrefix+"*")); len(left) > 0 {
			t.Errorf("%s: left %v", what, left)
		}
	}
	// Not even then, if the caller gives up.
	ctx, cancel := context.WithCancel(t.Context())
	h.behave(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	if _, err := (&Builder{Cache: t.TempDir()}).Build(ctx, h.at+"/app:1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPullResumes: a layer whose connection breaks goes on where it was, and one that is not
// what it should be is not taken.
func TestPullResumes(t *testing.T) {
	h := newHub(t)
	text := noise(300_000)
	h.push(t, "app:1", imageOf(t, v1.Config{}, archive(t, reg("a", text))))
	cut := &cutting{handler: h.server.Config.Handler, most: 70_000}
	h.server.Config.Handler = cut
	b := &Builder{Cache: t.TempDir()}
	tree := mustBuild(t, b, h.at+"/app:1")
	if got, err := os.ReadFile(tree.Path + "/a"); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	if n := cut.ranged(); n < 3 {
		t.Errorf("%d requests for a rest", n)
	}
}

// cutting breaks connections after some bytes.
type cutting struct {
	handler http.Handler
	most    int
	mu      sync.Mutex
	ranges  int
}

func (c *cutting) ranged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ranges
}

func (c *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	if r.Header.Get("Range") != "" {
		c.mu.Lock()
		c.ranges++
		c.mu.Unlock()
	}
	w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
	w.WriteHeader(rec.Code)
	if rec.Body.Len() <= c.most {
		_, _ = w.Write(rec.Body.Bytes())
		return
	}
	_, _ = w.Write(rec.Body.Bytes()[:c.most])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// TestPullOfAnother: what a registry gives for a layer must be that layer.
func TestPullOfAnother(t *testing.T) {
	h := newHub(t)
	h.push(t, "app:1", imageOf(t, v1.Config{}, archive(t, reg("a", noise(3000)))))
	h.behave(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), 3000))
		return true
	})
	if _, err := (&Builder{Cache: t.TempDir()}).Build(t.Context(), h.at+"/app:1"); err == nil {
		t.Error("it was taken")
	}
}

// TestPullWithCredentials: of docker and of podman.
func TestPullWithCredentials(t *testing.T) {
	h := newHub(t)
	h.push(t, "app:1", app(t))
	h.behave(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		if ok && user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	auth := `{"auths": {"` + h.at + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("me:secret")) + `"}}}`
	for file, env := range map[string]string{"": "", "config.json": "DOCKER_CONFIG", "containers/auth.json": "XDG_RUNTIME_DIR", "mine.json": "REGISTRY_AUTH_FILE"} {
		d := t.TempDir()
		for _, e := range []string{"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
			t.Setenv(e, d+"/none")
		}
		t.Setenv("DOCKER_CONFIG", d+"/none")
		t.Setenv("REGISTRY_AUTH_FILE", "")
		if env != "" {
			path := filepath.Join(d, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(auth), 0o600)); err != nil {
				t.Fatal(err)
			}
			if env == "REGISTRY_AUTH_FILE" {
				t.Setenv(env, path)
			} else {
				t.Setenv(env, d)
			}
		}
		_, err := (&Builder{Cache: t.TempDir()}).Build(t.Context(), h.at+"/app:1")
		if (err == nil) != (env != "") || err != nil && !strings.Contains(err.Error(), "log in with") {
			t.Errorf("%s in %s: %v", file, env, err)
		}
	}
}
