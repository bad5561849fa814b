package imports

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

const maxEntries = 20_000 // of one folder

// Folder is a tree that is read without leaving it: links are skipped, and only regular files
// are read.
type Folder struct {
	root *os.Root
	name string
	left int64 // bytes that may still be read
}

// OpenFolder opens the user's folder. total bounds all reads below it, in bytes.
func OpenFolder(dir string, total int64) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder: %w", err)
	}
	return &Folder{root: root, name: dir, left: total}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// List returns the regular files and the folders in a folder below, in order of names, without
// links and other files. A missing folder counts as empty.
func (f *Folder) List(dir string) (files, folders []string, err error) {
	if st, err := f.root.Lstat(dir); err != nil || !st.IsDir() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		return nil, nil, nil
	}
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		return nil, nil, err
	}
	if len(entries) > maxEntries {
		return nil, nil, fmt.Errorf("%s has %d entries; tare reads at most %d", path.Join(f.name, dir), len(entries), maxEntries)
	}
	for _, e := range entries {
		switch {
		case e.IsDir():
			folders = append(folders, e.Name())
		case e.Type().IsRegular():
			files = append(files, e.Name())
		}
	}
	return files, folders, nil
}

// Read returns a regular file of at most limit bytes. For a missing file or a link, the error
// wraps fs.ErrNotExist.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	for dir := name; dir != "."; dir = path.Dir(dir) { // refuse links on the way, even within the tree
		st, err := f.root.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if dir == name && !st.Mode().IsRegular() || dir != name && !st.IsDir() {
			return nil, fmt.Errorf("%s is a link or not a regular file, so tare does not read it: %w", path.Join(f.name, name), fs.ErrNotExist)
		}
	}
	in, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	b, err := read(in, path.Join(f.name, name), min(limit, f.left))
	f.left -= int64(len(b))
	return b, err
}

// ReadFile reads the user's file, a regular file of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	if st, err := os.Stat(name); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; give a file", name)
	}
	in, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	return read(in, name, limit)
}

func read(in io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes, the most that tare reads", name, limit)
	}
	return b, nil
}

// First detects input that is read twice: an execution that counts as two trials would make
// intervals too narrow.
type First struct {
	names map[[sha256.Size]byte]string
}

// Same refuses content that was read before, under any name.
func (f *First) Same(name string, content []byte) error {
	sum := sha256.Sum256(content)
	if was, ok := f.names[sum]; ok {
		return fmt.Errorf("%s has the same content as %s, which was already given; give each result once", name, was)
	}
	if f.names == nil {
		f.names = map[[sha256.Size]byte]string{}
	}
	f.names[sum] = name
	return nil
}
