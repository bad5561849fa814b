package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"tare/host/state"
)

func TestDirs(t *testing.T) {
	d := state.Dirs{Base: filepath.Join(t.TempDir(), "run")}
	for range 2 {
		path, err := d.Make("a")
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", path, st.Mode(), err)
		}
		if err := os.Chmod(path, 0o755); err != nil { // Make takes it back
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := d.Remove("a"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.Base, "a")); !os.IsNotExist(err) {
		t.Error("not removed:", err)
	}
}

func TestDirsRefuse(t *testing.T) {
	base := t.TempDir()
	d := state.Dirs{Base: base}
	target := t.TempDir()
	if err := os.WriteFile(filepath.Join(target, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := []string{"link", "file", "", ".", "..", "a/b", "../x"}
	if os.Geteuid() == 0 {
		if err := os.Mkdir(filepath.Join(base, "foreign"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(base, "foreign"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		bad = append(bad, "foreign")
	}
	for _, name := range bad {
		if path, err := d.Make(name); err == nil {
			t.Errorf("Make(%q) = %s", name, path)
		}
	}
	if err := d.Remove("link"); err == nil {
		t.Error("a link that tare did not make was removed")
	}
	if _, err := os.Stat(filepath.Join(target, "precious")); err != nil {
		t.Error("a link was followed:", err)
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if path, err := d.Make("b"); err == nil {
		t.Errorf("below a directory that all can write: %s", path)
	}
}
