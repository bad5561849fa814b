package spawn

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/state/statetest"
)

// TestMountOverlay: what a process writes to the tree is below upper, and the
// host, which the test is, sees neither mount nor file.
func TestMountOverlay(t *testing.T) {
	statetest.HostLock(t)
	root, upper := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch := exec.Command("/bin/sh", "-c", `echo new > "$0/new" && rm "$0/old"`, root)
	p, err := Start(Options{Private: true, Prepare: func() error { return MountOverlay(root, upper) }}, touch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "new")); err == nil {
		t.Error("the tree was written to")
	}
	if b, err := os.ReadFile(filepath.Join(root, "old")); err != nil || string(b) != "old" {
		t.Errorf("the tree has lost a file: %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(upper, overlayLayer, "new")); err != nil || string(b) != "new\n" {
		t.Errorf("the upper layer has %q: %v", b, err)
	}
	if err := EmptyOverlay(upper); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(upper); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// proc cannot be an upper layer: the error says what can.
	_, err = Start(Options{Private: true, Prepare: func() error { return MountOverlay(root, "/proc") }}, exec.Command("/bin/true"))
	if err == nil || !strings.Contains(err.Error(), "upper layer") {
		t.Errorf("an upper layer on proc gives %v", err)
	}
}
