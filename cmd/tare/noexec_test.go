package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/rootfs"
)

// TestSandboxesAreTriedOutsideOfRun tries sandboxes as on a host with systemd: /run is mounted
// nosuid, nodev and noexec, here only for the command. gVisor's gofer cannot start from a tree
// that is mounted noexec.
func TestSandboxesAreTriedOutsideOfRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a mount namespace and containers")
	}
	if _, ok := rootfs.Lookup("runsc"); !ok {
		t.Skip("runsc is not installed; run `make setup`")
	}
	file := filepath.Join(t.TempDir(), "study.yaml")
	const src = "study: noexec\nbaseline: process\nfactors: {sandbox: [process, runsc-systrap]}\n" +
		"workloads: {noop: {kind: noop, responses: [sleep_overshoot]}}\nstop: {fixed: 1}\n"
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `mount --bind /run /run && mount -o remount,bind,nosuid,nodev,noexec /run && exec "$@"`
	out, err := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script, "-", bin, "plan", "--wait", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "does not work") || !strings.Contains(string(out), "runsc-systrap") {
		t.Errorf("%v\n%s", err, out)
	}
}
