// Package statetest helps tests that use the host: HostLock keeps other tests and runs off
// the host, Snapshot lists what a test must leave unchanged.
package statetest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"

	"tare/host/network"
	"tare/host/state"
	"tare/internal/rootless"
	"tare/site/claim"
)

// wait bounds how long a test waits for the host, and tidyWait how long it waits until
// another test has removed what a killed run left.
const (
	wait     = 20 * time.Minute
	tidyWait = 30 * time.Second
)

// HostLock holds the host for the rest of the test. It skips the test if this user cannot
// hold it.
//
// Tests in other packages kill runs. The lock is free from the kill until these tests clean
// up, and what is left would be taken for this test's. So HostLock releases the lock and
// waits while there are remains of a run. After tidyWait it takes the host as it is.
func HostLock(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	var untidy time.Time // when only remains began to hinder
	told := false
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		l, err := state.Hold(rootless.RunDir(), "test "+t.Name())
		if err == nil && remains(t) {
			if untidy.IsZero() {
				untidy = time.Now()
			}
			if time.Since(untidy) < tidyWait {
				if err := l.Release(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(200 * time.Millisecond)
				continue
			}
		}
		if err == nil {
			t.Cleanup(func() {
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
			return
		}
		if _, ok := errors.AsType[*claim.HeldError](err); !ok {
			t.Fatal(err)
		}
		if !told {
			told = true
			t.Log("waiting:", err)
		}
		if time.Since(begin) > wait {
			t.Fatalf("waited %v: %v", wait, err)
		}
	}
}

// remains reports whether a run has left something on the host. The caller holds the host,
// so that run is dead.
func remains(t testing.TB) bool {
	t.Helper()
	for name := range Snapshot(t) {
		if strings.HasPrefix(name, "process ") || strings.HasPrefix(name, "netns tare-") ||
			strings.HasPrefix(name, "cgroup ") && strings.Contains(name, "/tare/") {
			return true
		}
	}
	return false
}

// Unchanged compares the host at the end of the test with now. Call it after HostLock and
// before the test makes anything, so that it compares last. Other programs make and remove
// such things all the time, so only Ours count. names are the names of the
// test's containers, for which a runtime may make groups elsewhere.
func Unchanged(t testing.TB, names ...string) {
	t.Helper()
	names = append(names, filepath.Dir(t.TempDir())) // all of the test's directories are in it
	before := Snapshot(t)
	t.Cleanup(func() {
		after := Snapshot(t)
		for name := range maps.Keys(after) {
			if !before[name] && Ours(name, names...) {
				t.Errorf("left behind: %s", name)
			}
		}
		for name := range maps.Keys(before) {
			// Remains of an earlier run may disappear: an empty group "tare", run-time state, and a
			// process that was already told to end when the host's lock became free.
			if !after[name] && Ours(name, names...) && !strings.HasSuffix(name, "/tare") && !strings.HasPrefix(name, "file ") && !strings.HasPrefix(name, "process ") {
				t.Errorf("gone, but not the test's: %s", name)
			}
		}
	})
}

// Ours reports whether an item of a Snapshot may be tare's. A control group, mount, network
// namespace or link is tare's if its name or path contains "tare" or one of the names: what a
// runtime makes elsewhere has the container's name. Every other item counts as tare's.
func Ours(thing string, names ...string) bool {
	if kind, _, _ := strings.Cut(thing, " "); !slices.Contains([]string{"cgroup", "mount", "netns", "link"}, kind) {
		return true
	}
	return slices.ContainsFunc(append(names, "tare"), func(name string) bool { return strings.Contains(thing, name) })
}

// Snapshot lists the host's control groups, named network namespaces, mounts and links: all
// of them, not only tare's. It also lists the files of run-time state and the processes with
// a sandbox's marker, which are tare's by definition.
func Snapshot(t testing.TB) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	var roots []string
	for _, m := range mounts {
		out[fmt.Sprintf("mount %s of %s (%s)", m.Mountpoint, m.Root, m.FSType)] = true
		if m.FSType == "cgroup" || m.FSType == "cgroup2" {
			roots = append(roots, m.Mountpoint)
		}
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				out["cgroup "+path] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for kind, dir := range map[string]string{"netns": network.Dir(), "link": "/sys/class/net"} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			out[kind+" "+e.Name()] = true
		}
	}
	ours(t, out)
	return out
}

// ours adds the run-time state, and the processes by their marker.
func ours(t testing.TB, out map[string]bool) {
	t.Helper()
	for _, depth := range []string{"/*", "/oci/*", "/oci/*/*"} {
		files, err := filepath.Glob(rootless.RunDir() + depth)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if filepath.Base(f) == "bridge.lock" {
				continue // stays for the next user of the bridge
			}
			out["file "+f] = true
		}
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		b, err := os.ReadFile(path) //nolint:gosec // a path of proc
		if err != nil {
			continue // the process has ended meanwhile
		}
		for v := range strings.SplitSeq(string(b), "\x00") {
			if name, ok := strings.CutPrefix(v, "TARE_SANDBOX="); ok {
				out[fmt.Sprintf("process %s of %s", filepath.Dir(path), name)] = true
			}
		}
	}
}
