package vm

import (
	"os"
	"path/filepath"
	"testing"

	"tare/agent/guest"
	"tare/host/image"
	"tare/host/image/imagetest"
	"tare/sandbox/sandboxtest"
	"tare/sandbox/vm/boot"
	"tare/sizing"
)

func TestMain(m *testing.M) {
	if guest.IsInit(os.Args) {
		guest.Main()
	}
	os.Exit(sandboxtest.Main(m.Run))
}

// kind is one whose guests run this test binary.
func kind(t testing.TB) *Hypervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(os.TempDir(), "tare-test-vm")
	return New(Config{
		Boot:     &boot.Cache{Images: &image.Builder{Cache: imagetest.Cache}, Dir: filepath.Join(cache, "boot"), Self: self, Kernel: os.Getenv(boot.KernelVariable)},
		StateDir: "/run/tare/test-vm", CacheDir: cache,
	})
}

func TestContract(t *testing.T) {
	sandboxtest.Run(t, kind(t), sandboxtest.Options{
		// The quota is the limit and what QEMU and the daemons may use.
		CPUOverhead: sizing.Overhead,
		// More than what is eaten in the test of the memory limit: the limit counts, not what
		// the machine has.
		Params: map[string]string{paramMemory: "512"},
	})
}
