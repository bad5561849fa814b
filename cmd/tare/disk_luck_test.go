package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/ext4"
	"tare/host/loop"
	"tare/host/rootfs"
	"tare/record"
)

// rawDisk makes a loop device of an empty file. It is gone after the test.
func rawDisk(t *testing.T, size int64) (device, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "disk.raw")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	return attached(t, file), file
}

func attached(t *testing.T, file string) string {
	t.Helper()
	d, err := loop.Attach(file, false)
	if err != nil {
		t.Skip("this host gives no loop devices: ", err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.Path
}

// mounted mounts a new ext4 of this size, with a file of the user's in it.
func mounted(t *testing.T, size int64) (at, device string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk.raw")
	if err := ext4.Make(t.Context(), file, "", size); err != nil {
		t.Fatal(err)
	}
	device, at = attached(t, file), t.TempDir()
	if err := unix.Mount(device, at, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Errorf("something holds the file system: %v", err)
		}
	})
	if err := os.WriteFile(filepath.Join(at, "mine"), []byte("the user's"), 0o600); err != nil {
		t.Fatal(err)
	}
	return at, device
}

// unharmed holds that a directory has the user's file and nothing else.
func unharmed(t *testing.T, at string) {
	t.Helper()
	entries, err := os.ReadDir(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := e.Name(); n != "mine" && n != "lost+found" {
			t.Errorf("left behind: %s", n)
		}
	}
	if b, err := os.ReadFile(filepath.Join(at, "mine")); err != nil || string(b) != "the user's" {
		t.Errorf("the user's file: %q, %v", b, err)
	}
}

// diskRun runs a study of fio; during is called with the run's process.
func diskRun(t *testing.T, text, results string, during func(cmd *exec.Cmd), args ...string) (code int, out string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(results), filepath.Base(results)+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t)
	var b bytes.Buffer
	cmd := exec.Command(bin, append([]string{"run", file, "--results", results, "--wait"}, args...)...)
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if during != nil {
		during(cmd)
	}
	err := cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for name := range snapshot(t) {
		if !before[name] && oursOf(name, cmd.Process.Pid) {
			t.Errorf("left behind: %s", name)
		}
	}
	t.Logf("exit %d\n%s", cmd.ProcessState.ExitCode(), b.String())
	return cmd.ProcessState.ExitCode(), b.String()
}

// realDisks skips a test that cannot have its own disks.
func realDisks(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: loop devices")
	}
	if testing.Short() {
		t.Skip("runs real sandboxes for some seconds")
	}
	if _, ok := rootfs.Lookup("fio"); !ok {
		t.Skip("this host has no fio")
	}
}

// writable makes a device writable, or read-only with 0: BLKROSET, blockdev(8).
func writable(t *testing.T, device string, on int) {
	t.Helper()
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), unix.BLKROSET, 1-on), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDisksRefused: a disk that is not fit, or that holds something, is refused with the reason before anything is
// written, and the rest of the study runs.
func TestDisksRefused(t *testing.T) {
	realDisks(t)
	small, _ := rawDisk(t, 1<<20)
	fixed, _ := rawDisk(t, 16<<20)
	writable(t, fixed, 0)
	t.Cleanup(func() { writable(t, fixed, 1) }) // the device would stay read-only for its next file
	at, busy := mounted(t, 16<<20)
	text := `study: refused
factors: {sandbox: [process]}
workloads:
  fine: {kind: noop}
`
	for name, device := range map[string]string{"small": small, "fixed": fixed, "busy": busy, "none": "/dev/tare-none", "null": "/dev/null"} {
		text += fmt.Sprintf("  %s: {kind: fio, rw: write, size: 8MiB, duration: 300ms, warmup: 0s, target: device, device: %s}\n", name, device)
	}
	text += "stop: {fixed: 1}\nsentinel: off\ncalls: off\n"
	results := filepath.Join(t.TempDir(), "r")
	code, out := diskRun(t, text, results, nil)
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	for _, says := range []string{
		small + " has 1MiB, and the workload needs 8MiB; set a smaller size",
		fixed + " is read-only; make it writable",
		busy + " is in use: " + busy + " is mounted on " + at,
		"there is no device /dev/tare-none",
		"/dev/null is not a block device",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("it does not say %q", says)
		}
	}
	if trials := load(t, results); len(trials) != 1 {
		t.Errorf("%d trials, want that of the workload without a disk", len(trials))
	}
	unharmed(t, at)
}

// fill takes all of a file system but so many bytes, as soon as a study has begun: then its disks have been judged.
func fill(t *testing.T, at, results string, leave uint64) func(*exec.Cmd) {
	return func(*exec.Cmd) {
		until(t, "the study begins", func() bool { _, err := os.Stat(filepath.Join(results, "results.db")); return err == nil })
		var st unix.Statfs_t
		f, err := os.Create(filepath.Join(at, "filler"))
		if err == nil {
			defer func() { _ = f.Close() }()
			err = unix.Fstatfs(int(f.Fd()), &st)
		}
		if err == nil {
			err = unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail*uint64(st.Bsize)-leave))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestDiskFull: others fill the file system after a study has begun, so that loads have no room. Each sandbox says so, the
// study goes on with what has room, and nothing is left on the disk.
func TestDiskFull(t *testing.T) {
	realDisks(t)
	at, _ := mounted(t, 256<<20)
	var kinds []string
	for kind, program := range map[string]string{"runc": "runc", "runsc-systrap": "runsc"} {
		if _, ok := rootfs.Lookup(program); ok {
			kinds = append(kinds, ", "+kind)
		}
	}
	text := fmt.Sprintf(`study: full
factors: {sandbox: [process%s]}
workloads:
  large: {kind: fio, rw: write, bs: 1MiB, size: 64MiB, duration: 1s, warmup: 0s, target: [data, root]}
  image: {kind: fio, rw: write, bs: 1MiB, size: 64MiB, cache: direct, duration: 1s, warmup: 0s, target: image}
  small: {kind: fio, rw: write, bs: 64KiB, size: 1MiB, duration: 300ms, warmup: 0s}
stop: {fixed: 1}
retries: 1
sentinel: off
calls: off
`, strings.Join(kinds, ""))
	results := filepath.Join(t.TempDir(), "r")
	if code, _ := diskRun(t, text, results, fill(t, at, results, 6<<20), "--data", at); code != exitTrials {
		t.Errorf("exit %d", code)
	}
	if err := os.Remove(filepath.Join(at, "filler")); err != nil {
		t.Error(err)
	}
	tries := map[string]int{}
	for _, x := range load(t, results) {
		load, _ := x.Cell.Get("workload")
		if load == "small" {
			if x.Status != record.OK {
				t.Errorf("%s: %+v", x.Cell, x.Failure)
			}
			continue
		}
		box, _ := x.Cell.Get("sandbox")
		if load == "image" && strings.HasPrefix(box, "runsc") && x.Status == record.OK {
			// gVisor writes by the host's page cache, whatever fio asks for. The kernel loses what the disk has no
			// room for after fio has ended, and tells nobody. So does the retry of a trial that had no room to begin with.
			tries[x.Cell.Key()] = 2
			continue
		}
		tries[x.Cell.Key()]++
		if x.Failure == nil || x.Failure.Kind != "disk" {
			t.Errorf("%s: %+v", x.Cell, x.Failure)
			continue
		}
		t.Logf("%s: %s", x.Cell, x.Failure.Reason)
		// The kernel may give the room of a deleted file back a moment later, so that a retry has none to begin with.
		for _, says := range []string{"no space left on device", "free some space, or choose another disk with --data"} {
			if !strings.Contains(strings.ToLower(x.Failure.Reason), says) {
				t.Errorf("%s: the reason %q does not say %q", x.Cell, x.Failure.Reason, says)
			}
		}
	}
	for cell, n := range tries {
		if n != 2 {
			t.Errorf("%s was tried %d times, want a retry", cell, n)
		}
	}
	unharmed(t, at)
}

// TestDiskVanishes: a device whose file is cut to nothing in the middle of a load, and that has no disk after it.
// The trials say so, and the other workload goes on.
func TestDiskVanishes(t *testing.T) {
	realDisks(t)
	file := filepath.Join(t.TempDir(), "disk.raw")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 16<<20)); err != nil {
		t.Fatal(err)
	}
	d, err := loop.Attach(file, false)
	if err != nil {
		t.Skip("this host gives no loop devices: ", err)
	}
	device := d.Path
	text := fmt.Sprintf(`study: vanishes
factors: {sandbox: [process]}
workloads:
  disk: {kind: fio, rw: randread, size: 16MiB, cache: direct, duration: 3s, warmup: 0s, target: device, device: %s}
  other: {kind: noop}
stop: {fixed: 2}
retries: 1
sentinel: off
calls: off
`, device)
	results := filepath.Join(t.TempDir(), "r")
	code, _ := diskRun(t, text, results, func(cmd *exec.Cmd) {
		// What was laid out takes room in the file. A moment later the load reads it.
		var st unix.Stat_t
		for end := time.Now().Add(5 * time.Minute); cmd.ProcessState == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if unix.Stat(file, &st) == nil && st.Blocks*512 >= 16<<20 {
				break
			}
		}
		time.Sleep(time.Second)
		if err := errors.Join(d.Close(), os.Truncate(file, 0)); err != nil {
			t.Error(err)
		}
	})
	if code != exitTrials {
		t.Errorf("exit %d", code)
	}
	var reasons []string
	for _, x := range load(t, results) {
		if load, _ := x.Cell.Get("workload"); load == "other" && x.Status != record.OK {
			t.Errorf("%s: %+v", x.Cell, x.Failure)
		}
		if x.Failure != nil {
			reasons = append(reasons, x.Failure.Kind+": "+x.Failure.Reason)
		}
	}
	all := strings.Join(reasons, "\n")
	if !strings.Contains(all, "disk: ") || !strings.Contains(all, "the disk failed, or is gone") {
		t.Errorf("the disk is not told:\n%s", all)
	}
	// Another program may take a free device at any moment.
	if !strings.Contains(all, device+" has no disk behind it; attach one") && !strings.Contains(all, device+" is another disk") {
		t.Errorf("the device is not told:\n%s", all)
	}
}
