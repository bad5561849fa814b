package image

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func makeWheel(t testing.TB, members map[string]string, set func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range members {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if set != nil {
			set(h)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestListWheel(t *testing.T) {
	b := makeWheel(t, map[string]string{
		"pkg/__init__.py":              "x = 1\n",
		"pkg-1.data/purelib/more.py":   "y",
		"pkg-1.data/scripts/tool":      "#!python -E\nprint()\n",
		"pkg-1.data/data/share/d.txt":  "d",
		"pkg-1.data/headers/pkg.h":     "h",
		"pkg-1.dist-info/METADATA":     "m",
		"pkg-1.data/scripts/native.sh": "#!/bin/sh\n",
	}, nil)
	members, err := listWheel(bytes.NewReader(b), int64(len(b)), "/site")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range members {
		r, err := m.file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(m.content(r))
		if err != nil {
			t.Fatal(err)
		}
		got[m.to] = m.mode.String() + " " + string(text)
	}
	want := map[string]string{
		"/site/pkg/__init__.py":          "-rw-r--r-- x = 1\n",
		"/site/more.py":                  "-rw-r--r-- y",
		"/usr/local/bin/tool":            "-rwxr-xr-x #!/usr/bin/python3\nprint()\n",
		"/usr/local/share/d.txt":         "-rw-r--r-- d",
		"/site/pkg-1.dist-info/METADATA": "-rw-r--r-- m",
		"/usr/local/bin/native.sh":       "-rwxr-xr-x #!/bin/sh\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDamagedMember: a flipped byte fails, however the member is stored.
func TestDamagedMember(t *testing.T) {
	const text = "the text of a member, which is long enough to find"
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		for _, name := range []string{"pkg/a.py", "pkg-1.data/scripts/tool"} {
			b := makeWheel(t, map[string]string{name: text}, func(h *zip.FileHeader) { h.Method = method })
			z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			at, err := z.File[0].DataOffset()
			if err != nil {
				t.Fatal(err)
			}
			unpack := func() error {
				file := filepath.Join(t.TempDir(), "a.whl")
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
				return newTestUnpacker(t).wheel(file, "/site")
			}
			if err := unpack(); err != nil {
				t.Errorf("method %d, %s, whole: %v", method, name, err)
			}
			b[at+int64(z.File[0].CompressedSize64)/2] ^= 1
			if err := unpack(); err == nil {
				t.Errorf("method %d, %s: a flipped byte was not noticed", method, name)
			}
		}
	}
}

// TestWheelHash: any of the hashes is right, no other, and none at all takes
// what there is.
func TestWheelHash(t *testing.T) {
	sum := func(c string) string { return strings.Repeat(c, 64) }
	for _, c := range []struct {
		pinned []string
		ok     bool
	}{{nil, true}, {[]string{sum("a")}, true}, {[]string{sum("b"), sum("a")}, true}, {[]string{sum("b"), sum("c")}, false}} {
		if err := (Wheel{Name: "x", Version: "1", SHA256: c.pinned}).check(sum("a")); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.pinned, err)
		}
	}
}

func TestListWheelRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"../evil.py":   makeWheel(t, map[string]string{"../evil.py": "x"}, nil),
		".":            makeWheel(t, map[string]string{".": "x"}, nil),
		"/etc/passwd":  makeWheel(t, map[string]string{"/etc/passwd": "x"}, nil),
		"a\\..\\b":     makeWheel(t, map[string]string{"a\\..\\b": "x"}, nil),
		"a link":       makeWheel(t, map[string]string{"l": "/etc/passwd"}, func(h *zip.FileHeader) { h.SetMode(0o777 | 1<<27) }),
		"a zip bomb":   makeWheel(t, map[string]string{"z": strings.Repeat("\x00", 8<<20)}, nil),
		"not a wheel":  []byte("PK\x03\x04 no"),
		"an empty one": nil,
	} {
		if _, err := listWheel(bytes.NewReader(b), int64(len(b)), "/site"); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzWheel(f *testing.F) {
	f.Add(makeWheel(f, map[string]string{"pkg/a.py": "x", "pkg-1.data/scripts/t": "#!python\n"}, nil))
	f.Add(makeWheel(f, map[string]string{"../evil": "x"}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		members, err := listWheel(bytes.NewReader(b), int64(len(b)), "/site")
		if err != nil {
			return
		}
		for _, m := range members {
			if !strings.HasPrefix(m.to, "/site/") && !strings.HasPrefix(m.to, "/usr/local/") || strings.Contains(m.to, "/../") {
				t.Errorf("%q goes to %q", m.file.Name, m.to)
			}
		}
	})
}

func TestPipError(t *testing.T) {
	for said, want := range map[string]string{
		"WARNING: Retrying ... NewConnectionError('...')\nERROR: Could not find a version\nERROR: No matching distribution found for x==1": "cannot reach the package index",
		"ERROR: Could not find a version that satisfies\nERROR: No matching distribution found for six==99":                                "has no such wheel",
		"OSError: [Errno 28] No space left on device": "disk is full",
	} {
		if err := pipError(said, io.EOF); !strings.Contains(err.Error(), want) {
			t.Errorf("%q becomes %v", said, err)
		}
	}
}
