package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dirs makes directories that only this user can look into, below a base such
// as RunDir or LibDir.
type Dirs struct{ Base string }

// Make makes the directory Base/name with mode 0700 and a record that tare made it, and
// returns its path. The directory may exist already. Make refuses a symbolic link, a file,
// another user's directory, and one without tare's record: another user could change our
// files in it, and clean would not remove it.
func (d Dirs) Make(name string) (string, error) {
	b, err := d.open(name)
	if err != nil {
		return "", err
	}
	defer b.close()
	path := filepath.Join(d.Base, name)
	held, err := b.make(name)
	if err == nil {
		return path, held.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	f, err := b.look(name, isRecord, nil)
	if err != nil {
		return "", fmt.Errorf("using %s: %w", path, err)
	}
	f.close()
	return path, private(path, true)
}

// open opens the base, and makes it if it does not exist.
func (d Dirs) open(name string) (*base, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.Base, 0o755); err != nil { //nolint:gosec // as /run and /var/lib; the directories in it are private
		return nil, fmt.Errorf("directory for %s: %w; run as root", name, err)
	}
	b, err := openOwn(d.Base)
	if err != nil {
		return nil, fmt.Errorf("directory for %s: %w", name, err)
	}
	return b, nil
}

// Remove removes Base/name and all in it. It is idempotent and follows no links. It
// refuses a directory without tare's record, one that another process uses, and a tree
// with a mount in it: removing would delete what is mounted.
func (d Dirs) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	b, err := openOwn(d.Base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer b.close()
	return b.remove(name, isRecord, nil)
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 200 || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q cannot name a directory", name)
	}
	return nil
}

// Own makes a directory for this user's files, with mode 0700, and checks that it is safe.
// It must be a real directory, not a link, that belongs to this user. No other user may be
// able to write to it, or to replace it or a folder above it.
func Own(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	if err := private(path, true); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return above(real)
}

// Usable reports whether Own may make a directory below dir: dir, or its nearest existing
// parent, is a directory of this user that only this user can write to.
func Usable(dir string) bool {
	for {
		at, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != "/" {
			dir = filepath.Dir(dir)
			continue
		}
		return err == nil && at.IsDir() && uidOf(at) == os.Geteuid() && at.Mode().Perm()&0o002 == 0 &&
			unix.Access(dir, unix.W_OK|unix.X_OK) == nil
	}
}

// above checks the folders above a path. They must belong to this user or to the system
// (the owner of /). If all users can write to one, it must have the sticky bit, so that
// they cannot replace the files of others. Groups are trusted: many systems give each user
// a group of their own.
func above(path string) error {
	top, err := os.Stat("/")
	if err != nil {
		return err
	}
	system := uidOf(top)
	for path != "/" {
		path = filepath.Dir(path)
		at, err := os.Stat(path)
		if err != nil {
			return err
		}
		if uid := uidOf(at); uid != 0 && uid != system && uid != os.Geteuid() {
			return fmt.Errorf("%s belongs to user %d, who could replace what is in it", path, uid)
		}
		if at.Mode().Perm()&0o002 != 0 && at.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("%s can be written by every user, who could replace what is in it; remove that right with chmod o-w", path)
		}
	}
	return nil
}

// uidOf is a file's owner, -1 if it is unknown.
func uidOf(at fs.FileInfo) int {
	st, ok := at.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(st.Uid)
}

// private checks that a path is a true directory of ours that no other user can
// write to; strict makes its mode 0700.
func private(path string, strict bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fmt.Errorf("directory %s: %w", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory (a link is not followed here); remove it", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to user %d; ask its owner or root to remove it", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0 && (strict || st.Mode&unix.S_ISVTX == 0):
		return fmt.Errorf("%s can be written by other users; inspect its contents, then run chmod go-w on it", path)
	case strict && st.Mode&0o077 != 0:
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a directory needs x
			return fmt.Errorf("directory %s: %w", path, err)
		}
	}
	return nil
}
