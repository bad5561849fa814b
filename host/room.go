package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

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
	onDisk, inMemory, onTmpfs := int64(0), int64(0), int64(0)
	for _, r := range rooms {
		switch {
		case r.Volume != nil && r.Volume.Medium == volume.Memory:
			onTmpfs += r.Bytes
			inMemory += r.Bytes
		case r.Volume != nil || r.Root:
			onDisk += r.Bytes
		default:
			inMemory += r.Bytes
		}
	}
	if err := fits(p.Data, onDisk, "set a smaller size, or name a directory on another disk (--data)"); err != nil {
		return err
	}
	if err := fits(p.Memory, onTmpfs, "set a smaller size"); err != nil || inMemory == 0 {
		return err
	}
	if free, err := freemem.Read(); err == nil && inMemory > free {
		return fmt.Errorf("this host has %s of memory free, and the workload's files need %s of it; set a smaller size, or a target on a disk", param.AboutSize(free), param.AboutSize(inMemory))
	}
	return nil
}

// fits refuses files that are larger than the free space of a directory's file system. The directory may be missing as yet.
func fits(dir string, need int64, instead string) error {
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
	return fmt.Errorf("%s has %s free, of which tare leaves %s, and the workload's files need %s; %s", dir, param.AboutSize(free), param.AboutSize(reserve), param.AboutSize(need), instead)
}
