package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// applied unpacks layers and returns what is there: names, with contents of files and targets of
// links.
func applied(t *testing.T, layers ...[]byte) (tree map[string]string, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := newApplier(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, l := range layers {
		if err := a.layer(bytes.NewReader(l)); err != nil {
			return nil, err
		}
	}
	return contents(t, dir), nil
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		switch {
		case d.IsDir():
			tree[rel] = "/"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			tree[rel] = "-> " + to
			return err
		default:
			b, err := os.ReadFile(p)
			tree[rel] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// layered are images whose layers change what is below them, and what comes of it.
func layered(t *testing.T) map[string]struct {
	layers [][]byte
	want   map[string]string
} {
	type files = map[string]string
	return map[string]struct {
		layers [][]byte
		want   map[string]string
	}{
		"a whiteout": {
			[][]byte{archive(t, dir("d"), reg("d/a", "1"), reg("d/b", "1")), archive(t, reg("d/.wh.a", ""))},
			files{"d": "/", "d/b": "1"},
		},
		"a whiteout of a folder": {
			[][]byte{archive(t, dir("d"), reg("d/a", "1"), reg("x", "1")), archive(t, reg(".wh.d", ""))},
			files{"x": "1"},
		},
		"a whiteout of nothing": {
			[][]byte{archive(t, reg("x", "1")), archive(t, reg("no/such/.wh.d", ""), reg(".wh.y", ""))},
			files{"x": "1"},
		},
		"a whiteout spares its own layer": {
			[][]byte{archive(t, dir("d"), reg("d/a", "1"), reg("d/b", "1")), archive(t, dir("d"), reg("d/a", "2"), reg(".wh.d", ""))},
			files{"d": "/", "d/a": "2"},
		},
		"an opaque folder, marked first": {
			[][]byte{archive(t, dir("d/e"), reg("d/a", "1"), reg("d/e/b", "1"), reg("x", "1")), archive(t, dir("d"), reg("d/.wh..wh..opq", ""), reg("d/c", "2"))},
			files{"d": "/", "d/c": "2", "x": "1"},
		},
		"an opaque folder, marked last": {
			[][]byte{archive(t, dir("d/e"), reg("d/a", "1"), reg("d/e/b", "1")), archive(t, dir("d"), dir("d/e"), reg("d/e/c", "2"), reg("d/.wh..wh..opq", ""))},
			files{"d": "/", "d/e": "/", "d/e/c": "2"},
		},
		"marks of aufs": {
			[][]byte{archive(t, reg(".wh..wh.plnk", ""), reg("x", "1"))},
			files{"x": "1"},
		},
		"a file for a folder, and back": {
			[][]byte{archive(t, dir("d"), reg("d/a", "1"), reg("f", "1")), archive(t, reg("d", "2"), dir("f"), reg("f/a", "2"))},
			files{"d": "2", "f": "/", "f/a": "2"},
		},
		"a folder for a link": {
			[][]byte{archive(t, dir("d"), reg("d/a", "1"), link("l", "d")), archive(t, dir("l"), reg("l/b", "2"))},
			files{"d": "/", "d/a": "1", "l": "/", "l/b": "2"},
		},
		"through links, as the image sees them": {
			[][]byte{archive(t, dir("run"), dir("usr/lib"), link("lib", "usr/lib"), dir("var"), link("var/run", "/run"), link("up", "../../../usr")), archive(t, reg("var/run/a", "2"), reg("lib/b", "2"), reg("up/c", "2"), reg("lib/.wh.b", ""))},
			files{"run": "/", "run/a": "2", "usr": "/", "usr/lib": "/", "usr/lib/b": "2", "usr/c": "2", "lib": "-> usr/lib", "var": "/", "var/run": "-> /run", "up": "-> ../../../usr"},
		},
		"a file is replaced, its other name stays": {
			[][]byte{archive(t, reg("a", "1"), hard("b", "a")), archive(t, reg("a", "2"))},
			files{"a": "2", "b": "1"},
		},
		"a hard link to a lower layer": {
			[][]byte{archive(t, dir("d"), reg("d/a", "1"), link("e", "/d")), archive(t, hard("b", "/e/a"), hard("d/a", "d/a"))},
			files{"d": "/", "d/a": "1", "e": "-> /d", "b": "1"},
		},
		"devices in /dev": {
			[][]byte{archive(t, dir("dev"), member("dev/null", tar.TypeChar, ""), member("dev/initctl", tar.TypeFifo, ""))},
			files{"dev": "/"},
		},
	}
}

func TestLayers(t *testing.T) {
	for name, c := range layered(t) {
		got, err := applied(t, c.layers...)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v, -want +got\n%s", name, err, d)
		}
	}
}

// TestLayersAsPodman: podman unpacks the same, with the same owners and modes.
func TestLayersAsPodman(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a storage of its own")
	}
	var all [][]byte
	for _, name := range []string{"a whiteout", "an opaque folder, marked first", "a file for a folder, and back", "a folder for a link", "a file is replaced, its other name stays"} {
		all = append(all, layered(t)[name].layers...)
		all = append(all, archive(t, reg(".wh.f", ""), reg(".wh.l", "")))
	}
	all = append(all, archive(t, dir("own/", owned(7, 8, 0o2751)), reg("own/er", "x", owned(9, 10, 0o604)), dir("sticky/", owned(0, 0, 0o1777)), link("own/li", "er")))
	img := imageOf(t, v1.Config{Cmd: []string{"/x"}}, all...)
	from := layoutOf(t, img, layout.WithAnnotations(map[string]string{annotationContainerd: "localhost/tare/layers:1"}))
	tarred := filepath.Join(t.TempDir(), "layers.tar")
	must(t, "tar", "-C", from, "-cf", tarred, ".")
	d := t.TempDir()
	podman := []string{"podman", "--root", d + "/root", "--runroot", d + "/run", "--tmpdir", d + "/tmp", "--storage-driver", "vfs"}
	must(t, append(podman, "load", "-q", "-i", tarred)...)
	at := strings.TrimSpace(must(t, append(podman, "image", "mount", "localhost/tare/layers:1")...))
	defer func() { must(t, append(podman, "image", "umount", "-a")...) }()
	tree := mustBuild(t, &Builder{Cache: t.TempDir()}, tarred)
	want, got := stats(t, at), stats(t, tree.Path)
	for _, made := range []string{"proc", "sys", "dev", "data", "tmp", "etc", "etc/passwd", "etc/group", "etc/hosts", "etc/nsswitch.conf"} {
		delete(got, made)
	}
	if d := cmp.Diff(want, got); d != "" || len(want) < 8 {
		t.Errorf("-podman +tare\n%s", d)
	}
}

// stats has what stat(1) says of every entry.
func stats(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, what := range contents(t, dir) {
		format := "%A %u:%g %h %Y "
		if what == "/" {
			format = "%A %u:%g %Y "
		}
		out[name] = must(t, "stat", "-c", format, filepath.Join(dir, name)) + what
	}
	return out
}

func TestLayersRefuse(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for want, members := range map[string][]tar.Header{
		`"../evil" points outside`:                            {reg("../evil", "x")},
		`"a/../../evil" points outside`:                       {reg("a/../../evil", "x")},
		"it is a link to ":                                    {link("l", "")},
		"it is a link to etc/passwd":                          {hard("h", "/etc/passwd")},
		`"../../../../etc/passwd" points outside`:             {hard("h", "../../../../etc/passwd")},
		"it is a link to d, which is not a file of the image": {dir("d"), hard("h", "d")},
		"it is a device":                                      {member("sda", tar.TypeBlock, "")},
		"which an image may contain only in /dev":             {member("dev/x/p", tar.TypeFifo, "")},
		"too many levels of symbolic links":                   {link("a", "b"), link("b", "a"), reg("a/x", "")},
		"/f is not a folder":                                  {reg("f", ""), reg("f/x", "")},
		"its owner":                                           {reg("f", "", owned(1<<40, 0, 0))},
		"a folder that contains it":                           {reg("d/.wh...", "")},
		"unknown type":                                        {member("f", 'Z', "")},
	} {
		if _, err := applied(t, archive(t, members...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// What an absolute link leads to is in the tree, whatever is there on the host.
	got, err := applied(t, archive(t, link("l", out), reg("l/evil", "x"), hard("l/e", "l/evil"), reg("l/.wh.x", ""), dir("l/d")))
	if left, _ := os.ReadDir(out); err != nil || len(left) > 0 || got[strings.TrimPrefix(out, "/")+"/evil"] != "x" {
		t.Errorf("%v, outside: %v, in the tree: %v", err, left, got)
	}
}

// TestBombs: what is too much ends, without filling the disk.
func TestBombs(t *testing.T) {
	a, err := newApplier(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	a.bytes = maxBytes - 3
	if err := a.layer(bytes.NewReader(archive(t, reg("a", "1234")))); err == nil {
		t.Error("a tree beyond the bound was unpacked")
	}
	a.bytes, a.files = 0, maxFiles-10
	if err := a.layer(bytes.NewReader(archive(t, reg(strings.Repeat("d/", 20)+"f", "")))); err == nil {
		t.Error("folders beyond the bound were made")
	}
}

// FuzzLayers: nothing is written beside the tree, and no device or set-user-ID program in it.
func FuzzLayers(f *testing.F) {
	f.Add(byte(tar.TypeSymlink), "l", "/", byte(tar.TypeReg), "l/evil", "", byte(tar.TypeReg), "l/.wh.evil", "", int64(0o4755))
	f.Add(byte(tar.TypeSymlink), "a/l", "../../x", byte(tar.TypeDir), "a/l/evil/", "", byte(tar.TypeReg), ".wh..wh..opq", "", int64(0o1777))
	f.Add(byte(tar.TypeReg), "a", "", byte(tar.TypeLink), "h", "a", byte(tar.TypeSymlink), "a", "h/../..", int64(0o2000))
	f.Add(byte(tar.TypeDir), "var/mail/", "", byte(tar.TypeReg), "var/mail/x", "", byte(tar.TypeDir), "var/", "", int64(0o2775)) // as Debian has it
	top := f.TempDir()
	f.Fuzz(func(t *testing.T, type1 byte, name1, link1 string, type2 byte, name2, link2 string, type3 byte, name3, link3 string, mode int64) {
		var layers [2]bytes.Buffer
		one, two := tar.NewWriter(&layers[0]), tar.NewWriter(&layers[1])
		for i, h := range []tar.Header{{Typeflag: type1, Name: name1, Linkname: link1}, {Typeflag: type2, Name: name2, Linkname: link2}, {Typeflag: type3, Name: name3, Linkname: link3}} {
			h.Mode = mode
			if [...]*tar.Writer{one, one, two}[i].WriteHeader(&h) != nil {
				return
			}
		}
		if one.Close() != nil || two.Close() != nil {
			return
		}
		tree := filepath.Join(top, "tree")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = removeAll(tree) }()
		a, err := newApplier(tree)
		if err != nil {
			t.Fatal(err)
		}
		defer a.close()
		for i := range layers {
			_ = a.layer(&layers[i])
		}
		if a.finish() == nil {
			_ = a.adopt(&Tree{}, v1.Config{WorkingDir: link1, User: name1, Cmd: []string{name2}})
		}
		unharmed(t, top, tree)
	})
}

// FuzzIndex: what lists images is only read.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:`+strings.Repeat("a", 64)+`","platform":{"os":"linux","architecture":"amd64"}}]}`), "x")
	f.Add([]byte(`[{"Config":"x","RepoTags":["a:b"],"Layers":["../x"]}]`), "b")
	f.Fuzz(func(t *testing.T, text []byte, tag string) {
		d := t.TempDir()
		for _, name := range []string{"index.json", "manifest.json"} {
			if err := os.WriteFile(filepath.Join(d, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(d)
			if err != nil {
				t.Fatal(err)
			}
			b := folder{root}
			if img, err := inLayout(b, tag); err == nil && len(img.layers) > 0 {
				_, _ = img.layers[0]()
			}
			_ = os.Remove(filepath.Join(d, name))
			_ = b.Close()
		}
	})
}
