package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/host/ext4"
	"tare/host/freemem"
	"tare/param"
	"tare/trial"
	"tare/volume"
)

// mostReserve is the most that tare leaves free of a file system: the host's other programs write to it too. Of a small one it leaves
// a twentieth.
const mostReserve = 1 << 30

// room refuses files for which this host has no room.
func (p *Place) room(rooms []trial.Room) error {
	onDisk, inMemory, onTmpfs, copies := int64(0), int64(0), int64(0), 0
	for _, r := range rooms {
		switch {
		case r.Copies > 0:
			tree := p.Root
			if r.Image != "" {
				tree = p.Images[r.Image].Root
			}
			n, err := blocks(tree)
			if err != nil {
				return fmt.Errorf("cannot determine the size of a copy of the root file system: %w", err)
			}
			onDisk += int64(r.Copies) * (n + ext4.Overhead)
			copies += r.Copies
		case r.Volume != nil && r.Volume.Medium == volume.Memory:
			onTmpfs += r.Bytes
			inMemory += r.Bytes
		case r.Volume != nil || r.Root:
			onDisk += r.Bytes
		default:
			inMemory += r.Bytes
		}
	}
	what, instead := "the workload's files need", "set a smaller size"
	if copies > 0 {
		what, instead = fmt.Sprintf("%d copies of the root file system need", copies), "use fewer sandboxes at once, or an overlay"
	}
	if err := fits(p.Data, onDisk, what, instead+", or name a directory on another disk (--data)"); err != nil {
		return err
	}
	if err := fits(p.Memory, onTmpfs, "the workload's files need", "set a smaller size"); err != nil || inMemory == 0 {
		return err
	}
	if free, err := freemem.Read(); err == nil && inMemory > free {
		return fmt.Errorf("this host has %s of memory free, and the workload's files need %s of it; set a smaller size, or a target on a disk", param.AboutSize(free), param.AboutSize(inMemory))
	}
	return nil
}

// fits refuses files that are larger than the free space of a directory's file system. The directory may be missing as yet.
func fits(dir string, need int64, what, instead string) error {
	if need == 0 || dir == "" {
		return nil
	}
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	for at := dir; errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		err = unix.Statfs(at, &st)
	}
	if err != nil {
		return fmt.Errorf("cannot read how much space is free in %s: %w", dir, err)
	}
	free, reserve := int64(st.Bavail)*st.Bsize, min(int64(st.Blocks)*st.Bsize/20, mostReserve) //nolint:gosec // of a real disk
	if need <= free-reserve {
		return nil
	}
	return fmt.Errorf("%s has %s free, of which tare leaves %s, and %s %s; %s", dir, param.AboutSize(free), param.AboutSize(reserve), what, param.AboutSize(need), instead)
}

// blocks counts the disk blocks of the files below a directory, in bytes. A missing directory has no blocks. So before a
// run has built the tree, a plan refuses fewer copies than the run.
func blocks(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since it was listed
		}
		n += st.Blocks * 512
		return err
	})
	return n, err
}
