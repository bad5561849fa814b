package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// lockFile is held while a cluster starts or is removed. The names of groups and namespaces
// are one set for the machine, so the lock is too.
const lockFile = "/run/lock/" + groupName

// takeLock waits for the lock. Daemons inherit it until they have recorded themselves.
func (l *lab) takeLock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(lockFile), 0o755); err != nil { //nolint:gosec // the mode that it has everywhere
		return nil, err
	}
	err = until(ctx, stopWithin, nil, func(context.Context) (err error) {
		l.lock, err = openLock(lockFile)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := l.own(); err != nil {
		_ = l.lock.Close()
		return nil, err
	}
	return func() { _ = l.lock.Close() }, nil
}

// own writes this lab's folder into the lock file. It refuses if another clone's cluster is
// there: its files would be left, and its user surprised.
func (l *lab) own() error {
	b, err := os.ReadFile(lockFile)
	if err != nil {
		return err
	}
	owner := strings.TrimSpace(string(b))
	if _, err := os.Stat(owner); owner != "" && owner != l.run && err == nil { //nolint:gosec // root wrote it
		return fmt.Errorf("a cluster of another clone is there, in %s; run make lab-down in that clone", owner)
	}
	return os.WriteFile(lockFile, []byte(l.run+"\n"), 0o600)
}

// openLock opens and locks a file. down removes the file while it has the lock, so what was
// locked may not be there any more.
func openLock(path string) (_ *os.File, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the lab's own
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another up or down holds %s: %w; wait until it ends", path, err)
	}
	held, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(held, there) {
		return nil, fmt.Errorf("%s was removed just now", path)
	}
	return f, nil
}

// down removes the cluster.
func (l *lab) down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("the cluster is root's; run with sudo")
	}
	unlock, err := l.takeLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.remove(ctx); err != nil {
		return err
	}
	if err := os.Remove(lockFile); err != nil {
		return err
	}
	l.done("nothing of the lab is left; the programs stay in %s", l.bin)
	return nil
}

// remove removes all that up made: by the records, and by the names that up gives, so that it
// also works if up was killed at any moment, or the folder is gone.
func (l *lab) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	records, err := l.recorded()
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := r.kill(); err != nil {
			return err
		}
	}
	g, err := findGroups()
	if err != nil {
		return err
	}
	if g.exist() {
		if err := g.destroy(ctx); err != nil {
			return err
		}
	}
	if err := removeNetwork(); err != nil {
		return err
	}
	if err := detach(ctx, l.run); err != nil {
		return err
	}
	if err := unmountBelow(l.run); err != nil {
		return err
	}
	return l.removeFolder(ctx)
}

// detach gives back the loop devices of volumes, whose files are below dir. A kubelet puts a
// second loop device on a volume, to hold it: that one first.
func detach(ctx context.Context, dir string) error {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f) //nolint:gosec // of the kernel
		if err != nil {
			continue // detached meanwhile
		}
		if !below(strings.TrimSuffix(strings.TrimSpace(string(b)), " (deleted)"), dir) {
			continue
		}
		device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(f)))
		on, err := output(exec.CommandContext(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", device)) //nolint:gosec // a device
		if err != nil {
			return err
		}
		for _, d := range append(strings.Fields(on), device) {
			if _, err := output(exec.CommandContext(ctx, "losetup", "--detach", d)); err != nil { //nolint:gosec // a device
				return err
			}
		}
	}
	return nil
}

// unmountBelow unmounts what is mounted in the lab's folder, on the host. Nothing should be: the
// nodes have mounts of their own.
func unmountBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return err
	}
	for _, mount := range slices.Backward(mounts) {
		if err := unix.Unmount(mount.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("cannot unmount %s: %w", mount.Mountpoint, err)
		}
	}
	return nil
}

// removeFolder removes the folder of the cluster. Mounts of a node that has just ended may
// need a moment to go.
func (l *lab) removeFolder(ctx context.Context) error {
	for {
		err := os.RemoveAll(l.run)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
