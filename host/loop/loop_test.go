package loop

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAttach: what is written to the device is in the file, and a closed device is free.
func TestAttach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has loop devices")
	}
	path := filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Attach(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.f.WriteAt([]byte("written"), 4096); err != nil {
		t.Error(err)
	}
	if err := d.f.Sync(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b[4096:4103], []byte("written")) {
		t.Errorf("%q, %v", b[4096:4103], err)
	}
	backing := filepath.Join("/sys/block", filepath.Base(d.Path), "loop/backing_file")
	if b, err := os.ReadFile(backing); err != nil || strings.TrimSpace(string(b)) != path {
		t.Errorf("%s: %q, %v", backing, b, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(backing); err != nil || strings.TrimSpace(string(b)) != path {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the device is not free")
		}
	}
}

func TestAttachNothing(t *testing.T) {
	if d, err := Attach(filepath.Join(t.TempDir(), "no"), false); err == nil {
		t.Errorf("%+v", d)
	}
}

// TestAttachAfterReadOnly: a device that its last user left read-only can be written to.
func TestAttachAfterReadOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has loop devices")
	}
	path := filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	left := ""
	for range 20 { // another program may take the device first
		d, err := Attach(path, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.f.WriteAt([]byte("x"), 0); err != nil {
			t.Errorf("%s: %v", d.Path, err)
		}
		again := d.Path == left
		left = d.Path
		if !again {
			err = unix.IoctlSetPointerInt(int(d.f.Fd()), unix.BLKROSET, 1)
		}
		if err := errors.Join(err, d.Close()); err != nil {
			t.Fatal(err)
		}
		if again {
			return
		}
	}
	t.Skip("no device was free twice in a row")
}
