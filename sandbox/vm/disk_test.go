package vm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// TestDiskOptions: an encrypted disk, or one with a thread, is a disk, and its machine is not saved.
func TestDiskOptions(t *testing.T) {
	k := New(Config{})
	for name, c := range map[string]struct {
		options map[string]string
		why     string
	}{
		"both":             {map[string]string{"rootfs": "block", "disk": "luks", "io_threads": "1"}, ""},
		"luks on virtiofs": {map[string]string{"disk": "luks"}, "disk = luks: with rootfs = virtiofs"},
		"thread, virtiofs": {map[string]string{"io_threads": "1"}, "io_threads = 1: with rootfs = virtiofs"},
		"saved":            {map[string]string{"rootfs": "block", "disk": "luks", "start": "snapshot"}, "write start: boot"},
		"too many":         {map[string]string{"rootfs": "block", "io_threads": "17"}, "io_threads"},
		"copy, virtiofs":   {map[string]string{"root_disk": "copy"}, "root_disk = copy: with rootfs = virtiofs, the root is not a disk; write rootfs: block"},
		"native, cached":   {map[string]string{"disk_aio": "native"}, "disk_aio = native needs disk_cache = none"},
	} {
		o, err := k.read(sandbox.Spec{Want: sandbox.Want{Options: c.options}}, 4)
		switch {
		case c.why == "" && (err != nil || !o.luks || o.threads != 1):
			t.Errorf("%s: %+v, %v", name, o, err)
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

// TestDiskLine: the thread and the key are there before the disk that names them.
func TestDiskLine(t *testing.T) {
	l := &line{}
	l.disk(disk{serial: "data", path: "/d", luks: true, threads: []int{0}})
	text := strings.Join(l.args, " ")
	at := -1
	for _, s := range []string{"-object " + secret, `"driver":"luks"`, "-object iothread,id=io0", `"iothread":"io0"`} {
		next := strings.Index(text, s)
		if next <= at {
			t.Fatalf("%q is missing, or too early, in %s", s, text)
		}
		at = next
	}
	if !strings.Contains(text, `"key-secret":"key0"`) {
		t.Errorf("no key in %s", text)
	}
	l = &line{}
	l.disk(disk{serial: "data", path: "/d"})
	if text := strings.Join(l.args, " "); strings.Contains(text, "io0") || strings.Contains(text, "key0") || !strings.Contains(text, `"driver":"raw"`) {
		t.Errorf("a raw disk: %s", text)
	}
}

// TestCopySparse: the same bytes, and no more of them on the disk.
func TestCopySparse(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	const size = 64 << 20
	want := make([]byte, size)
	f, err := os.Create(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 5 << 20, size - 4096} {
		data := bytes.Repeat([]byte{byte(at>>20) + 1}, 4096)
		copy(want[at:], data)
		if _, err := f.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := copySparse(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the copy differs")
	}
	var a, b unix.Stat_t
	if err := unix.Stat(from, &a); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(to, &b); err != nil {
		t.Fatal(err)
	}
	if a.Blocks < size/512/2 && b.Blocks > size/512/2 {
		t.Errorf("%d blocks of the disk became %d", a.Blocks, b.Blocks)
	}
	if err := copySparse(t.Context(), from, to); err == nil {
		t.Error("a file that is there is written over")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := copySparse(ended, from, to+"2"); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for it any more: %v", err)
	}
}
