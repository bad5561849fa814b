package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// recordName is the file in each directory of a run that says that tare made it. It is
// written first, locked with flock(2) while the run lives, and removed last. A directory
// without it is removed only if it is empty.
const recordName = ".made-by-tare"

var (
	// errForeign marks a directory without tare's record, or of another user.
	errForeign = errors.New("tare may not have made it; inspect it, then remove it by hand")
	errInUse   = errors.New("in use by a run")
)

func isRecord(name string) bool { return name == recordName }

// isRuntimeRecord recognises the record of an OCI runtime's state directory: runtime.json
// or a new one that is being written.
func isRuntimeRecord(name string) bool {
	return name == runtimeRecord || strings.HasPrefix(name, runtimeRecord+".")
}

// base is an open directory. Nothing outside it can be reached through it.
type base struct {
	root *os.Root
	path string // real, without links
}

// openBase opens a directory component by component and follows no link, so that nobody
// can redirect it after the path was resolved. openat2(2) would do the same in one call,
// on kernels that have it.
func openBase(path string) (*base, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for name := range strings.SplitSeq(strings.Trim(filepath.Clean(path), "/"), "/") {
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			return nil, fmt.Errorf("%s: %q is a link or a file, not a directory, and links are not followed here", path, name)
		}
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
		_ = unix.Close(fd)
		fd = next
	}
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w; is /proc mounted?", path, err)
	}
	return &base{root: root, path: filepath.Clean(path)}, nil
}

// openOwn opens a directory of this user that no other user can write to. It follows links
// in the path, which belong to the user or the system.
func openOwn(path string) (*base, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	b, err := openBase(real)
	if err != nil {
		return nil, err
	}
	at, err := b.root.Stat(".")
	if err == nil {
		err = ownedBy(at, path)
	}
	if err == nil && at.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("other users can write to %s; run chmod go-w on it", path)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *base) close() { _ = b.root.Close() }

// ownedBy checks that a file belongs to this user.
func ownedBy(at fs.FileInfo, path string) error {
	if uid := uidOf(at); uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d", path, uid, os.Geteuid())
	}
	return nil
}

// record says who made a directory.
type record struct {
	Pid   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// make makes the directory name with its record in it, and returns the record, locked.
// The caller closes the file.
func (b *base) make(name string) (*os.File, error) {
	path := filepath.Join(b.path, name)
	if err := b.root.Mkdir(name, 0o700); err != nil {
		return nil, notMade(path, errors.Unwrap(err))
	}
	f, err := b.root.OpenFile(filepath.Join(name, recordName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(notMade(path, errors.Unwrap(err)), b.root.Remove(name))
	}
	// Run on a file system without locks too. There clean relies on the host's
	// lock alone to know that nobody uses the directory.
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	text, err := json.Marshal(record{Pid: os.Getpid(), Since: time.Now().Truncate(time.Second)})
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making %s: %w", path, err), b.remove(name, isRecord, f), f.Close())
	}
	return f, nil
}

// notMade says what to do about a directory that cannot be made.
func notMade(path string, err error) error {
	do := "see that its parent can be written to"
	switch {
	case errors.Is(err, fs.ErrExist):
		do = "`tare clean` removes it if a killed run left it"
	case errors.Is(err, unix.EROFS):
		do = "mount the file system for writing, or choose another directory with --data"
	case errors.Is(err, unix.ENOSPC):
		do = "free some space, or choose another directory with --data"
	}
	return fmt.Errorf("cannot make %s: %w; %s", path, err, do)
}

// look finds out whether the directory name may be removed: it belongs to this user, and
// either has a record that no live process holds, or is empty. If not, the error wraps
// errForeign or errInUse and calls the directory "it", or wraps fs.ErrNotExist if the
// directory does not exist. mine is the record that the caller itself holds, or nil.
func (b *base) look(name string, isRecord func(string) bool, mine *os.File) (*found, error) {
	at, err := b.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !at.IsDir() {
		return nil, fmt.Errorf("it is not a directory, so %w", errForeign)
	}
	if err := ownedBy(at, "it"); err != nil {
		return nil, fmt.Errorf("%w, so %w", err, errForeign)
	}
	sub, err := b.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	f := &found{sub: sub, mine: mine}
	if err := f.read(at, isRecord); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// found is a directory that may be removed.
type found struct {
	sub           *os.Root
	mine          *os.File // the record that the caller holds already
	held          *os.File // one record, so that no run takes the directory meanwhile
	rest, records []string
}

func (f *found) close() {
	if f.held != nil {
		_ = f.held.Close()
	}
	_ = f.sub.Close()
}

func (f *found) read(at fs.FileInfo, isRecord func(string) bool) error {
	// OpenRoot follows a link that replaced the directory meanwhile.
	now, err := f.sub.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(at, now) {
		return fmt.Errorf("it was replaced while tare looked at it, so %w", errForeign)
	}
	entries, err := fs.ReadDir(f.sub.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := f.sub.Lstat(e.Name())
		if err == nil && isRecord(e.Name()) && info.Mode().IsRegular() && ownedBy(info, "") == nil {
			f.records = append(f.records, e.Name())
		} else {
			f.rest = append(f.rest, e.Name())
		}
	}
	if len(f.records) == 0 {
		if len(f.rest) > 0 {
			return fmt.Errorf("it has no record (%s), so %w", recordName, errForeign)
		}
		return nil
	}
	// Do not request the caller's own lock again: a child that was just forked may
	// share it until its exec.
	if f.mine != nil && f.isMine() {
		return nil
	}
	if f.held, err = f.sub.OpenFile(f.records[0], os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err != nil {
		return err
	}
	if err := unix.Flock(int(f.held.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("it is %w", errInUse)
	}
	return nil
}

// isMine reports whether the record found is the one that the caller holds.
func (f *found) isMine() bool {
	held, err := f.mine.Stat()
	if err != nil {
		return false
	}
	there, err := f.sub.Lstat(f.records[0])
	return err == nil && os.SameFile(held, there)
}

// remove removes the directory name if look allows it. The directory may be gone already.
// It removes links and does not follow them. It removes nothing while something is mounted
// in the directory. It removes the records last, so that a removal that was killed can be
// repeated.
func (b *base) remove(name string, isRecord func(string) bool, mine *os.File) error {
	f, err := b.look(name, isRecord, mine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", filepath.Join(b.path, name), err)
	}
	defer f.close()
	if err := unmounted(filepath.Join(b.path, name)); err != nil {
		return err
	}
	for _, n := range append(f.rest, f.records...) {
		if err := f.sub.RemoveAll(n); err != nil {
			return fmt.Errorf("removing: %w%s", err, rootHint(err))
		}
	}
	if err := b.root.Remove(name); err != nil {
		return fmt.Errorf("removing: %w%s", err, rootHint(err))
	}
	return nil
}

// unmounted checks that nothing is mounted at a path or below it.
func unmounted(path string) error {
	points, err := mountsBelow(path)
	if err == nil && len(points) > 0 {
		err = fmt.Errorf("%s is still mounted, and removing would delete what is in it; unmount it", points[0])
	}
	return err
}

// mountsBelow lists the mount points of this process at some directories and below them, in
// the order of the mount table.
func mountsBelow(dirs ...string) (points []string, err error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		for _, dir := range dirs {
			if skip, _ = mountinfo.PrefixFilter(filepath.Clean(dir))(m); !skip {
				break
			}
		}
		return skip, false
	})
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w; is /proc mounted?", err)
	}
	for _, m := range mounts {
		points = append(points, m.Mountpoint)
	}
	return points, nil
}
