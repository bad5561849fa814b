package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tare/internal/files"
	"tare/internal/tinyelf"
	"tare/volume"
)

// Dress puts this program into a tree as /tare, and the smallest programs as /tare-hello
// and /tare-pause, unless the tree has the same files already. The digest does not cover
// them: they change with every build of tare, the image does not. Each is renamed into
// place, so that programs that run from the tree are not disturbed.
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

// put writes the program to path, unless the file there has the same content.
func put(path string, src io.ReadSeeker) error {
	if same, err := sameContent(path, src); err != nil || same {
		return err
	}
	err := files.Replace(path, buildingPrefix, 0o755, func(w io.Writer) error {
		if _, err := src.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, src)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot put %s into the tree: %w", filepath.Base(path), err)
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
