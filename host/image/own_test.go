package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"tare/sandbox"
)

// member makes a header; its content goes to Uname, as archive takes it.
func member(name string, kind byte, content string, of ...func(*tar.Header)) tar.Header {
	h := tar.Header{Name: name, Typeflag: kind, Mode: 0o755, ModTime: time.Unix(1_600_000_000, 0)}
	switch kind {
	case tar.TypeLink, tar.TypeSymlink:
		h.Linkname = content
	default:
		h.Uname = content
	}
	for _, f := range of {
		f(&h)
	}
	return h
}

func reg(name, content string, of ...func(*tar.Header)) tar.Header {
	return member(name, tar.TypeReg, content, of...)
}
func dir(name string, of ...func(*tar.Header)) tar.Header {
	return member(name, tar.TypeDir, "", of...)
}
func link(name, to string) tar.Header { return member(name, tar.TypeSymlink, to) }
func hard(name, to string) tar.Header { return member(name, tar.TypeLink, to) }
func owned(uid, gid int, mode int64) func(*tar.Header) {
	return func(h *tar.Header) { h.Uid, h.Gid, h.Mode = uid, gid, mode }
}

// layerOf is a layer of an archive, compressed with gzip.
func layerOf(t testing.TB, b []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf makes an image of layers.
func imageOf(t testing.TB, conf v1.Config, layers ...[]byte) v1.Image {
	t.Helper()
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(img, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Config: conf})
	for _, b := range layers {
		if err == nil {
			img, err = mutate.AppendLayers(img, layerOf(t, b))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// layoutOf writes a layout with one image, and returns its folder.
func layoutOf(t testing.TB, img v1.Image, o ...layout.Option) string {
	t.Helper()
	d := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(d, empty.Index)
	if err == nil {
		err = p.AppendImage(img, o...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// app is an image as users have them: two layers, a user, a directory, a program.
func app(t testing.TB) v1.Image {
	return imageOf(t,
		v1.Config{Entrypoint: []string{"serve"}, Cmd: []string{"--fast"}, Env: []string{"PATH=/opt/bin", "A=b"}, User: "web:staff", WorkingDir: "/srv/www"},
		archive(t, dir("etc/"), reg("etc/passwd", "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/home/web:/bin/sh\n"), reg("etc/group", "staff:x:50:web\n"), reg("old", "old"), dir("gone/"), reg("gone/x", "x")),
		archive(t, dir("opt/bin/"), reg("opt/bin/serve", "#!/opt/bin/sh\n", owned(33, 50, 0o4750)), reg(".wh.old", ""), reg(".wh.gone", "")))
}

func wantApp(t *testing.T, tree Tree) {
	t.Helper()
	if tree.User.UID != 33 || tree.User.GID != 50 || tree.Dir != "/srv/www" || tree.Unable() != "" {
		t.Errorf("user %+v, directory %s, problem %q", tree.User, tree.Dir, tree.Unable())
	}
	if d := cmp.Diff([][]string{{"serve"}, {"--fast"}, {"PATH=/opt/bin", "A=b", "HOME=/home/web"}}, [][]string{tree.Entrypoint, tree.Command, tree.Env}); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	st, err := os.Stat(filepath.Join(tree.Path, "opt/bin/serve"))
	if err != nil {
		t.Fatal(err)
	}
	if s := st.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (s.Uid != 33 || s.Gid != 50 || st.Mode() != 0o750) || st.ModTime().Unix() != 1_600_000_000 {
		t.Errorf("serve is %v of %d:%d, %v", st.Mode(), s.Uid, s.Gid, st.ModTime())
	}
	for _, gone := range []string{"old", "gone", ".wh.old"} {
		if _, err := os.Lstat(filepath.Join(tree.Path, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", gone, err)
		}
	}
	for _, d := range []string{"proc", "dev", "tmp", "srv/www"} {
		if st, err := os.Lstat(filepath.Join(tree.Path, d)); err != nil || !st.IsDir() {
			t.Errorf("there is no folder %s: %v", d, err)
		}
	}
}

// TestOwnImageInEveryForm: the same image as a layout and in archives gives the same tree, which
// is unpacked once.
func TestOwnImageInEveryForm(t *testing.T) {
	img := app(t)
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	d := layoutOf(t, img, layout.WithAnnotations(map[string]string{annotationRef: "v1"}))
	if p, err := layout.FromPath(d); err != nil || p.AppendImage(imageOf(t, v1.Config{}), layout.WithAnnotations(map[string]string{annotationRef: "v2"})) != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	file := func(name string) string { return filepath.Join(at, name) }
	must(t, "tar", "-C", d, "-cf", file("oci.tar"), ".")
	if err := tarball.WriteToFile(file("docker.tar"), name.MustParseReference("app:v1"), img); err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(file("docker.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for ext, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		var b bytes.Buffer
		w, err := open(&b)
		if err == nil {
			_, err = w.Write(plain)
			err = errors.Join(err, w.Close(), os.WriteFile(file("docker.tar."+ext), b.Bytes(), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cache := t.TempDir()
	for _, n := range []string{d + ":v1", file("oci.tar:v1"), file("docker.tar"), file("docker.tar:v1"), file("docker.tar:app:v1"), file("docker.tar.gz"), file("docker.tar.zst")} {
		unpacked := 0
		b := &Builder{Cache: cache, Say: func(string, ...any) { unpacked++ }}
		tree, err := b.Build(t.Context(), n)
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if tree.Digest != id.Hex || tree.Name != n {
			t.Errorf("%s: digest %s of %s, want %s", n, tree.Digest, tree.Name, id.Hex)
		}
		wantApp(t, tree)
		if first := strings.HasPrefix(n, d); (unpacked > 0) != first {
			t.Errorf("%s: %d layers unpacked", n, unpacked)
		}
		if again, built, err := b.Find(n); err != nil || !built || again.Path != tree.Path {
			t.Errorf("%s is not found again: %+v, %v, %v", n, again, built, err)
		}
	}
	for n, want := range map[string]string{
		d:                      "it has 2 images; write one of them after a colon: v1, v2",
		d + ":v3":              "it has no image v3; it has v1, v2",
		file("docker.tar:v3"):  "it has no image v3; it has app:v1",
		at + "/none":           "no such file",
		"ubuntu":               "from Docker Hub, add its tag: ubuntu:latest",
		"reddis":               "redis",
		"UPPER/case":           "cannot parse the image reference",
		"./" + file("x") + ":": "no such file",
	} {
		if _, err := (&Builder{Cache: cache}).Build(t.Context(), n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", n, err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, buildingPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRootFolder: of a root file system, with owners, times and hard links, and without what
// runs there; a change gives another tree, and the folder is not written to.
func TestRootFolder(t *testing.T) {
	from := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755), os.WriteFile(filepath.Join(from, name), []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/a", "a")
	if err := errors.Join(os.Link(from+"/bin/a", from+"/bin/b"), os.Symlink("/bin/a", from+"/c"), os.Chtimes(from+"/bin/a", time.Time{}, time.Unix(1_600_000_000, 0))); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Lchown(from+"/bin/a", 5, 6), os.Mkdir(from+"/dev", 0o755), syscall.Mknod(from+"/dev/null", syscall.S_IFCHR|0o666, 0x103)); err != nil {
			t.Fatal(err)
		}
	}
	b := &Builder{Cache: t.TempDir()}
	first := mustBuild(t, b, from)
	one, err := os.Stat(first.Path + "/bin/a")
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.Stat(first.Path + "/bin/b")
	if err != nil || !os.SameFile(one, two) || one.ModTime().Unix() != 1_600_000_000 {
		t.Errorf("bin/b is no hard link of bin/a, %v: %v", one.ModTime(), err)
	}
	if s := one.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (s.Uid != 5 || s.Gid != 6) {
		t.Errorf("bin/a belongs to %d:%d", s.Uid, s.Gid)
	}
	if to, err := os.Readlink(first.Path + "/c"); err != nil || to != "/bin/a" {
		t.Errorf("c leads to %s, %v", to, err)
	}
	if first.Unable() == "" || !first.User.Root() || len(first.Digest) != 64 {
		t.Errorf("%+v", first)
	}
	if again := mustBuild(t, b, from); again.Digest != first.Digest || again.Built != first.Built {
		t.Errorf("unpacked again: %+v, before %+v", again, first)
	}
	write("bin/d", "d")
	if other := mustBuild(t, b, from); other.Digest == first.Digest {
		t.Error("a change is not seen")
	}
	if _, err := os.Lstat(from + "/proc"); err == nil {
		t.Error("the folder was written to")
	}
	if _, err := (&Builder{Cache: from + "/cache"}).Build(t.Context(), from); !errors.Is(err, ErrUnknown) {
		t.Errorf("a folder that holds the cache: %v", err)
	}
}

// TestOwnImageCannotRunHere: each with what to do.
func TestOwnImageCannotRunHere(t *testing.T) {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	sh := archive(t, dir("bin/"), reg("bin/sh", "x"), link("bin/loop", "loop"), reg("etc/passwd", "a:x:1:1::/:\n"))
	foreign, err := mutate.ConfigFile(imageOf(t, v1.Config{}), &v1.ConfigFile{Architecture: other, OS: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	without, err := mutate.ConfigFile(imageOf(t, v1.Config{}, sh), &v1.ConfigFile{OS: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := mutate.AppendLayers(imageOf(t, v1.Config{}), static.NewLayer([]byte("BZh91AY&SY"), types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	for want, img := range map[string]v1.Image{
		"it is for linux/" + other + ": this host runs linux/" + runtime.GOARCH: foreign,
		`its user "nobody-here"`:                imageOf(t, v1.Config{User: "nobody-here"}, sh),
		"its working directory /bin/sh/x":       imageOf(t, v1.Config{WorkingDir: "/bin/sh/x"}, sh),
		"its /proc is not a folder":             imageOf(t, v1.Config{}, archive(t, link("proc", "/etc"))),
		"its /volumes is not a folder":          imageOf(t, v1.Config{}, archive(t, link("volumes", "/etc"))),
		"it has a file /tare, a name":           imageOf(t, v1.Config{}, archive(t, reg("tare", "x"))),
		"data after the end":                    imageOf(t, v1.Config{}, append(archive(t), make([]byte, maxPadding+1)...)),
		"unexpected EOF":                        imageOf(t, v1.Config{}, archive(t, reg("a", strings.Repeat("x", 5000)))[:2048]),
		"it is compressed with bzip2 or xz":     packed,
		"its config has 0 layers, its manifest": without,
	} {
		b := &Builder{Cache: t.TempDir()}
		if _, err := b.Build(t.Context(), layoutOf(t, img)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(b.Cache, buildingPrefix+"*")); len(left) > 0 {
			t.Errorf("%s: left %v", want, left)
		}
	}
	for want, conf := range map[string]v1.Config{
		"it has no command": {},
		"its own command is /no/such x, but it has no program /no/such": {Entrypoint: []string{"/no/such"}, Cmd: []string{"x"}},
		"it has no program sh;":        {Cmd: []string{"sh"}, Env: []string{"PATH=/usr/bin"}},
		"it has no program /bin/loop;": {Cmd: []string{"/bin/loop"}},
		"it has no program bash":       {Cmd: []string{"bash", "-c", "x"}},
		"":                             {Cmd: []string{"./sh"}, WorkingDir: "/bin"},
	} {
		tree := mustBuild(t, &Builder{Cache: t.TempDir()}, layoutOf(t, imageOf(t, conf, sh)))
		if got := tree.Unable(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
		if !cmp.Equal(tree.User, sandbox.User{}) {
			t.Errorf("user %+v", tree.User)
		}
	}
}

// TestDamagedLayer: a layer that is not what the config says is not unpacked.
func TestDamagedLayer(t *testing.T) {
	d := layoutOf(t, app(t))
	found, _ := filepath.Glob(d + "/blobs/sha256/*")
	var largest string
	var size int64
	for _, f := range found {
		b, _ := os.ReadFile(f)
		if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) && int64(len(b)) > size {
			largest, size = f, int64(len(b))
		}
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(archive(t, reg("evil", "x")))
	if err := errors.Join(err, z.Close(), os.WriteFile(largest, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Builder{Cache: t.TempDir()}).Build(t.Context(), d); err == nil || !strings.Contains(err.Error(), "get the image again") {
		t.Error(err)
	}
}

func TestOwnImageHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Builder{Cache: t.TempDir()}).Build(ctx, layoutOf(t, app(t))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
