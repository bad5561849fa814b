package vm

import (
	"os"
	"path/filepath"
	"testing"

	"tare/internal/guest"
	"tare/sandbox/sandboxtest"
	"tare/sandbox/vm/boot"
)

func TestMain(m *testing.M) {
	if guest.IsInit(os.Args) {
		guest.Main()
	}
	os.Exit(sandboxtest.Main(m.Run))
}

// kind is one whose guests run this test binary.
func kind(t testing.TB) *Kind {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(os.TempDir(), "tare-test-vm")
	return New(Config{
		Boot: &boot.Cache{Dir: filepath.Join(cache, "boot"), Self: self, Kernel: os.Getenv(boot.KernelVariable)}, StateDir: "/run/tare/test-vm", CacheDir: cache,
	})
}

func TestFirst(t *testing.T) {
	k := kind(t)
	inst, err := k.Start(t.Context(), sandboxtestSpec(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(inst.Facts(), inst.(*instance).Boot())
	if err := inst.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
