package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/site/claim"
)

// victim is somebody else's folder, with a file that must survive.
func victim(t *testing.T) (dir string, survives func()) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "tmp", "precious")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		t.Helper()
		if b, err := os.ReadFile(file); err != nil || string(b) != "years of work" {
			t.Fatalf("the victim's file: %q, %v", b, err)
		}
	}
}

// cleanIn cleans two directories as CleanOwn does. It leaves the processes alone, since those
// of tests that run beside it have the marker, too.
func cleanIn(t *testing.T, run, lib string) []claim.Leftover {
	t.Helper()
	clean := func(dry bool) []claim.Leftover {
		c := &cleaner{run: run, lib: lib, dry: dry, own: true}
		c.containers(t.Context())
		c.directories(t.Context())
		if err := errors.Join(c.unseen...); err != nil {
			t.Fatal(err)
		}
		return c.found
	}
	dry, done := clean(true), clean(false)
	if len(dry) != len(done) {
		t.Errorf("the dry run lists %v, the real one %v", dry, done)
	}
	return done
}

// TestCleanTakesOnlyRecorded: clean names what tare did not make, and leaves it. It removes
// what a killed run made, and silently leaves what a live run uses.
func TestCleanTakesOnlyRecorded(t *testing.T) {
	run, lib := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "lib")
	// The leftovers of a killed process, made by hand: nobody holds the record.
	killed, err := Dirs{Base: lib}.Make("tkilled")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(killed, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	living, remove, err := MakeRun(run, "tliving")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"tempty", "thesis/chapter"} { // killed before the record was written; a user's own
		if err := os.MkdirAll(filepath.Join(lib, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(lib, "todo"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range cleanIn(t, run, lib) {
		got[filepath.Base(l.Name)] = "removed"
		if l.Err != nil {
			got[filepath.Base(l.Name)] = l.Err.Error()
		}
	}
	if len(got) != 4 || got["tkilled"] != "removed" || got["tempty"] != "removed" ||
		got["thesis"] != "it has no record (.made-by-tare), so tare may not have made it; inspect it, then remove it by hand" ||
		got["todo"] != "it is not a directory, so tare may not have made it; inspect it, then remove it by hand" {
		t.Errorf("clean says %v", got)
	}
	for path, there := range map[string]bool{killed: false, lib + "/tempty": false, living: true, lib + "/thesis/chapter": true, lib + "/todo": true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	for range 2 {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(living); !errors.Is(err, os.ErrNotExist) {
		t.Error("the run's own removal:", err)
	}
}

// TestCleanFollowsNoLinks: no link in the path of the folder, inside it, or in a noted place
// elsewhere leads clean to somebody else's files.
func TestCleanFollowsNoLinks(t *testing.T) {
	home, survives := victim(t)
	base := t.TempDir()
	run, lib := filepath.Join(base, "run"), filepath.Join(base, "lib")
	dir, err := Dirs{Base: lib}.Make("t1")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{lib + "/t2", dir + "/link", dir + "/" + recordName + ".link"} {
		if err := os.Symlink(home, link); err != nil {
			t.Fatal(err)
		}
	}
	cleanIn(t, run, lib)
	survives()
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the run's directory stays:", err)
	}

	// The record itself is a link, so it does not count.
	if err := os.Symlink(filepath.Join(home, "tmp", "precious"), filepath.Join(home, recordName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(home, filepath.Join(lib, "t3")); err != nil {
		t.Fatal(err)
	}
	if left := cleanIn(t, run, lib); len(left) != 2 || left[1].Err == nil {
		t.Errorf("clean says %v", left)
	}
	if err := os.Rename(filepath.Join(lib, "t3"), home); err != nil {
		t.Fatal(err)
	}
	survives()
}

// TestNotedButNotMade: if the directory elsewhere cannot be made, because somebody made it
// first, no note of it stays.
func TestNotedButNotMade(t *testing.T) {
	base := t.TempDir()
	lib, disk := filepath.Join(base, "lib"), filepath.Join(base, "disk")
	theirs := filepath.Join(disk, elsewhere+"t1", "precious")
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if dir, _, err := MakeData(lib, disk, "t1"); err == nil {
		t.Errorf("%s was made although it was there", dir)
	}
	if left := cleanIn(t, filepath.Join(base, "run"), lib); len(left) != 0 {
		t.Errorf("clean says %v", left)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}

// TestCleanElsewhere: the owner of a disk named with --data can change what is there after
// the run was killed.
func TestCleanElsewhere(t *testing.T) {
	home, survives := victim(t)
	base := t.TempDir()
	run, lib, disk := filepath.Join(base, "run"), filepath.Join(base, "lib"), filepath.Join(base, "disk")
	make := func() (string, func() error) {
		t.Helper()
		dir, remove, err := MakeData(lib, disk, "t1")
		if err != nil {
			t.Fatal(err)
		}
		return dir, remove
	}
	swaps := map[string]func(t *testing.T, dir string) error{
		"the disk is a link to the victim's folder": func(t *testing.T, dir string) error {
			if err := os.Rename(filepath.Join(home, "tmp"), filepath.Join(home, filepath.Base(dir))); err != nil {
				return err
			}
			t.Cleanup(func() { _ = os.Rename(filepath.Join(home, filepath.Base(dir)), filepath.Join(home, "tmp")); survives() })
			return errors.Join(os.RemoveAll(disk), os.Symlink(home, disk))
		},
		"the directory is a link": func(t *testing.T, dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink(home, dir)) },
		"another directory is there": func(t *testing.T, dir string) error {
			return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir+"/precious", 0o700))
		},
	}
	for name, swap := range swaps {
		t.Run(name, func(t *testing.T) {
			dir, remove := make()
			t.Cleanup(func() { _ = os.RemoveAll(disk); _ = os.RemoveAll(lib) })
			if err := swap(t, dir); err != nil {
				t.Fatal(err)
			}
			if err := remove(); err == nil {
				t.Error("the run's own removal went through")
			}
			left := cleanIn(t, run, lib)
			if len(left) != 1 || left[0].Err == nil {
				t.Errorf("clean says %v", left)
			}
			if name != "another directory is there" {
				return
			}
			if _, err := os.Stat(filepath.Join(dir, "precious")); err != nil {
				t.Error(err)
			}
		})
	}
	survives()
	dir, _ := make()
	_ = os.Remove(filepath.Join(dir, recordName)) // as if killed between the two steps
	if left := cleanIn(t, run, lib); len(left) != 1 || left[0].Err != nil || left[0].Name != dir {
		t.Errorf("clean says %v", left)
	}
	if entries, err := os.ReadDir(lib); err != nil || len(entries) > 0 {
		t.Errorf("the note stays: %v, %v", entries, err)
	}
}

// TestRemoveWhileSwapped swaps a directory for a link to the victim's, as fast as it can,
// while the tree is removed.
func TestRemoveWhileSwapped(t *testing.T) {
	home, survives := victim(t)
	base := t.TempDir()
	link := filepath.Join(base, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		swapped := 0
		for {
			select {
			case <-stop:
				done <- swapped
				return
			default:
			}
			for _, with := range []string{"/lib/t1/tmp", "/lib/t1"} {
				if unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, base+with, unix.RENAME_EXCHANGE) == nil {
					swapped++
					_ = unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, base+with, unix.RENAME_EXCHANGE)
				}
			}
		}
	}()
	for range 500 {
		dir, err := Dirs{Base: base + "/lib"}.Make("t1")
		if err == nil {
			_ = os.MkdirAll(filepath.Join(dir, "tmp", "precious"), 0o700)
		}
		_ = Dirs{Base: base + "/lib"}.Remove("t1") // it may refuse what is a link at that moment
		survives()
	}
	close(stop)
	if n := <-done; n == 0 {
		t.Error("nothing was ever exchanged")
	}
}

// TestBaseIsHeld: an open base stays the same, wherever its path leads later.
func TestBaseIsHeld(t *testing.T) {
	home, survives := victim(t)
	lib := filepath.Join(t.TempDir(), "lib")
	if _, err := (Dirs{Base: lib}).Make("tmp"); err != nil {
		t.Fatal(err)
	}
	b, err := openOwn(lib)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := errors.Join(os.Rename(lib, lib+".away"), os.Symlink(home, lib)); err != nil {
		t.Fatal(err)
	}
	if err := b.remove("tmp", isRecord, nil); err != nil {
		t.Error(err)
	}
	survives()
	if _, err := os.Stat(lib + ".away/tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory that was opened stays:", err)
	}
	if b, err := openBase(lib); err == nil {
		b.close()
		t.Error("a link was opened as a base")
	}
}

// TestOwn: nobody else may own or change the folder of a user's files.
func TestOwn(t *testing.T) {
	base := t.TempDir()
	if err := Own(filepath.Join(base, "a", "b")); err != nil {
		t.Error(err)
	}
	bad := map[string]func(path string) error{
		"link":             func(p string) error { return os.Symlink(base, p) },
		"file":             func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"others can write": func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o777)) },
	}
	if os.Geteuid() == 0 {
		bad["another user's"] = func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chown(p, 65534, 65534)) }
	}
	for name, make := range bad {
		path := filepath.Join(base, "bad "+name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if err := Own(path); err == nil {
			t.Errorf("%s was taken", name)
		}
		if name != "link" && Usable(path) {
			t.Errorf("%s counts as usable", name)
		}
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Own(filepath.Join(base, "a", "b")); err == nil {
		t.Error("taken below a folder in which everyone can replace it")
	}
}

// TestOwnRemovalWithASharedLock: a child that was just forked holds the record's lock too.
// That keeps others away, but not the run itself.
func TestOwnRemovalWithASharedLock(t *testing.T) {
	lib := t.TempDir()
	b, err := openOwn(lib)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	held, err := b.make("t1")
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(held.Fd())) // the same open file, as fork gives it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(child) }()
	if err := b.remove("t1", isRecord, nil); !errors.Is(err, errInUse) {
		t.Errorf("another removal: %v", err)
	}
	if err := b.remove("t1", isRecord, held); err != nil {
		t.Error("the run's own removal:", err)
	}
	if _, err := os.Stat(filepath.Join(lib, "t1")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it stays:", err)
	}
}

// TestNotMade: why a directory cannot be made decides what to do about it.
func TestNotMade(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		unix.EEXIST: "cannot make /d: file exists; `tare clean` removes it",
		unix.EROFS:  "cannot make /d: read-only file system; mount the file system for writing, or choose another directory with --data",
		unix.ENOSPC: "cannot make /d: no space left on device; free some space",
		unix.EACCES: "cannot make /d: permission denied; see that its parent can be written to",
	} {
		if got := notMade("/d", errno).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
