package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/internal/tinyelf"
	"tare/volume"
)

// Dress puts this program into a tree as /tare, and the smallest programs as
// /tare-hello and /tare-pause, where they are not what is there already. They
// are no part of the digest: they change with every build of tare, the image
// does not. Each is renamed into place, so that what runs from the tree goes on.
func Dress(tree, binary string) error {
	for name, program := range map[string]func() ([]byte, error){"tare-hello": tinyelf.Hello, "tare-pause": tinyelf.Pause} {
		code, err := program()
		if err != nil {
			return err
		}
		if err := put(filepath.Join(tree, name), bytes.NewReader(code)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(tree, volume.Root), 0o755); err != nil { //nolint:gosec // a mount point
		return err
	}
	binary, err := filepath.EvalSymlinks(binary)
	if err != nil {
		return err
	}
	f, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	return put(filepath.Join(tree, "tare"), f)
}

// put makes the program at path have that content.
func put(path string, src io.ReadSeeker) error {
	if same, err := sameContent(path, src); err != nil || same {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), buildingPrefix)
	if err != nil {
		return err
	}
	if _, err = src.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(tmp, src)
	}
	if err == nil {
		err = tmp.Chmod(0o755)
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot put %s into the tree: %w", filepath.Base(path), err), os.Remove(tmp.Name()))
	}
	return nil
}

func sameContent(path string, src io.ReadSeeker) (bool, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	size, err := src.Seek(0, io.SeekEnd)
	if err != nil || size != st.Size() || st.Mode() != 0o755 {
		return false, err
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	f, err := os.Open(path) //nolint:gosec // inside the tree
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // read only
	a, err := hashOf(f)
	if err != nil {
		return false, err
	}
	b, err := hashOf(src)
	return a == b, err
}

// Clone makes a copy of a tree at dir, an empty or missing folder, that shares
// the contents of files with it: for who must dress a tree that others use. The
// copy is as read-only as the original.
func Clone(tree, dir string) error {
	return filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if !d.IsDir() {
			return linkOrCopy(p, to, d)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // sandboxes with other users read it
			return err
		}
		return os.Chmod(to, info.Mode())
	})
}

func linkOrCopy(from, to string, d fs.DirEntry) error {
	err := os.Link(from, to)
	if err == nil || !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if d.Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	in, err := os.Open(from) //nolint:gosec // inside the tree
	if err != nil {
		return err
	}
	defer in.Close()                                                                   //nolint:errcheck // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()) //nolint:gosec // inside the copy
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(info.Mode()), out.Close())
}
