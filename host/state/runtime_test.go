package state_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/host/cgroup"
	"tare/host/rootfs"
	"tare/host/state"
	"tare/host/state/statetest"
)

// TestCleanRealContainers leaves a running container of each runtime that this
// host has, as a killed run does.
func TestCleanRealContainers(t *testing.T) {
	busybox, ok := rootfs.Lookup("busybox")
	if !ok {
		t.Skip("needs busybox; install busybox-static")
	}
	for _, name := range []string{"runc", "crun", "runsc"} {
		t.Run(name, func(t *testing.T) {
			binary, ok := rootfs.Lookup(name)
			if !ok {
				t.Skip("needs the runtime " + name)
			}
			statetest.HostLock(t)
			statetest.Unchanged(t, "test-litter-")
			tidy := func() {
				if _, err := state.CleanSparing(context.Background(), false, others); err != nil {
					t.Error(err)
				}
			}
			t.Cleanup(tidy)
			rt := runtimeOf(t, name, binary)
			root := filepath.Join(state.RunDir, "oci", "test-"+name)
			// A directory shared with others goes by itself, not with the rest.
			t.Cleanup(func() { _ = os.RemoveAll(root) })
			id := "test-litter-" + name
			start(t, rt, root, id, busybox)

			done, err := state.CleanSparing(context.Background(), false, others)
			if err != nil {
				t.Fatal(err)
			}
			kinds := count(done)
			for _, l := range done {
				if l.Err != nil {
					t.Errorf("%s %s: %v", l.Kind, l.Name, l.Err)
				}
			}
			if kinds[state.KindContainer] != 1 || kinds[state.KindProcess] == 0 {
				t.Errorf("found %v: %v", kinds, done)
			}
			again, err := state.CleanSparing(context.Background(), true, others)
			if err != nil || len(again) > 0 {
				t.Errorf("left: %v, %v", again, err)
			}
		})
	}
}

// runtimeOf says how this host calls a runtime; crun 1.8 refuses a host with
// controllers on version 1 and 2, so there the version 2 tree is hidden.
func runtimeOf(t *testing.T, name, binary string) state.Runtime {
	t.Helper()
	switch name {
	case "runsc":
		return state.Runtime{Binary: binary, Args: []string{"--platform=systrap", "--network=none"}}
	case "crun":
		h, err := cgroup.Detect()
		if err != nil {
			t.Skip("no control groups on this host: ", err)
		}
		if tree, ok := h.Path("", ""); ok && h.Version == cgroup.Hybrid {
			unshare, err := exec.LookPath("unshare")
			if err != nil {
				t.Skip("needs unshare of util-linux")
			}
			return state.Runtime{Binary: unshare, Args: []string{"-m", "sh", "-c", `umount "$0"; exec "$@"`, tree, binary}}
		}
	}
	return state.Runtime{Binary: binary}
}

// start runs a container that sleeps, detached, and waits until it runs.
func start(t *testing.T, rt state.Runtime, root, id, busybox string) {
	t.Helper()
	bundle, err := state.Dirs{Base: state.RunDir}.Make(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, bundle + "/rootfs/proc", bundle + "/rootfs/dev", bundle + "/rootfs/sys"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bundle+"/rootfs/busybox", text, 0o700); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{
		"ociVersion": "1.0.2",
		"process":    map[string]any{"args": []string{"/busybox", "sleep", "60"}, "cwd": "/", "user": map[string]int{"uid": 0, "gid": 0}},
		"root":       map[string]any{"path": "rootfs"},
		"mounts":     []map[string]any{{"destination": "/proc", "type": "proc", "source": "proc"}},
		"linux": map[string]any{
			"cgroupsPath": "/tare/" + id,
			"namespaces":  []map[string]string{{"type": "pid"}, {"type": "mount"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}},
		},
	}
	for path, value := range map[string]any{bundle + "/config.json": config, root + "/runtime.json": rt} {
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	log, err := os.Create(filepath.Join(bundle, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	args := append(append([]string{}, rt.Args...), "--root", root, "run", "--detach", "--bundle", bundle, id)
	cmd := exec.CommandContext(ctx, rt.Binary, args...)
	cmd.Stdout, cmd.Stderr = log, log // files: the container keeps them
	cmd.Env = append(os.Environ(), state.Marker+id)
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Skipf("%s does not run here: %v: %s", filepath.Base(rt.Binary), err, strings.TrimSpace(string(said)))
	}
}
