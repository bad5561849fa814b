package rootfs

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Whole makes a tree that the whole of the host's root file system fits on: this binary, and a
// folder for each directory in shown, which are to be mounted on it read-only. A sandbox has its
// own /proc, /sys, /dev, /tmp and /run. points are more directories that the tree must have, for
// other mounts.
func Whole(ctx context.Context, cacheDir, binary string, points []string) (t Tree, shown []string, err error) {
	l := newList()
	if shown, err = ofHost(l, "/"); err == nil {
		for _, p := range points {
			top := "/" + strings.Split(strings.TrimPrefix(filepath.Clean(p), "/"), "/")[0]
			if !slices.Contains(shown, top) {
				l.put(p, entry{mode: fs.ModeDir | 0o755})
			}
		}
		err = programs(l, binary, runtime.GOARCH)
	}
	if err == nil {
		t.Digest, err = l.digest(ctx)
	}
	if err == nil {
		err = store(ctx, cacheDir, l, &t)
	}
	if err != nil {
		return Tree{}, nil, fmt.Errorf("cannot make the root file system in %s: %w", cacheDir, err)
	}
	return t, shown, nil
}

// ofHost adds folders for the directories of root, and its links, to the list, and returns the
// directories that hold files of the host, each mount of a disk or a network file system on its
// own.
func ofHost(l *list, root string) (shown []string, err error) {
	own := []string{"proc", "sys", "dev", "tmp", "run"}
	for _, dir := range append(own, "data", "volumes") {
		l.put(dir, entry{mode: fs.ModeDir | 0o755})
	}
	l.put("tmp", entry{mode: fs.ModeDir | fs.ModeSticky | 0o777})
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch {
		case slices.Contains(own, e.Name()) || e.Name() == "lost+found":
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(filepath.Join(root, e.Name()))
			if err != nil {
				return nil, err
			}
			l.put(e.Name(), entry{mode: fs.ModeSymlink, link: target})
		case e.IsDir():
			l.put(e.Name(), entry{mode: fs.ModeDir | 0o755})
			shown = append(shown, "/"+e.Name())
		}
	}
	tops := slices.Clone(shown)
	below, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		top := "/" + strings.Split(strings.TrimPrefix(m.Mountpoint, "/"), "/")[0]
		return m.Mountpoint == top || !slices.Contains(tops, top) || !holdsFiles(m.FSType), false
	})
	if err != nil {
		return nil, err
	}
	for _, m := range below {
		if st, err := os.Stat(m.Mountpoint); err == nil && st.IsDir() {
			shown = append(shown, m.Mountpoint)
		}
	}
	slices.Sort(shown) // a directory before what is mounted in it
	return slices.Compact(shown), nil
}

// holdsFiles reports whether a type of file system is for files that stay: those of disks
// (/proc/filesystems has them without "nodev") and of networks.
func holdsFiles(fstype string) bool {
	switch fstype {
	case "zfs", "nfs", "nfs4", "cifs", "9p", "virtiofs":
		return true
	}
	f, err := os.Open("/proc/filesystems")
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // read only
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "\t"); ok && name == fstype {
			return true
		}
	}
	return false
}
