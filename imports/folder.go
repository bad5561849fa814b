package imports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

const maxEntries = 20_000 // of one folder

// Folder is a tree that is read and never left: links in it are passed over, and
// what is below another mount or a device is no file.
type Folder struct {
	root *os.Root
	name string
	left int64 // bytes that may still be read
}

// OpenFolder opens the folder that the user named; total bounds all that is read
// below it, in bytes.
func OpenFolder(dir string, total int64) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder: %w", err)
	}
	return &Folder{root: root, name: dir, left: total}, nil
}

// Close ends the use of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// List returns the plain files and the folders in a folder below, in order of
// names; links and others are left out. A folder that is not there is empty.
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
		return nil, nil, fmt.Errorf("%s has %d entries, more than the %d that are read", path.Join(f.name, dir), len(entries), maxEntries)
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

// Read returns a plain file of at most limit bytes. One that is not there, or is a
// link, gives an error that wraps fs.ErrNotExist.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	for dir := name; dir != "."; dir = path.Dir(dir) { // a link on the way leads elsewhere in the tree at best
		st, err := f.root.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if dir == name && !st.Mode().IsRegular() || dir != name && !st.IsDir() {
			return nil, fmt.Errorf("%s is a link or no plain file, and is not read: %w", path.Join(f.name, name), fs.ErrNotExist)
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

// ReadFile reads the one plain file that the user named, of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	if st, err := os.Stat(name); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file; name one", name)
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
		return nil, fmt.Errorf("%s is larger than the %d bytes that are read", name, limit)
	}
	return b, nil
}
