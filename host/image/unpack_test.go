package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func newTestUnpacker(t testing.TB) *unpacker {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	u, err := newUnpacker(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.close)
	if err := u.base(); err != nil {
		t.Fatal(err)
	}
	return u
}

func archive(t testing.TB, members ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range members {
		content := h.Uname // where the tests put it
		h.Uname = ""
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTarUnpacks(t *testing.T) {
	u := newTestUnpacker(t)
	err := u.tar(bytes.NewReader(archive(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./lib/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./lib/x.so.1", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "one"},
		tar.Header{Name: "./usr/lib/x.so", Typeflag: tar.TypeSymlink, Linkname: "x.so.1"},
		tar.Header{Name: "./usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o6755, Uname: "su"},
		tar.Header{Name: "./usr/bin/hard", Typeflag: tar.TypeLink, Linkname: "./usr/bin/su"},
		tar.Header{Name: "./etc/alternatives/a", Typeflag: tar.TypeSymlink, Linkname: "/usr/bin/su"},
		tar.Header{Name: "./usr/share/man/man1/x.1", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/share/doc/x/copyright", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "c"},
		tar.Header{Name: "./usr/share/doc/x/changelog", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./lib/x.so.1", Typeflag: tar.TypeReg, Mode: 0o444, Uname: "two"},
	)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"usr/lib/x.so": "two", "lib/x.so.1": "two", "usr/bin/hard": "su", "usr/share/doc/x/copyright": "c"} {
		if b, err := os.ReadFile(filepath.Join(u.dir, name)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
	if st, err := os.Stat(filepath.Join(u.dir, "usr/bin/su")); err != nil || st.Mode() != 0o755 {
		t.Errorf("su has the mode %v, %v; set-user-ID must go", st.Mode(), err)
	}
	for _, name := range []string{"usr/share/man/man1/x.1", "usr/share/doc/x/changelog"} {
		if _, err := os.Lstat(filepath.Join(u.dir, name)); err == nil {
			t.Errorf("%s was not left out", name)
		}
	}
}

func TestTarRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, members := range map[string][]tar.Header{
		"a name that leads out":      {{Name: "../evil", Typeflag: tar.TypeReg}},
		"a name that leads out far":  {{Name: "a/../../evil", Typeflag: tar.TypeReg}},
		"a link that leads out":      {{Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "../../x"}},
		"a file through a link":      {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: out}, {Name: "l/evil", Typeflag: tar.TypeReg, Uname: "x"}},
		"a folder through a link":    {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: out}, {Name: "l/evil/", Typeflag: tar.TypeDir}},
		"a hard link to the outside": {{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../../../../../etc/passwd"}},
		"a hard link to nothing":     {{Name: "h", Typeflag: tar.TypeLink, Linkname: "/no/such"}},
		"a device":                   {{Name: "dev/sda", Typeflag: tar.TypeBlock, Devmajor: 8}},
		"a pipe":                     {{Name: "p", Typeflag: tar.TypeFifo}},
		"a file on a folder":         {{Name: "usr/bin", Typeflag: tar.TypeReg}},
	} {
		u := newTestUnpacker(t)
		if err := u.tar(bytes.NewReader(archive(t, members...))); err == nil {
			t.Errorf("%s was accepted", name)
		}
		if left, _ := os.ReadDir(out); len(left) > 0 {
			t.Fatalf("%s: something was written outside: %v", name, left)
		}
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	u := newTestUnpacker(t)
	u.bytes = maxBytes - 3
	if err := u.file("/a", 0o644, strings.NewReader("1234")); err == nil {
		t.Error("a tree beyond the bound was accepted")
	}
	u.bytes, u.files = 0, maxFiles
	if err := u.symlink("/b", "a"); err == nil {
		t.Error("an entry beyond the bound was accepted")
	}
}

func FuzzTar(f *testing.F) {
	f.Add(archive(f, tar.Header{Name: "./lib/x", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "x"}, tar.Header{Name: "a/b", Typeflag: tar.TypeSymlink, Linkname: "../lib/x"}))
	f.Add(archive(f, tar.Header{Name: "../evil", Typeflag: tar.TypeReg}))
	top := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		// The checksum of a header rejects nearly all inputs. Only the others get a tree.
		if _, err := tar.NewReader(bytes.NewReader(data)).Next(); err == nil {
			unpacked(t, top, data)
		}
	})
}

// FuzzMembers has two members with valid headers: the second may go through the first.
func FuzzMembers(f *testing.F) {
	f.Add(byte(tar.TypeSymlink), "l", "/", int64(0o777), byte(tar.TypeReg), "l/evil", "", int64(0o4755))
	f.Add(byte(tar.TypeSymlink), "a/l", "../../x", int64(0o777), byte(tar.TypeDir), "a/l/evil/", "", int64(0o1777))
	f.Add(byte(tar.TypeReg), "./lib/x", "", int64(0o644), byte(tar.TypeLink), "h", "../../etc/passwd", int64(0))
	top := f.TempDir()
	f.Fuzz(func(t *testing.T, type1 byte, name1, link1 string, mode1 int64, type2 byte, name2, link2 string, mode2 int64) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []tar.Header{{Typeflag: type1, Name: name1, Linkname: link1, Mode: mode1}, {Typeflag: type2, Name: name2, Linkname: link2, Mode: mode2}} {
			if w.WriteHeader(&h) != nil {
				return
			}
		}
		if w.Close() == nil {
			unpacked(t, top, b.Bytes())
		}
	})
}

// unpacked unpacks an archive into a tree below top. It checks that nothing is beside the
// tree, and that no file in it has a dangerous mode.
func unpacked(t *testing.T, top string, data []byte) {
	t.Helper()
	dir := filepath.Join(top, "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	u, err := newUnpacker(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	_ = u.tar(bytes.NewReader(data))
	unharmed(t, top, dir)
}

// unharmed checks that the tree is all that is below top, and that it has no dangerous mode. The
// set-group-ID bit of a directory is harmless: new files get its group (inode(7)).
func unharmed(t *testing.T, top, dir string) {
	t.Helper()
	beside, err := os.ReadDir(top)
	if err != nil || len(beside) != 1 {
		t.Fatalf("beside the tree: %v, %v", beside, err)
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && (info.Mode()&(fs.ModeSetuid|fs.ModeDevice|fs.ModeNamedPipe) != 0 || !d.IsDir() && info.Mode()&fs.ModeSetgid != 0) {
			t.Errorf("%s has the mode %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
