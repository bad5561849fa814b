package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// sealTime is the time of every entry, in seconds since 1970: 1 January 2020.
// It is not zero because times in ZIP archives, which Python makes, begin with 1980.
const sealTime = 1577836800

// seal gives every entry of the tree one time, and returns its digest: the
// SHA-256 over each entry's name, mode, link and content in the order of names,
// every field preceded by its length.
func seal(ctx context.Context, dir string) (Tree, error) {
	var t Tree
	h := sha256.New()
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		fields := []string{rel, strconv.FormatUint(uint64(info.Mode()), 8), "", ""}
		switch {
		case info.IsDir():
			dirs = append(dirs, p)
		case info.Mode()&fs.ModeSymlink != 0:
			if fields[2], err = os.Readlink(p); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			sum, err := files.Sum(p)
			if err != nil {
				return err
			}
			fields[3] = string(sum)
			t.Bytes += info.Size()
		default:
			return fmt.Errorf("%s is not a file, folder or link", rel)
		}
		for _, f := range fields {
			fmt.Fprintf(h, "%d:%s", len(f), f)
		}
		t.Files++
		if info.IsDir() {
			return nil
		}
		return settle(p)
	})
	if err != nil {
		return Tree{}, err
	}
	for _, d := range dirs { // after their contents
		if err := settle(d); err != nil {
			return Tree{}, err
		}
	}
	t.Digest = hex.EncodeToString(h.Sum(nil))
	return t, nil
}

// settle sets the times of an entry. It does not follow a link.
func settle(p string) error {
	ts := []unix.Timespec{{Sec: sealTime}, {Sec: sealTime}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, p, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("cannot set the time of %s: %w", p, err)
	}
	return nil
}
