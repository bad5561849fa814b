package observer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/host/storage"
)

// TestStored reads the configuration of a container beside a shim's working directory. The shim is a real process, whose mounts are this
// host's.
func TestStored(t *testing.T) {
	bundles, data := t.TempDir(), t.TempDir()
	disks, _ := filepath.Glob("/sys/dev/block/*:*")
	if len(disks) == 0 {
		t.Skip("this host has no block device")
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(filepath.Base(disks[0]), "%d:%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	for id, text := range map[string]string{
		"pause": `{"mounts": [{"destination": "/dev/shm", "source": "/dev/shm"}]}`,
		"main": fmt.Sprintf(`{"mounts": [{"destination": "/etc/hosts", "source": "/etc/hosts"}, {"destination": "/data", "source": %q}, {"destination": "/volumes/gone", "source": "/no/such"}],
			"linux": {"devices": [{"path": "/dev/log", "type": "b", "major": %d, "minor": %d}]}}`, data, major, minor),
		"broken": `{"mounts": [`,
		"large":  `{"hostname": "` + strings.Repeat("x", configMost) + `", "mounts": [{"destination": "/dev/shm", "source": "/dev/shm"}]}`,
	} {
		if err := os.Mkdir(filepath.Join(bundles, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bundles, id, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	cmd.Dir = filepath.Join(bundles, "pause")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	want := map[string]string{"/data": storage.New().Describe(data), "/dev/log": storage.New().Device(major, minor)}
	if want["/data"] == "" || want["/dev/log"] == "" {
		t.Fatalf("this host says nothing of its storage: %v", want)
	}
	got := stored([]shim{{Pid: cmd.Process.Pid}, {Pid: 1 << 30}}, []string{"pause", "main", "broken", "large", "missing"}, []string{"/data", "/dev/log", "/volumes/gone"})
	want["/volumes/gone"] = "" // its path leads nowhere
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
