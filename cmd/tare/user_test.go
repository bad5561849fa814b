package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tare/host"
	"tare/host/state/statetest"
)

// Tests on the real host take turns. What needs no real sandbox runs as an ordinary user, who has
// a lock and directories of their own: it waits for nobody, and nobody waits for it.

// nobody is the ordinary user, if the tests run as root.
const nobody = "65534"

// asUser is a directory with a tare that runs as the ordinary user.
func asUser() string { return filepath.Join(filepath.Dir(bin), "user") }

// makeAsUser makes it.
func makeAsUser() error {
	script := "#!/bin/sh\nexec " + bin + ` "$@"` + "\n"
	if os.Geteuid() == 0 {
		script = "#!/bin/sh\nexec setpriv --reuid " + nobody + " --regid " + nobody + " --clear-groups " + bin + ` "$@"` + "\n"
	}
	if err := os.Mkdir(asUser(), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(asUser(), "tare"), []byte(script), 0o755)
}

// ownState is the variables that give a user's tare a lock and directories of its own in home.
func ownState(home string) []string {
	return []string{"XDG_STATE_HOME=" + filepath.Join(home, ".state"), "XDG_RUNTIME_DIR=", "XDG_CACHE_HOME="}
}

// give gives a directory and all that is in it to the ordinary user.
func give(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.Lchown(path, 65534, 65534)
	})
}

// tareBy is who runs tare: root, who uses the host, or an ordinary user with this home.
type tareBy struct{ home string }

// ordinary is an ordinary user for a test that runs nothing real.
func ordinary(t *testing.T) tareBy {
	t.Helper()
	by := tareBy{t.TempDir()}
	by.own(t, by.home)
	t.Cleanup(func() { // a test that kills tare leaves something in memory, and with this home goes the note of it
		if out, err := by.command("clean").CombinedOutput(); err != nil {
			t.Logf("tare clean: %v: %s", err, out)
		}
	})
	return by
}

// own gives a directory to the ordinary user, if that is who runs tare.
func (b tareBy) own(t *testing.T, dir string) {
	t.Helper()
	if b.home == "" {
		return
	}
	// Above t.TempDir is one that only root can read.
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), give(dir)); err != nil {
		t.Fatal(err)
	}
}

func (b tareBy) command(args ...string) *exec.Cmd {
	if b.home == "" {
		return exec.Command(bin, args...)
	}
	cmd := exec.Command(filepath.Join(asUser(), "tare"), args...)
	cmd.Env = append(os.Environ(), ownState(b.home)...)
	return cmd
}

// dirs are where tare has its files.
func (b tareBy) dirs() host.Dirs {
	if b.home == "" {
		return host.DefaultDirs()
	}
	state := filepath.Join(b.home, ".state", "tare")
	return host.Dirs{Run: filepath.Join(state, "run"), Data: filepath.Join(state, "data")}
}

// run runs tare to its end, again while another test holds the host.
func (b tareBy) run(t *testing.T, args ...string) string {
	t.Helper()
	for {
		out, err := b.command(args...).CombinedOutput()
		if err == nil {
			return string(out)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitHeld {
			t.Fatalf("tare %q: %v\n%s", args, err, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// clean is `tare clean`; after it no directory of these runs may exist.
func (b tareBy) clean(t *testing.T, pids ...int) {
	t.Helper()
	b.run(t, "clean")
	d := b.dirs()
	for _, pid := range pids {
		for _, base := range []string{d.Run, d.Data} {
			if left, _ := filepath.Glob(filepath.Join(base, host.RunID(pid)+"*")); len(left) > 0 {
				t.Errorf("`tare clean` left %v", left)
			}
		}
	}
}

// snapshot is what is on the host while nobody uses it. An ordinary user can change nothing
// there: it is empty.
func (b tareBy) snapshot(t *testing.T) map[string]bool {
	t.Helper()
	if b.home != "" {
		return nil
	}
	return snapshot(t)
}

// snapshot is taken while nobody else uses the host.
func snapshot(t *testing.T) map[string]bool {
	t.Helper()
	var out map[string]bool
	t.Run("snapshot", func(t *testing.T) {
		statetest.HostLock(t)
		out = statetest.Snapshot(t)
	})
	return out
}

// tare runs the binary as root to its end.
func tare(t *testing.T, args ...string) string {
	t.Helper()
	return tareBy{}.run(t, args...)
}
