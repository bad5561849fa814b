package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"tare/internal/files"
)

// rootFolder is the folder of a root file system, such as debootstrap makes. It is copied, as
// one layer, because nothing may change it while it is used.
type rootFolder string

func (r rootFolder) key(ctx context.Context) (string, error) {
	h := sha256.New()
	err := r.walk(ctx, func(_, rel string, info fs.FileInfo) error {
		_, err := fmt.Fprintf(h, "%q %s\n", rel, identity(info))
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// walk calls visit for every entry but the root and what Dress put in, in order. What is mounted
// below the folder is left out, but for its mount point.
func (r rootFolder) walk(ctx context.Context, visit func(p, rel string, info fs.FileInfo) error) error {
	top, err := os.Stat(string(r))
	if err != nil {
		return err
	}
	return writeTree(ctx, string(r), dressed(), func(p, rel string, d fs.DirEntry) error {
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := visit(p, rel, info); err != nil || !d.IsDir() || device(info) == device(top) {
			return err
		}
		return fs.SkipDir
	})
}

func device(st fs.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Dev
	}
	return 0
}

func (r rootFolder) find(ctx context.Context) (*found, func(), error) {
	return &found{layers: []func() (io.ReadCloser, error){func() (io.ReadCloser, error) {
		out, in := io.Pipe()
		go func() {
			t, first := tar.NewWriter(in), map[[2]uint64]string{}
			err := r.walk(ctx, func(p, rel string, info fs.FileInfo) error { return writeOwned(t, p, rel, info, first) })
			if err == nil {
				err = t.Close()
			}
			_ = in.CloseWithError(err) // it never fails
		}()
		return out, nil
	}}}, func() {}, nil
}

// writeOwned is writeEntry with owners, times, and hard links, of which it notes the first names.
func writeOwned(t *tar.Writer, p, rel string, info fs.FileInfo, first map[[2]uint64]string) error {
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if link, err = os.Readlink(p); err != nil {
			return err
		}
	}
	if info.Mode()&fs.ModeSocket != 0 {
		return nil // of a program that ran there
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Format, h.Uname, h.Gname = rel, tar.FormatPAX, "", ""
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 && h.Typeflag == tar.TypeReg {
		inode := [2]uint64{s.Dev, s.Ino}
		if h.Linkname = first[inode]; h.Linkname != "" {
			h.Typeflag, h.Size = tar.TypeLink, 0
			return t.WriteHeader(h)
		}
		first[inode] = rel
	}
	if err := t.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	return files.Read(t, p)
}
