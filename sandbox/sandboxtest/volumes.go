package sandboxtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/ext4"
	"tare/host/rootfs"
	"tare/sandbox"
	"tare/volume"
)

// volumes: a sandbox has each of its volumes where volume.Path says; what it writes to one is
// on the host and in no other. A second sandbox finds what the first one left.
func (s *suite) volumes(t *testing.T) {
	spec := s.spec(t)
	dir := t.TempDir()
	scratch, image, disk := filepath.Join(dir, "scratch"), filepath.Join(dir, "image.raw"), filepath.Join(dir, "disk.raw")
	if err := os.Mkdir(scratch, 0o755); err != nil { //nolint:gosec // a sandbox's user reads it
		t.Fatal(err)
	}
	if err := ext4.Make(t.Context(), image, "", 16<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(disk, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = append(spec.Mounts,
		sandbox.Mount{Volume: volume.Volume{Name: "scratch"}, Source: scratch},
		sandbox.Mount{Volume: volume.Volume{Name: "image", Medium: volume.Image}, Source: image})
	if s.opts.NoBlock == "" {
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Volume: volume.Volume{Name: "disk", Mode: volume.Block}, Source: disk})
	}
	inst := s.start(t, spec)
	for _, m := range spec.Mounts {
		if m.Mode == volume.Block {
			command(t.Context(), inst, nil, "/bin/sh", "-c", "echo written > "+m.Path()).good(t)
		} else {
			run(t.Context(), inst, "write", m.Path()+"/"+m.Name).good(t)
		}
	}
	if err := inst.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.opts.OwnDisks { // otherwise the files are in a disk
		for name, at := range map[string]string{"data": spec.Mounts[0].Source, "scratch": scratch} {
			if b, err := os.ReadFile(filepath.Join(at, name)); err != nil || string(b) != "written\n" { //nolint:gosec // the test's own file
				t.Errorf("volume %s has %q on the host: %v", name, b, err)
			}
		}
	}
	if b, err := os.ReadFile(disk); err != nil || s.opts.NoBlock == "" && !bytes.HasPrefix(b, []byte("written\n")) || len(b) != 1<<20 { //nolint:gosec // the test's own file
		t.Errorf("the disk begins with %.20q: %v", b, err)
	}
	again := s.spec(t)
	again.Mounts = spec.Mounts[2:] // those that a sandbox of any kind keeps
	inst = s.start(t, again)
	for _, m := range again.Mounts {
		file := m.Path()
		if m.Mode != volume.Block {
			file += "/" + m.Name
		}
		if r := command(t.Context(), inst, nil, "/bin/sh", "-c", "read -r l < "+file+"; echo $l").good(t); r.stdout != "written\n" {
			t.Errorf("a second sandbox reads %q from %s", r.stdout, file)
		}
	}
	if err := inst.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// hostRoot: a sandbox runs programs of the host from its own root file system and from directories
// that the user gives, and changes nothing but those that it may write to.
func (s *suite) hostRoot(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const in, out = "/tmp/given/in", "/tmp/given/out"
	tree, shown, err := rootfs.Whole(t.Context(), filepath.Join(os.TempDir(), "tare-test-rootfs"), self, []string{in, out, "/given/deep"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("given\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := s.spec(t)
	spec.Root, spec.Shown = tree.Path, shown
	for name, v := range map[string]volume.Volume{"out": {At: out}, "in": {At: in, ReadOnly: true}, "deep": {At: "/given/deep", ReadOnly: true}} {
		v.Name, v.Medium, v.Host = name, volume.Bind, dir
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Volume: v, Source: dir})
	}
	if s.opts.OwnDisks {
		inst, err := s.kind.Start(t.Context(), spec)
		if err == nil {
			_ = inst.Stop(t.Context())
			t.Fatal("a sandbox with disks of its own starts with directories of the host")
		}
		if !strings.Contains(err.Error(), "cannot have the host's directory") {
			t.Error(err)
		}
		return
	}
	inst := s.start(t, spec)
	const script = `cat /tmp/given/in/file /given/deep/file
grep -c ^root: /etc/passwd
ls -A /run && echo written > /tmp/given/out/written && echo x > /tmp/own && rm /tmp/own && echo 1 > /run/pid && rm /run/pid
for f in /tmp/given/in/x /given/deep/x /usr/x /etc/x /x; do ( : > $f ) 2>/dev/null && echo $f can be written to; done
exit 0`
	r := command(t.Context(), inst, nil, "/bin/sh", "-c", script).good(t)
	if want := "given\ngiven\n1\n"; r.stdout != want {
		t.Errorf("printed %q, want %q; %s", r.stdout, want, r.stderr)
	}
	if err := inst.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "written")); err != nil || string(b) != "written\n" { //nolint:gosec // the test's own file
		t.Errorf("the host has %q: %v", b, err)
	}
}
