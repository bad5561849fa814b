package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/rootless"
)

// applier puts the layers of an image over each other, as the OCI's image specification says
// (layer.md). The unpacker of packages would change them: it moves files to /usr, leaves manuals
// out and gives everything to root.
type applier struct {
	*unpacker
	owners bool                 // this user can give files to others
	fresh  map[string]bool      // paths of the layer under way, which its whiteouts spare
	times  map[string]time.Time // of folders, set when all is unpacked
	wanted string               // the last folder that was looked for,
	at     string               // and where it is
}

const whiteout = ".wh." // begins the name of a file that hides another

func newApplier(dir string) (*applier, error) {
	u, err := newUnpacker(dir)
	if err != nil {
		return nil, err
	}
	return &applier{unpacker: u, owners: rootless.Root(), times: map[string]time.Time{}}, nil
}

// layer unpacks one layer over what is there.
func (a *applier) layer(r io.Reader) error {
	a.fresh = map[string]bool{}
	return eachMember(r, func(h *tar.Header, r io.Reader) error {
		if h.Typeflag == tar.TypeXGlobalHeader {
			return nil
		}
		return a.member(h, r)
	})
}

func (a *applier) member(h *tar.Header, r io.Reader) error {
	name, err := plain(h.Name)
	if err != nil || name == "." {
		return err
	}
	dir, base := path.Split(name)
	if hidden, ok := strings.CutPrefix(base, whiteout); ok {
		return a.hidden(dir, hidden)
	}
	if h.Uid < 0 || h.Gid < 0 || h.Uid > math.MaxUint32 || h.Gid > math.MaxUint32 {
		return fmt.Errorf("its owner %d:%d is not a user ID and a group ID", h.Uid, h.Gid)
	}
	if dir, err = a.folder(dir); err != nil {
		return err
	}
	name = path.Join(dir, base)
	if h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock || h.Typeflag == tar.TypeFifo {
		if dir == "dev" {
			return nil // a sandbox has a /dev of its own
		}
		return errors.New("it is a device or a pipe, which an image may contain only in /dev")
	}
	if err := a.count(0); err != nil {
		return err
	}
	a.mark(name)
	switch h.Typeflag {
	case tar.TypeDir:
		return a.mkdir(name, h)
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return a.file(name, h, r)
	case tar.TypeSymlink:
		return a.symlink(name, h)
	case tar.TypeLink:
		return a.hardlink(name, h.Linkname)
	}
	return fmt.Errorf("it has the unknown type %q", h.Typeflag)
}

// plain is a member's name relative to the root.
func plain(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		name = "."
	}
	return name, nil
}

// mark notes a path and the folders above it as the layer's own.
func (a *applier) mark(name string) {
	for ; name != "." && !a.fresh[name]; name = path.Dir(name) {
		a.fresh[name] = true
	}
}

// folder returns where a folder is, and makes it if need be.
func (a *applier) folder(dir string) (string, error) {
	if a.wanted == dir && a.at != "" {
		return a.at, nil
	}
	at, st, err := a.walk(dir, true)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("/%s is not a folder", at)
	}
	if err == nil {
		a.wanted, a.at = dir, at
	}
	return at, err
}

// mostLinks is how many links the kernel follows in one path: path_resolution(7).
const mostLinks = 40

// walk follows a path as a program would whose root is the tree: an absolute link stays in it.
// The result has no links. If create, missing folders are made.
func (a *applier) walk(name string, create bool) (at string, st fs.FileInfo, err error) {
	at = "."
	if st, err = a.root.Lstat(at); err != nil {
		return at, nil, err
	}
	todo, links := strings.Split(name, "/"), 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		if part == "" || part == "." {
			continue
		}
		if !st.IsDir() {
			return at, st, fmt.Errorf("/%s is not a folder: %w", at, unix.ENOTDIR)
		}
		next := path.Join(at, part)
		if part == ".." {
			next = path.Dir(at)
		}
		if st, err = a.root.Lstat(next); errors.Is(err, fs.ErrNotExist) && create {
			if err = errors.Join(a.count(0), a.root.Mkdir(next, 0o755)); err == nil {
				err = a.root.Chmod(next, 0o755) // whatever the umask, as other unpackers make it
			}
			if err == nil {
				st, err = a.root.Lstat(next)
			}
		}
		if err != nil {
			return next, nil, err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > mostLinks {
			return at, st, fmt.Errorf("/%s: %w", next, unix.ELOOP)
		}
		target, err := a.root.Readlink(next)
		if err != nil {
			return at, nil, err
		}
		if path.IsAbs(target) {
			at = "."
		}
		if st, err = a.root.Lstat(at); err != nil {
			return at, nil, err
		}
		todo = append(strings.Split(target, "/"), todo...)
		if len(todo) > 4<<10 {
			return at, st, fmt.Errorf("/%s: %w", next, unix.ENAMETOOLONG)
		}
	}
	return at, st, nil
}

// hidden is a whiteout in dir: of everything below it from lower layers, or of one name.
func (a *applier) hidden(dir, name string) error {
	if name == "" || name == "." || name == ".." {
		return errors.New("it hides a folder that contains it")
	}
	at, st, err := a.walk(dir, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil // there is nothing to hide
	}
	if err != nil {
		return err
	}
	a.at = ""
	switch {
	case name == whiteout+".opq":
		return a.hideBelow(at, st)
	case strings.HasPrefix(name, whiteout):
		return nil // aufs(5)'s own, which has no meaning here
	}
	return a.hide(path.Join(at, name))
}

func (a *applier) hide(name string) error {
	if !a.fresh[name] {
		return a.root.RemoveAll(name)
	}
	st, err := a.root.Lstat(name)
	if err != nil {
		return err
	}
	return a.hideBelow(name, st)
}

func (a *applier) hideBelow(dir string, st fs.FileInfo) error {
	if !st.IsDir() {
		return nil
	}
	entries, err := fs.ReadDir(a.root.FS(), dir)
	for _, e := range entries {
		err = errors.Join(err, a.hide(path.Join(dir, e.Name())))
	}
	return err
}

// clear removes what a member replaces.
func (a *applier) clear(name string) error {
	a.at = ""
	return a.root.RemoveAll(name)
}

func (a *applier) mode(h *tar.Header) fs.FileMode {
	mode := h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSticky)
	if h.Typeflag == tar.TypeDir {
		mode |= h.FileInfo().Mode() & fs.ModeSetgid
	}
	switch {
	case a.owners:
		return mode
	case h.Typeflag == tar.TypeDir:
		return mode | 0o700
	}
	return mode | 0o400
}

func (a *applier) own(name string, h *tar.Header) error {
	if !a.owners {
		return nil
	}
	return a.root.Lchown(name, h.Uid, h.Gid)
}

func (a *applier) mkdir(name string, h *tar.Header) error {
	st, err := a.root.Lstat(name)
	if err == nil && !st.IsDir() {
		err = a.clear(name)
	}
	if err == nil && !st.IsDir() || errors.Is(err, fs.ErrNotExist) {
		err = a.root.Mkdir(name, 0o700)
	}
	if err != nil {
		return err
	}
	a.times[name] = h.ModTime
	return errors.Join(a.own(name, h), a.root.Chmod(name, a.mode(h)))
}

// file writes a regular file. It drops set-user-ID and set-group-ID bits: other users of the host
// can read the tree, and in a sandbox they have no effect (no_new_privs of prctl(2)).
func (a *applier) file(name string, h *tar.Header, r io.Reader) (err error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	f, err := a.root.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if err := a.clear(name); err != nil {
			return err
		}
		f, err = a.root.OpenFile(name, flags, 0o600)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, io.LimitReader(r, maxBytes-a.bytes+1))
	if err != nil {
		return err
	}
	a.files-- // counted as a member
	if err := a.count(n); err != nil {
		return err
	}
	if a.owners {
		err = f.Chown(h.Uid, h.Gid)
	}
	at := unix.NsecToTimeval(h.ModTime.UnixNano())
	return errors.Join(err, f.Chmod(a.mode(h)), unix.Futimes(int(f.Fd()), []unix.Timeval{at, at}))
}

func (a *applier) symlink(name string, h *tar.Header) error {
	if h.Linkname == "" || strings.ContainsRune(h.Linkname, 0) {
		return fmt.Errorf("it is a link to %q", h.Linkname)
	}
	if err := errors.Join(a.clear(name), a.root.Symlink(h.Linkname, name), a.own(name, h)); err != nil {
		return err
	}
	at := unix.NsecToTimespec(h.ModTime.UnixNano())
	// No folder in the name is a link, and only this process writes to the tree.
	return unix.UtimesNanoAt(unix.AT_FDCWD, path.Join(a.dir, name), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

func (a *applier) hardlink(name, target string) error {
	target, err := plain(target)
	if err != nil {
		return err
	}
	dir, base := path.Split(target)
	at, _, err := a.walk(dir, false)
	if err != nil {
		return fmt.Errorf("it is a link to %s, which the image does not have: %w", target, err)
	}
	if target = path.Join(at, base); target == name {
		return nil
	}
	if st, err := a.root.Lstat(target); err != nil || st.IsDir() {
		return fmt.Errorf("it is a link to %s, which is not a file of the image", target)
	}
	if err := a.clear(name); err != nil {
		return err
	}
	return a.root.Link(target, name)
}

// finish makes what every sandbox needs, and sets the times of folders.
func (a *applier) finish() error {
	for _, name := range dressed()[:3] {
		if _, err := a.root.Lstat(name); err == nil {
			return fmt.Errorf("it has a file /%s, a name that tare needs; rename it", name)
		}
	}
	// Sandboxes mount there, some from outside of the tree: a link would lead them elsewhere.
	for _, name := range append(mountPoints(), dressed()[3]) {
		if st, err := a.root.Lstat(name); err == nil && !st.IsDir() {
			return fmt.Errorf("its /%s is not a folder, so nothing can be mounted there; make it a folder", name)
		}
	}
	for _, name := range mountPoints() {
		if err := a.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := a.basics(); err != nil {
		return err
	}
	for name, at := range a.times {
		if st, err := a.root.Lstat(name); err == nil && st.IsDir() {
			if err := a.root.Chtimes(name, at, at); err != nil {
				return err
			}
		}
	}
	return nil
}
