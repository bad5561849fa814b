package mountinfo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const in = `36 35 98:0 /mnt1 /mnt2\040with\134x rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue
37 35 0:44 / /a rw - tmpfs  rw
`
	got, err := Parse(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mount{
		{Root: "/mnt1", Point: `/mnt2 with\x`, FSType: "ext3", Source: "/dev/root", Super: []string{"rw", "errors=continue"}},
		{Root: "/", Point: "/a", FSType: "tmpfs", Source: "", Super: []string{"rw"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"\n",
		"36 35 98:0 / /a rw shared:1 tmpfs tmpfs rw\n",
		"36 35 98:0 / /a rw - tmpfs\n",
		"36 35 98:0 / a rw - tmpfs tmpfs rw\n",
		strings.Repeat("x", maxLine+1),
	} {
		if got, err := Parse(strings.NewReader(in)); err == nil {
			t.Errorf("Parse(%.60q) = %v, want an error", in, got)
		}
	}
}

func TestSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples:", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(strings.NewReader(string(text)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := strings.Count(string(text), "\n"); len(got) != want {
			t.Errorf("%s: %d mounts, want %d", name, len(got), want)
		}
	}
}

func TestUnder(t *testing.T) {
	for point, want := range map[string]bool{
		"/run/tare": true, "/run/tare/x": true, "/run/tarex": false, "/run": false,
	} {
		if got := (Mount{Point: point}).Under("/run/tare"); got != want {
			t.Errorf("%s under /run/tare: %v", point, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, in string) {
		mounts, err := Parse(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, m := range mounts {
			if !filepath.IsAbs(m.Point) {
				t.Errorf("relative mount point %q", m.Point)
			}
		}
	})
}
