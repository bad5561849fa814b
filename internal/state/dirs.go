package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Dirs makes directories that only this user can look into, below a base such
// as RunDir or LibDir.
type Dirs struct{ Base string }

// Make makes the directory Base/name with mode 0700 and returns its path; it is
// fine if it is there. A symbolic link, a file, or another user's directory in
// its place is refused: in it our files would be another's to change.
func (d Dirs) Make(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if err := os.MkdirAll(d.Base, 0o755); err != nil { //nolint:gosec // as /run and /var/lib; the directories in it are private
		return "", fmt.Errorf("directory for %s: %w; run as root", name, err)
	}
	if err := private(d.Base, false); err != nil {
		return "", err
	}
	path := filepath.Join(d.Base, name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("directory for %s: %w; run as root", name, err)
	}
	return path, private(path, true)
}

// Remove removes Base/name and all in it. It is idempotent, follows no links,
// and refuses while something is mounted there: removing would go through into
// what is mounted.
func (d Dirs) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return removeTree(filepath.Join(d.Base, name))
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 200 || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not a name for a directory", name)
	}
	return nil
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
		return fmt.Errorf("%s belongs to user %d, not to this one (%d); remove it", path, st.Uid, os.Geteuid())
	case strict && st.Mode&0o077 != 0:
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a directory needs x
			return fmt.Errorf("directory %s: %w", path, err)
		}
	case !strict && st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("%s can be written by other users; chmod go-w it", path)
	}
	return nil
}
