package image

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/files"
)

// exported is a layout with the image app, its manifest's digest and a tar of it.
func exported(t *testing.T) (dir, digest, archive string) {
	t.Helper()
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	dir = filepath.Join(t.TempDir(), "layout")
	digest, err := b.Export(t.Context(), mustBuild(t, b, "app"), dir)
	if err != nil {
		t.Fatal(err)
	}
	archive = filepath.Join(t.TempDir(), "app.tar")
	must(t, "tar", "-C", dir, "-cf", archive, ".")
	return dir, digest, archive
}

// must runs a program of the host and returns what it printed; a host without it
// skips the test.
func must(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("this host has no %s", args[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}

// TestSkopeoCopies: into a folder and back, which gives the same digest.
func TestSkopeoCopies(t *testing.T) {
	dir, digest, _ := exported(t)
	to := filepath.Join(t.TempDir(), "to")
	must(t, "skopeo", "--insecure-policy", "copy", "-q", "oci:"+dir+":app", "dir:"+to)
	if got, err := files.Hash(filepath.Join(to, "manifest.json")); err != nil || "sha256:"+got != digest {
		t.Errorf("skopeo has the manifest %s, %v; exported was %s", got, err, digest)
	}
}

// TestPodmanLoads: the way of docs/verbs/image.md; what podman unpacks has the
// tree's file.
func TestPodmanLoads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a storage of its own")
	}
	_, digest, archive := exported(t)
	dir := t.TempDir()
	podman := func(args ...string) string {
		return must(t, append([]string{"podman", "--root", dir + "/root", "--runroot", dir + "/run", "--tmpdir", dir + "/tmp", "--storage-driver", "vfs"}, args...)...)
	}
	podman("load", "-q", "-i", archive)
	if got := podman("image", "inspect", "localhost/tare/app:latest", "--format", "{{.Digest}}"); strings.TrimSpace(got) != digest {
		t.Errorf("podman has %s, exported was %s", got, digest)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "root/vfs/dir/*/app/a.txt"))
	if len(found) != 1 {
		t.Fatalf("podman unpacked %v", found)
	}
	if b, err := os.ReadFile(found[0]); err != nil || string(b) != "a of app" {
		t.Errorf("podman unpacked %q, %v", b, err)
	}
}

// TestContainerdImports: into a containerd of the test's own.
func TestContainerdImports(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to start containerd")
	}
	if _, err := exec.LookPath("containerd"); err != nil {
		t.Skip("this host has no containerd")
	}
	_, digest, archive := exported(t)
	dir, err := os.MkdirTemp("", "ctr") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(dir+"/config", []byte("version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	daemon := exec.Command("containerd", "--config", dir+"/config", "--root", dir+"/root", "--state", dir+"/state", "--address", dir+"/s")
	daemon.Stdout, daemon.Stderr = &said, &said
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = daemon.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("containerd said:\n%s", said.String())
		}
	})
	for range 600 {
		if _, err := os.Stat(dir + "/s"); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	must(t, "ctr", "--address", dir+"/s", "images", "import", "--no-unpack", archive)
	if list := must(t, "ctr", "--address", dir+"/s", "images", "list"); !strings.Contains(list, "localhost/tare/app:latest") || !strings.Contains(list, digest) {
		t.Errorf("containerd has\n%s, exported was %s", list, digest)
	}
}
