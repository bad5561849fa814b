package image

import (
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseURIs(t *testing.T) {
	f, err := os.Open("testdata/print-uris.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	debs, err := parseURIs(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range debs {
		got = append(got, d.name()+"="+d.version())
		if d.Size <= 0 || len(d.SHA256) != 64 {
			t.Errorf("%+v", d)
		}
	}
	// As grep and cut read the captured text.
	want := []string{"gcc-12-base=12.2.0-14+deb12u1", "libgcc-s1=12.2.0-14+deb12u1", "libc6=2.36-9+deb12u14", "libssl3=3.0.22-1~deb12u2", "zlib1g=1:1.2.13.dfsg-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAptError(t *testing.T) {
	for said, want := range map[string]string{
		"E: Unable to locate package nosuch":                                                             "apt-get update, or correct the list packages",
		"E: Package 'x' has no installation candidate":                                                   "no such package",
		"E: Failed to fetch http://d/x.deb  404  Not Found [IP: ::1 80]":                                 "run apt-get update, then try again",
		"E: Failed to fetch http://d/x.deb  Temporary failure resolving 'd'":                             "reaches its package archive",
		"E: Failed to fetch http://d/x_4.404.deb  Could not connect to d:80":                             "reaches its package archive",
		"E: Failed to fetch http://d/x.deb  Hash Sum mismatch":                                           "run apt-get update, then try again",
		"E: Failed to fetch http://d/x.deb  Error writing to file - write (28: No space left on device)": "the disk is full",
		"E: You don't have enough free space in /var/cache/apt/archives/.":                               "the disk is full",
		"E: Unable to correct problems, you have held broken packages.":                                  "cannot be installed together",
		"W: something\nE: Sub-process returned an error code":                                            "apt-get failed: Sub-process",
		"": "apt-get failed: EOF",
	} {
		if err := aptError(said, io.EOF); !strings.Contains(err.Error(), want) {
			t.Errorf("%q becomes %v", said, err)
		}
	}
}

func FuzzURIs(f *testing.F) {
	if b, err := os.ReadFile("testdata/print-uris.txt"); err == nil {
		f.Add(string(b))
	}
	f.Add("'file:///x' ../../x.deb 1 SHA256:" + strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, text string) {
		debs, err := parseURIs(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, d := range debs {
			if strings.Contains(d.File, "/") || d.Size < 0 || !strings.HasSuffix(d.File, ".deb") {
				t.Errorf("%+v was accepted", d)
			}
		}
	})
}

// TestListsOfTheDistribution: a vendor's archive is left out.
func TestListsOfTheDistribution(t *testing.T) {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		t.Skip("this host has no /etc/os-release")
	}
	defer f.Close()
	ids := releaseField(f, "ID=")
	if len(ids) != 1 {
		t.Skip("this host does not name its distribution")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"d.org_dists_a_InRelease":                                   "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: " + strings.ToUpper(ids[0]) + "\n",
		"d.org_dists_a_main_binary-" + runtime.GOARCH + "_Packages": "",
		"v.org_dists_n_InRelease":                                   "Origin: . nodistro\n",
		"v.org_dists_n_main_binary-amd64_Packages":                  "",
		"lock": "",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := apt{host: dir}.lists()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{dir + "/d.org_dists_a_InRelease", dir + "/d.org_dists_a_main_binary-" + runtime.GOARCH + "_Packages"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(dir + "/d.org_dists_a_InRelease"); err != nil {
		t.Fatal(err)
	}
	if got, err := (apt{host: dir}).lists(); err != nil || len(got) != 3 {
		t.Errorf("none is known to be the distribution's: %v %v; want all", got, err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(dir+"/d.org_dists_a_main_binary-vax_Packages", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (apt{host: dir}).lists(); err == nil || !strings.Contains(err.Error(), "not for "+runtime.GOARCH) {
		t.Errorf("the lists are of another processor: %v", err)
	}
}
