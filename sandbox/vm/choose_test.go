package vm

import (
	"path/filepath"
	"strings"
	"testing"

	"tare/sandbox"
	"tare/sandbox/vm/boot"
)

// TestCheckOptions: what starts on no host is refused before anything is tried.
func TestCheckOptions(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		want    string // "": possible
	}{
		{nil, ""},
		{map[string]string{paramVCPUs: all, paramMaxVCPUs: "2"}, ""},
		{map[string]string{paramVCPUs: "64"}, ""}, // on a host that has them
		{map[string]string{paramStart: startSnapshot, paramRootfs: rootBlock}, ""},
		{map[string]string{paramStart: startSnapshot}, "start = snapshot needs rootfs = block"},
		{map[string]string{paramVCPUs: "0"}, "default_vcpus = 0"},
		{map[string]string{paramVCPUs: "4", paramMaxVCPUs: "2"}, "max_vcpus is 2"},
	} {
		err := New(Config{}).CheckOptions(c.options)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.options, err, c.want)
		}
	}
}

// TestKVMHere: a trial boot that failed is a reason to skip; one without an end shows nothing.
func TestKVMHere(t *testing.T) {
	k := New(Config{CacheDir: t.TempDir(), Boot: given(boot.Files{})})
	k.accel, k.qemu = accelTCG, qemu{path: "qemu", version: "1"}
	spec := sandbox.Spec{Want: sandbox.Want{Options: map[string]string{paramAccel: accelKVM, paramRootfs: rootBlock}}}
	here, err := haveKVM()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.CheckHere(t.Context(), spec); (err == nil) != here {
		t.Errorf("/dev/kvm is there: %v, nothing was shown: %v", here, err)
	}
	if err := (verdict{Accel: accelTCG, Why: "it ended"}).write(filepath.Join(k.cfg.CacheDir, verdictFile)); err != nil {
		t.Fatal(err)
	}
	if err := k.CheckHere(t.Context(), spec); err == nil || !strings.HasPrefix(err.Error(), "accel = kvm: ") || !strings.Contains(err.Error(), "; write accel: auto") {
		t.Errorf("shown not to work: %v", err)
	}
	spec.Options = map[string]string{paramVCPUs: "240", paramRootfs: rootBlock}
	if err := k.CheckHere(t.Context(), spec); hostCPUs() < 240 && (err == nil || !strings.Contains(err.Error(), "this host has")) {
		t.Errorf("more vCPUs than processors: %v", err)
	}
}
