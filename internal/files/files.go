// Package files has what many packages do with files: copy one, hash one, replace one whole or not
// at all, and add up a directory.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Exists reports whether there is something at the path, be it a link that leads nowhere.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Read passes the content of a file to w.
func Read(w io.Writer, path string) error {
	f, err := os.Open(path) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	_, err = io.Copy(w, f)
	return err
}

// Copy makes the file to, with the mode, and the content of from. What was there is written over.
func Copy(to, from string, mode fs.FileMode) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	return errors.Join(Read(f, from), f.Close())
}

// Sum returns the SHA-256 of a file, in 32 bytes.
func Sum(path string) ([]byte, error) {
	h := sha256.New()
	err := Read(h, path)
	return h.Sum(nil), err
}

// Hash is Sum in hexadecimal digits.
func Hash(path string) (string, error) {
	sum, err := Sum(path)
	return hex.EncodeToString(sum), err
}

// Size adds up the sizes of the regular files below a directory, in bytes.
func Size(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// Replace writes a file by way of one beside it, whose name begins with prefix, and a rename: readers
// see what was there or all of the new content, and a failure leaves what was there. A program that
// is killed leaves the file beside it.
func Replace(path, prefix string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), prefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	if err = write(f); err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
