package kubevirt

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
)

// program is tare in its image. It is the last file of a Tree, so that who finds it has all of them.
const program = "tare"

// Tree writes the root file system of this pod, which is tare's image, as a tar file: without what
// is mounted in it, and without files that only root reads.
func Tree(w io.Writer) error {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return fmt.Errorf("cannot read what is mounted: %w", err)
	}
	mounted := map[string]bool{}
	for _, m := range mounts {
		mounted[m.Mountpoint] = m.Mountpoint != "/"
	}
	return tree(w, "/", mounted)
}

// tree writes what is in root, the program last. Folders where something is mounted stay empty.
func tree(w io.Writer, root string, mounted map[string]bool) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(root, path)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil // the folder's header is written
		case err != nil || rerr != nil:
			return errors.Join(err, rerr)
		case name == "." || name == program || mounted[path] && !e.IsDir():
			return nil
		}
		if err := add(out, path, name); err != nil {
			return err
		}
		if mounted[path] {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil {
		err = add(out, filepath.Join(root, program), program)
	}
	return errors.Join(err, out.Close())
}

func add(out *tar.Writer, path, name string) (err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	var link string
	var from io.Reader
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	case mode.IsRegular():
		f, err := os.Open(path) //nolint:gosec // of tare's own image
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		from = f
	case !mode.IsDir():
		return nil // devices and sockets are the guest's own
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name = name
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
	if err := out.WriteHeader(h); err != nil || from == nil {
		return err
	}
	_, err = io.Copy(out, from)
	return err
}
