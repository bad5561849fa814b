package boot_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tare/agent/guest"
	"tare/host/state/statetest"
	"tare/sandbox"
)

// built is agent/guest/init as `make build` builds it.
func built(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "init")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", file, "tare/agent/guest/init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mostInit bounds the program, bytes: what it imports by mistake, each boot would pay for.
const mostInit = 5 << 20

// TestBootOfInit: a machine of the program that `make build` has tare carry, up to a
// command, and one that is let go at a gate.
func TestBootOfInit(t *testing.T) {
	program := built(t)
	if len(program) > mostInit {
		t.Errorf("the guest's first program has %d bytes, more than %d", len(program), mostInit)
	}
	for _, tool := range []string{"qemu-system-x86_64", "mke2fs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: scripts/setup.sh run", tool)
		}
	}
	statetest.HostLock(t)
	s := source(t)
	self, err := s.Get(t.Context())
	if err != nil {
		t.Skip(err)
	}
	s = source(t)
	s.Init = program
	f, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Digest == self.Digest {
		t.Error("another program has the same digest")
	}
	m := start(t, f, "-smp", "1", "-m", "256M",
		"-drive", "if=none,id=d0,format=raw,readonly=on,file="+block(t), "-device", "virtio-blk-pci,drive=d0,serial=root")
	m.call(t, guest.OpSetUp, guest.Setup{Hostname: "small", Now: time.Now(), Root: guest.Mount{Kind: guest.MountBlock, Source: "root"}})
	if got := m.sh(t, "hostname"); got != "small" {
		t.Errorf("the host name is %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := m.client.Run(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", "exit 3"}, Gate: sandbox.NewGate(1)})
	if err != nil || e.Code != 3 || e.Start.IsZero() {
		t.Errorf("a command at a gate: %+v, %v", e, err)
	}
}
