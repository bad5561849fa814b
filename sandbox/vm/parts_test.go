package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/image"
	"tare/sandbox/vm/boot"
)

// TestParts: each part is there with what it is, or missing with what mends it;
// nothing is fetched or booted.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	source := &boot.Cache{Images: &image.Builder{Cache: filepath.Join(dir, "images")}, Dir: filepath.Join(dir, "boot"), Self: "/proc/self/exe", Local: true}
	var names []string
	for _, p := range Parts(t.Context(), source, dir) {
		names = append(names, p.Name)
		if p.Err == nil && p.Detail == "" {
			t.Errorf("%s: neither there nor missing", p.Name)
		}
		if p.Name == "guest kernel" && (p.Err == nil || p.Detail != "") {
			t.Errorf("a guest kernel in an empty cache: %+v", p)
		}
		if p.Name == "KVM" && p.Err == nil {
			t.Errorf("KVM works and nobody tried: %+v", p)
		}
	}
	if got := strings.Join(names, ", "); got != "QEMU, KVM, vhost-net, virtiofsd, guest kernel" {
		t.Error(got)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "boot")); err == nil {
		t.Errorf("made: %v", entries)
	}
}

// TestKVMPart: what an earlier boot found out is told.
func TestKVMPart(t *testing.T) {
	if _, err := os.Stat("/dev/kvm"); err != nil {
		t.Skip("this host has no /dev/kvm")
	}
	dir := t.TempDir()
	for text, want := range map[string]string{
		`{"accelerator": "kvm"}`: "",
		`{"accelerator": "tcg", "why": "the guest said nothing\nconsole: x"}`: "no virtual machine boots with it: the guest said nothing; machines are emulated",
	} {
		if err := os.WriteFile(filepath.Join(dir, verdictFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p := kvmPart(dir); (p.Err == nil) != (want == "") || p.Err != nil && !strings.Contains(p.Err.Error(), want) {
			t.Errorf("%s: %+v", text, p)
		}
	}
}
