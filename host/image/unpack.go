package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/internal/files"
)

const (
	maxFiles = 400_000  // entries of one tree
	maxBytes = 12 << 30 // of one tree; TensorFlow with all it needs has 2 GiB
)

// unpacker puts entries into a tree. It cannot write outside of the tree: every access goes
// through os.Root, which follows no link out of it.
type unpacker struct {
	dir   string
	root  *os.Root
	files int
	bytes int64
	made  map[string]bool // directories known to exist
}

func newUnpacker(dir string) (*unpacker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &unpacker{dir: dir, root: root, made: map[string]bool{}}, nil
}

func (u *unpacker) close() { _ = u.root.Close() }

// merged are the folders that are links in a merged /usr. Packages name files by either
// path.
func merged() []string { return []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} }

// base makes the folders that packages expect.
func (u *unpacker) base() error {
	for _, d := range merged() {
		if err := u.mkdir("/usr/"+d, 0o755); err != nil {
			return err
		}
		if err := u.root.Symlink("usr/"+d, d); err != nil {
			return err
		}
	}
	return nil
}

// defaults makes the mount points, and basics if no package and no recipe has them.
func (u *unpacker) defaults() error {
	for _, d := range append(mountPoints(), "run", "etc", "root", "var") {
		if err := u.mkdir(d, 0o755); err != nil {
			return err
		}
	}
	for _, d := range []string{"/tmp", "/var/tmp"} { // pods do not run as root
		if err := u.mkdir(d, 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	return u.basics()
}

// mountPoints are where sandboxes mount something.
func mountPoints() []string { return []string{"proc", "sys", "dev", "data", "tmp"} }

// basics makes the files that C libraries look for, unless they are there.
func (u *unpacker) basics() error {
	for _, f := range []struct{ name, text string }{
		{"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
		{"/etc/group", "root:x:0:\nnogroup:x:65534:\n"},
		{"/etc/hosts", "127.0.0.1\tlocalhost\n"},
		{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	} {
		if _, err := u.root.Lstat(f.name[1:]); err == nil {
			continue
		}
		if err := u.file(f.name, 0o644, strings.NewReader(f.text)); err != nil {
			return err
		}
	}
	return nil
}

func checkName(name string) error {
	if strings.ContainsRune(name, 0) {
		return fmt.Errorf("the name %q contains a zero byte", name)
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return fmt.Errorf("the name %q points outside the tree", name)
	}
	return nil
}

// place checks a member's name and returns it relative to the root, through the
// merged /usr.
func place(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		return ".", nil
	}
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(merged(), first) {
		name = "usr/" + name
	}
	return name, nil
}

func (u *unpacker) count(n int64) error {
	u.files++
	u.bytes += n
	if u.files > maxFiles || u.bytes > maxBytes {
		return fmt.Errorf("the tree has more than %d entries or %d GiB, which is too large for the image of an application", maxFiles, maxBytes>>30)
	}
	return nil
}

// parents makes the folders above a name.
func (u *unpacker) parents(name string) error {
	dir := path.Dir(name)
	if dir == "." || u.made[dir] {
		return nil
	}
	if st, err := u.root.Stat(dir); err != nil || !st.IsDir() {
		if err := u.mkdir(dir, 0o755); err != nil { // mkdir sets the mode whatever the umask
			return err
		}
	}
	u.made[dir] = true
	return nil
}

func (u *unpacker) mkdir(name string, mode fs.FileMode) error {
	name, err := place(name)
	if err != nil || name == "." {
		return err
	}
	if st, err := u.root.Stat(name); err == nil && st.IsDir() {
		if l, err := u.root.Lstat(name); err == nil && l.IsDir() {
			return u.root.Chmod(name, mode&(fs.ModePerm|fs.ModeSticky)|0o700)
		}
		return nil // keep a link to a folder, as dpkg does
	}
	if err := u.count(0); err != nil {
		return err
	}
	if err := u.parents(name); err != nil {
		return err
	}
	if err := u.root.Mkdir(name, 0o755); err != nil {
		return err
	}
	u.made[name] = true
	return u.root.Chmod(name, mode&(fs.ModePerm|fs.ModeSticky)|0o700)
}

// free removes an earlier entry of that name: a later entry replaces it.
func (u *unpacker) free(name string) error {
	if err := u.parents(name); err != nil {
		return err
	}
	st, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.IsDir() {
		return fmt.Errorf("%s is a folder already", name)
	}
	return u.root.Remove(name)
}

// file writes a regular file. It drops set-user-ID and set-group-ID bits, because
// everything in a sandbox runs as one user.
func (u *unpacker) file(name string, mode fs.FileMode, src io.Reader) (err error) {
	name, err = place(name)
	if err != nil {
		return err
	}
	if err := u.free(name); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, io.LimitReader(src, maxBytes-u.bytes+1))
	if err != nil {
		return err
	}
	if err := u.count(n); err != nil {
		return err
	}
	return f.Chmod(mode&fs.ModePerm | 0o400)
}

func (u *unpacker) symlink(name, target string) error {
	name, err := place(name)
	if err != nil {
		return err
	}
	if !inside(name, target) {
		return fmt.Errorf("the link %s -> %s points outside the tree", name, target)
	}
	if st, err := u.root.Lstat(name); err == nil && st.IsDir() {
		// The package replaces a folder with a link; dpkg keeps the folder.
		return nil
	}
	if err := u.count(0); err != nil {
		return err
	}
	if err := u.free(name); err != nil {
		return err
	}
	return u.root.Symlink(target, name)
}

// inside reports whether the text of a link's target stays in the tree. os.Root, and later
// the new root, bound chains of links.
func inside(name, target string) bool {
	if target == "" || strings.ContainsRune(target, 0) {
		return false
	}
	if strings.HasPrefix(target, "/") {
		return true // it is relative to the tree, once that is the root
	}
	depth := strings.Count(name, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}

func (u *unpacker) hardlink(name, target string) error {
	name, err := place(name)
	if err != nil {
		return err
	}
	if target, err = place(target); err != nil {
		return err
	}
	if err := u.count(0); err != nil {
		return err
	}
	if err := u.free(name); err != nil {
		return err
	}
	return u.root.Link(target, name)
}

// slim reports whether to leave a member out, as Debian's slim images do: manuals,
// translations, and documents except the copyright.
func slim(name string) bool {
	for _, dir := range []string{"usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/", "usr/share/linda/", "usr/share/groff/", "usr/share/doc-base/"} {
		if strings.HasPrefix(name, dir) {
			return name != "usr/share/locale/locale.alias"
		}
	}
	return strings.HasPrefix(name, "usr/share/doc/") && path.Base(name) != "copyright"
}

// tar unpacks a package's members.
func (u *unpacker) tar(r io.Reader) error {
	return eachMember(r, func(h *tar.Header, r io.Reader) error {
		name, err := place(h.Name)
		if err != nil || slim(name) {
			return err
		}
		return u.member(h, name, r)
	})
}

// eachMember calls do for each member of an archive, and stops at the first error.
func eachMember(r io.Reader, do func(*tar.Header, io.Reader) error) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(h, t); err != nil {
			return fmt.Errorf("member %q: %w", h.Name, err)
		}
	}
}

func (u *unpacker) member(h *tar.Header, name string, r io.Reader) error {
	mode := fs.FileMode(h.Mode) & fs.ModePerm //nolint:gosec // masked
	if h.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.mkdir(name, mode)
	case tar.TypeReg:
		return u.file(name, mode, r)
	case tar.TypeSymlink:
		return u.symlink(name, h.Linkname)
	case tar.TypeLink:
		return u.hardlink(name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return errors.New("it is a device or a pipe, which an image must not contain")
	}
	return fmt.Errorf("it has the unknown type %q", h.Typeflag)
}

// unpack checks a package against its signed hash and unpacks it.
func (a apt) unpack(ctx context.Context, d deb, u *unpacker) error {
	file := filepath.Join(a.dir, "debs", d.File)
	sum, err := files.Hash(file)
	if err != nil {
		return err
	}
	if sum != d.SHA256 {
		return errors.Join(fmt.Errorf("the file has the SHA-256 %s, but the archive's signed list says %s; tare has removed the file, try again", sum, d.SHA256), os.Remove(file))
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now)                                      // the time of last use, which prune reads
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file) //nolint:gosec // our own arguments
	var stderr bytes.Buffer
	cmd.Stderr = &limited{w: &stderr, left: 4 << 10}
	cmd.WaitDelay = 2 * time.Second // then close pipes that another process holds
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = u.tar(out)
	if err != nil {
		// dpkg-deb's decompressor is a separate process, which outlives it and holds both
		// pipes. It ends when the reader closes.
		_ = out.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(out, 1<<20)) // padding after the end
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
