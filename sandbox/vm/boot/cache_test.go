package boot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/host/image"
	"tare/internal/tinyelf"
)

// testCache has a kernel of the user's and the smallest program.
func testCache(t *testing.T) *Cache {
	t.Helper()
	dir := t.TempDir()
	lib := filepath.Join(dir, "root", "lib", "modules", "6.1.0-9")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lib), 0o755), os.Rename(tree(t, ""), lib), os.Mkdir(filepath.Join(dir, "root", "boot"), 0o755)); err != nil {
		t.Fatal(err)
	}
	program, err := tinyelf.Hello()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cache{Dir: filepath.Join(dir, "cache"), Self: filepath.Join(dir, "tare"), Kernel: filepath.Join(dir, "root")}
	if err := errors.Join(os.WriteFile(c.Self, program, 0o755), os.WriteFile(filepath.Join(dir, "root/boot/vmlinuz-6.1.0-9"), []byte("kernel"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGetOfAUsersKernel: by its tree or its file, the same; made once.
func TestGetOfAUsersKernel(t *testing.T) {
	c := testCache(t)
	f, err := c.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Version != "6.1.0-9" || !strings.HasSuffix(f.Package, "boot/vmlinuz-6.1.0-9") {
		t.Errorf("%+v", f)
	}
	if want := filepath.Join(c.Kernel, "boot/vmlinuz-6.1.0-9") + ", as TARE_GUEST_KERNEL names it"; f.Origin() != want {
		t.Errorf("%q, want %q", f.Origin(), want)
	}
	packaged := Files{Kernel: "/c/vmlinuz", Package: "linux-image-6.1=6.1.2-1"}
	if got, want := packaged.Origin(), "/c/vmlinuz, of linux-image-6.1=6.1.2-1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	before, err := os.Stat(f.Initramfs)
	if err != nil || before.Mode().Perm() != 0o644 {
		t.Fatalf("%v %v", before, err)
	}
	other := &Cache{Dir: c.Dir, Self: c.Self, Kernel: filepath.Join(c.Kernel, "boot/vmlinuz-6.1.0-9")}
	g, ok, err := other.Find()
	if err != nil || !ok || g != f {
		t.Errorf("by its file: %+v %v %v", g, ok, err)
	}
	if after, err := os.Stat(f.Initramfs); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("made again: %v", err)
	}
	// Another program is another combination.
	if err := os.WriteFile(c.Self+"2", append(mustRead(t, c.Self), 0), 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := (&Cache{Dir: c.Dir, Self: c.Self + "2", Kernel: c.Kernel}).Get(t.Context())
	if err != nil || h.Digest == f.Digest {
		t.Errorf("%+v %v", h, err)
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGetByManyAtOnce: processes that know nothing of each other get whole files.
func TestGetByManyAtOnce(t *testing.T) {
	c := testCache(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			f, err := (&Cache{Dir: c.Dir, Self: c.Self, Kernel: c.Kernel}).Get(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := os.ReadFile(f.Kernel); err != nil || string(b) != "kernel" {
				t.Errorf("%q %v", b, err)
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestPrune: the last used stay, and what may be in use.
func TestPrune(t *testing.T) {
	c := testCache(t)
	f, err := c.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ages := map[string]time.Duration{
		"a": 2 * time.Hour, "b": 3 * time.Hour, "c": 4 * time.Hour, "d": 5 * time.Hour, "young": time.Minute,
		makingPrefix + "old": 2 * time.Hour, makingPrefix + "now": time.Minute,
	}
	for name, age := range ages {
		p, at := filepath.Join(c.Dir, name), time.Now().Add(-age)
		if err := errors.Join(os.Mkdir(p, 0o755), os.Chtimes(p, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		f.Digest: true, "young": true, "a": true, "b": true, "c": false, "d": false, makingPrefix + "old": false, makingPrefix + "now": true,
	} {
		if _, err := os.Stat(filepath.Join(c.Dir, name)); (err == nil) != stays {
			t.Errorf("%s: stays is %t, want %t", name, err == nil, stays)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	c := testCache(t)
	empty := t.TempDir()
	for kernel, want := range map[string]string{
		filepath.Join(empty, "none"): "no such file",
		empty:                        "does not contain boot/vmlinuz-VERSION",
		c.Self:                       "name the file vmlinuz-VERSION",
	} {
		_, err := (&Cache{Dir: c.Dir, Self: c.Self, Kernel: kernel}).Get(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), KernelVariable) {
			t.Errorf("%s: %v", kernel, err)
		}
	}
	local := &Cache{Images: &image.Builder{Cache: empty}, Dir: c.Dir, Self: c.Self, Local: true}
	if _, err := local.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "tare image build guest-kernel") {
		t.Errorf("local: %v", err)
	}
	if _, ok, _ := local.Find(); ok {
		t.Error("a kernel was found in an empty cache")
	}
}

// TestUsersKernelIsReadOnce: and again where its files changed.
func TestUsersKernelIsReadOnce(t *testing.T) {
	c := testCache(t)
	f, err := c.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.user.digest = "as it was read" // not read again
	if g, err := c.Get(t.Context()); err != nil || g.Digest == f.Digest {
		t.Errorf("%+v %v", g, err)
	}
	file := filepath.Join(c.Kernel, "boot/vmlinuz-6.1.0-9")
	if err := os.WriteFile(file, []byte("another kernel"), 0o644); err != nil {
		t.Fatal(err)
	}
	if g, err := c.Get(t.Context()); err != nil || c.user.digest == "as it was read" || g.Digest == f.Digest {
		t.Errorf("another kernel: %+v %v", g, err)
	}
}
