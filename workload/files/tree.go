package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// tree is a tree of small files, the same in every trial. It has depth levels of directories, with
// width of them in each directory. The files are spread over the directories of the last level.
type tree struct {
	top    string
	dirs   []string // all, parents before children; the last are leaves
	leaves []string
	files  int
	size   int64
	pool   []byte // what the files' contents are cut from
}

// shift is the number of different contents. shiftBy spreads the files over them.
const (
	shift   = 1 << 16
	shiftBy = 4099
)

func newTree(top string, c config) *tree {
	t := &tree{top: top, files: c.Files, size: c.Size, leaves: []string{top}}
	t.dirs = []string{top}
	for range c.Depth {
		var next []string
		for _, parent := range t.leaves {
			for i := range c.Width {
				next = append(next, parent+"/d"+strconv.Itoa(i))
			}
		}
		t.dirs, t.leaves = append(t.dirs, next...), next
	}
	t.pool = make([]byte, c.Size+shift)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(t.pool) // the same contents in every trial
	return t
}

// path returns a file's path. The letter is f, or r after a rename.
func (t *tree) path(letter string, i int) string {
	return fmt.Sprintf("%s/%s%06d", t.leaves[i%len(t.leaves)], letter, i)
}

func (t *tree) content(i int) []byte {
	at := int64(i) * shiftBy % shift
	return t.pool[at : at+t.size]
}

// entries returns the number of entries of a directory.
func (t *tree) entries(dir, width int) int {
	leaf := dir - (len(t.dirs) - len(t.leaves))
	if leaf < 0 {
		return width
	}
	return (t.files - leaf + len(t.leaves) - 1) / len(t.leaves)
}

func (t *tree) makeDirs() error {
	for _, d := range t.dirs {
		if err := os.MkdirAll(d, 0o755); err != nil { //nolint:gosec // as other programs make them
			return err
		}
	}
	return nil
}

func (t *tree) makeFiles() error {
	for i := range t.files {
		if err := os.WriteFile(t.path("f", i), t.content(i), 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return nil
}

func (t *tree) make() error {
	if err := t.makeDirs(); err != nil {
		return err
	}
	return t.makeFiles()
}

// count walks through a directory and returns the number of its files and of their bytes. It skips
// files of one name.
func count(top, without string) (files int, size int64, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && d.Name() == without:
			return fs.SkipDir
		case err != nil || d.IsDir() || d.Name() == without:
			return err
		}
		info, err := d.Info()
		if err == nil {
			files++
			size += info.Size()
		}
		return err
	})
	return files, size, err
}

// expect returns an error if a directory does not have this many files and bytes.
func expect(top, without string, files int, size int64) error {
	n, b, err := count(top, without)
	if err != nil {
		return fmt.Errorf("counting the files: %w", err)
	}
	if n != files || b != size {
		return fmt.Errorf("%s has %d files with %d bytes, but %d files with %d bytes were made", top, n, b, files, size)
	}
	return nil
}

// verify compares the whole tree with what was made.
func (t *tree) verify(letter string) error {
	if err := expect(t.top, "", t.files, int64(t.files)*t.size); err != nil {
		return err
	}
	for i := range t.files {
		b, err := os.ReadFile(t.path(letter, i))
		if err != nil {
			return fmt.Errorf("reading a file that was made: %w", err)
		}
		if !bytes.Equal(b, t.content(i)) {
			return fmt.Errorf("the content of %s is not what was written", t.path(letter, i))
		}
	}
	return nil
}
