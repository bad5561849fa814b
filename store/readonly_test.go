package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

func TestReadWhileWriting(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 3)
	r, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	checkTrials(t, r, 3)
	appendN(t, s, 4, 5)
	checkTrials(t, r, 5)
	tr, ev := testTrial(6)
	if err := r.Append(t.Context(), tr, ev); !errors.Is(err, ErrReadOnly) {
		t.Errorf("append: %v", err)
	}
	if err := r.SetSkips(t.Context(), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("set skips: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkTrials(t, r, 5)
}

// TestReadOnlyMedia reads a finished folder and one whose writer died, both on
// a file system that refuses writing even to root.
func TestReadOnlyMedia(t *testing.T) {
	if dir := os.Getenv("TARE_TEST_RO"); dir != "" {
		// In the child, in a mount namespace of its own.
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			t.Skip("bind mount:", err)
		}
		if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Skip("read-only mount:", err)
		}
		for _, n := range []string{"finished", "died"} {
			r, err := OpenReadOnly(filepath.Join(dir, n))
			if err != nil {
				t.Fatal(n, err)
			}
			checkTrials(t, r, 4)
			scratch := r.scratch
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if scratch != "" && files.Exists(scratch) {
				t.Errorf("%s is left", scratch)
			}
		}
		t.Log("read both") // the parent looks for it
		return
	}
	dir := t.TempDir()
	s, err := Create(filepath.Join(dir, "finished"), testMeta())
	if err != nil {
		t.Fatal(err)
	}
	appendN(t, s, 1, 4)
	// A copy of the files of a live store is what a dead writer leaves.
	died := filepath.Join(dir, "died")
	if err := os.CopyFS(died, os.DirFS(s.Dir())); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(died, dbName+"-shm")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := reexec(t, "TestReadOnlyMedia", "TARE_TEST_RO="+dir).CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skip("this host lets nobody make a mount namespace:", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	skipWithChild(t, out)
}

// reexec runs one test of this binary again, in a mount namespace of its own,
// and as root in a user namespace when not root already.
func reexec(t *testing.T, test string, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return c
}

// TestStamp: what is written is seen from outside, and reading leaves no trace.
func TestStamp(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 1)
	stamp := func() Stamp {
		t.Helper()
		x, err := StampOf(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if stamp().Rests(time.Now()) {
		t.Error("files that were just written are at rest")
	}
	old := time.Now().Add(-time.Hour)
	rest := func() Stamp {
		t.Helper()
		for _, n := range []string{dbName, dbName + "-wal"} {
			if err := os.Chtimes(filepath.Join(s.Dir(), n), old, old); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		return stamp()
	}
	before := rest()
	if !before.Rests(time.Now()) || before.Rests(old) {
		t.Error("files of an hour ago rest now, and did not then")
	}
	r, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	checkTrials(t, r, 1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if stamp() != before {
		t.Error("reading changed the stamp")
	}
	appendN(t, s, 2, 2)
	if stamp() == before {
		t.Error("a trial left the stamp as it was")
	}
	before = rest()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if stamp() == before {
		t.Error("the end of the writer, which moves the log into the database, left the stamp as it was")
	}
	if _, err := StampOf(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without results: %v", err)
	}
}
