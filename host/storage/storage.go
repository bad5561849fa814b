// Package storage says what a directory, file or device of this host is stored on, down to the
// hardware. Two figures of a disk are comparable only if their storage is the same.
//
// The data path: 1. mount finds the mount of the path in /proc/self/mountinfo
// (proc_pid_mountinfo(5)); 2. device finds its device in /sys/dev/block, and what lies below: a
// partition's disk, a loop device's file, the devices below device mapper and RAID
// (Documentation/ABI/stable/sysfs-block, slaves/ and queue/); 3. Describe joins everything into one line.
package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tare/param"
)

// deepest limits the depth of a stack of devices.
const deepest = 8

// Finder reads this host, or a test's tree.
type Finder struct {
	Sys    string // /sys
	Mounts func() ([]*mountinfo.Info, error)
	root   string // what paths are in: that of another process; "": this process's
}

// New makes the finder of this host.
func New() Finder {
	return Finder{Sys: "/sys", Mounts: func() ([]*mountinfo.Info, error) { return mountinfo.GetMounts(nil) }}
}

// Of makes the finder of another process's paths, which may be in another mount namespace. It follows no symbolic links to absolute paths.
func Of(pid int) Finder {
	at := fmt.Sprintf("/proc/%d", pid)
	return Finder{Sys: "/sys", root: at + "/root", Mounts: func() ([]*mountinfo.Info, error) {
		f, err := os.Open(at + "/mountinfo") //nolint:gosec // in /proc
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return mountinfo.GetMountsFromReader(f, nil)
	}}
}

// Describe returns one line about a path, or "" if nothing is known:
//
//	ext4 (rw,relatime) on dm-0 (LVM vg-data) on md0 (raid0) on nvme0n1 (894GiB, SAMSUNG MZ7, scheduler none, not rotational) and nvme1n1 (...)
func (f Finder) Describe(path string) string { return f.path(path, deepest) }

// Device is Describe for a block device by its numbers.
func (f Finder) Device(major, minor uint32) string { return f.device(major, minor, deepest) }

func (f Finder) path(path string, depth int) string {
	var st unix.Stat_t
	if path = f.real(path); unix.Stat(f.root+path, &st) != nil {
		return ""
	}
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		return f.device(unix.Major(st.Rdev), unix.Minor(st.Rdev), depth)
	}
	m := f.mount(path)
	if m == nil {
		return ""
	}
	text := fmt.Sprintf("%s (%s)", m.FSType, options(m))
	major, minor := uint32(m.Major), uint32(m.Minor) //nolint:gosec // numbers of devices
	if major == 0 && strings.HasPrefix(m.Source, "/dev/") && unix.Stat(f.root+m.Source, &st) == nil {
		major, minor = unix.Major(st.Rdev), unix.Minor(st.Rdev) // btrfs has numbers of its own
	}
	if major == 0 {
		return text // in memory, in the network, or an overlay
	}
	return join(text, f.device(major, minor, depth))
}

// real follows symbolic links. For another process's root, Go would read /proc/PID/root as one.
func (f Finder) real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil && f.root == "" {
		return p
	}
	return path
}

// options returns the options of the mount and of the file system, each once.
func options(m *mountinfo.Info) string {
	all := strings.Split(m.Options, ",")
	for o := range strings.SplitSeq(m.VFSOptions, ",") {
		if o != "" && !slices.Contains(all, o) && !strings.Contains(o, "dir=") { // of an overlay: paths of an engine
			all = append(all, o)
		}
	}
	return strings.Join(all, ",")
}

// mount finds the mount of the path: the one at the longest directory above it. Of several there, the
// last counts.
func (f Finder) mount(path string) *mountinfo.Info {
	all, err := f.Mounts()
	if err != nil {
		return nil
	}
	var best *mountinfo.Info
	for _, m := range all {
		at := strings.TrimSuffix(m.Mountpoint, "/")
		if (path == m.Mountpoint || strings.HasPrefix(path, at+"/")) && (best == nil || len(m.Mountpoint) >= len(best.Mountpoint)) {
			best = m
		}
	}
	return best
}

// device describes a block device and what is below it.
func (f Finder) device(major, minor uint32, depth int) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(f.Sys, "dev", "block", fmt.Sprintf("%d:%d", major, minor)))
	if err != nil || depth == 0 {
		return ""
	}
	return f.at(dir, depth)
}

func (f Finder) at(dir string, depth int) string {
	name, read := filepath.Base(dir), func(file string) string { return line(filepath.Join(dir, file)) }
	if depth == 0 {
		return name
	}
	switch below, _ := filepath.Glob(filepath.Join(dir, "slaves", "*")); {
	case read("partition") != "":
		return join(name, f.at(filepath.Dir(dir), depth-1))
	case read("loop/backing_file") != "":
		return join(name+" (loop device of a file)", f.path(read("loop/backing_file"), depth-1))
	case len(below) > 0:
		var parts []string
		for _, b := range below {
			if d, err := filepath.EvalSymlinks(b); err == nil {
				parts = append(parts, f.at(d, depth-1))
			}
		}
		return join(name+kind(read), strings.Join(parts, " and "))
	}
	return name + kind(read)
}

func join(above, below string) string {
	if below == "" {
		return above
	}
	return above + " on " + below
}

// kind says in brackets what a device is.
func kind(read func(string) string) string {
	var parts []string
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	if dm := read("dm/name"); dm != "" {
		uuid, _, _ := strings.Cut(read("dm/uuid"), "-")
		add("%s", strings.TrimSpace(uuid+" "+dm))
	}
	add("%s", read("md/level"))
	if sectors, err := strconv.ParseInt(read("size"), 10, 64); err == nil && sectors > 0 {
		add("%s", size(sectors*512))
	}
	add("%s", read("device/model"))
	if s := read("queue/scheduler"); s != "" {
		if _, after, ok := strings.Cut(s, "["); ok {
			s, _, _ = strings.Cut(after, "]")
		}
		add("scheduler %s", s)
	}
	add("%s", map[string]string{"0": "not rotational", "1": "rotational"}[read("queue/rotational")])
	add("%s cache", read("queue/write_cache"))
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// size returns a rounded size, as people name disks by it.
func size(n int64) string {
	for _, unit := range []int64{1 << 30, 1 << 20} {
		if n >= 4*unit {
			n = n / unit * unit
			break
		}
	}
	return param.FormatSize(n)
}

// line returns the first line of a small file, or "" if it cannot be read.
func line(path string) string {
	b, err := os.ReadFile(path) //nolint:gosec // below /sys
	if err != nil {
		return ""
	}
	s, _, _ := strings.Cut(strings.ToValidUTF8(string(b[:min(len(b), 4096)]), "?"), "\n")
	return strings.TrimSpace(s)
}
