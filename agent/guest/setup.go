package guest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/volume"
)

// tree is where the root of the commands is mounted in the initramfs.
const tree = "/tree"

// setUp is OpSetUp. What fails leaves the machine half made: the host gives it up.
func (m *machine) setUp(body json.RawMessage) (any, error) {
	var s Setup
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return nil, errOnce
	}
	m.done = true
	now := unix.NsecToTimespec(s.Now.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		return nil, fmt.Errorf("cannot set the clock to %s: %w", s.Now, err)
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return nil, fmt.Errorf("cannot set the host name %q: %w", s.Hostname, err)
	}
	if err := limits(); err != nil {
		return nil, err
	}
	if err := m.modules.run(m.sys.FS(), true); err != nil {
		fmt.Fprintln(os.Stderr, "tare: guest:", err) // if something needs the module, it fails below or in the workload
	}
	if err := network(s); err != nil {
		return nil, err
	}
	if s.Memory > 0 {
		group, err := bound("/limits", s.Memory)
		if err != nil {
			return nil, err
		}
		m.limits = group
	}
	options := ""
	if s.Root.Kind == MountBlock {
		options = noZeroing
	}
	if err := m.mount(s.Root, tree, options); err != nil {
		return nil, err
	}
	if err := mountAll(tree, inRoot(s.OwnRun)); err != nil {
		return nil, err
	}
	if err := fill(path.Join(tree, "dev")); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.Volumes, func(v Volume) bool { return strings.HasPrefix(v.Target, volume.Root+"/") }) {
		// The root may have no folders for them.
		if err := mountAll(tree, []mount{{"tmpfs", volume.Root[1:], "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755,size=64k"}}); err != nil {
			return nil, err
		}
	}
	for i := range s.Volumes {
		if err := m.volume(&s.Volumes[i]); err != nil {
			return nil, err
		}
	}
	if err := enter(tree); err != nil {
		return nil, err
	}
	return m.up()
}

// limits sets the resource limits of a service under systemd, which containers and the
// host's processes have. The kernel's defaults are lower.
func limits() error {
	const cur, most, locked = 1024, 524288, 8 << 20
	for resource, l := range map[int]unix.Rlimit{
		unix.RLIMIT_NOFILE: {Cur: cur, Max: most}, unix.RLIMIT_MEMLOCK: {Cur: locked, Max: locked},
	} {
		if err := unix.Setrlimit(resource, &l); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	return nil
}

// volume mounts a volume or makes its device.
func (m *machine) volume(v *Volume) error {
	at := path.Join(tree, v.Target)
	if !v.Device {
		if err := m.mount(v.Mount, at, ""); err != nil {
			return err
		}
		if v.Kind == MountBlock { // mke2fs makes it, and no other sandbox has it
			_ = os.Remove(path.Join(at, "lost+found"))
		}
		return nil
	}
	name, err := waitBlock(m.sys.FS(), v.Source, deviceWithin)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path.Join("/dev", name), &st); err != nil {
		return fmt.Errorf("the device %s: %w", name, err)
	}
	if err := unix.Mknod(at, unix.S_IFBLK|0o660, int(st.Rdev)); err != nil { //nolint:gosec // a device's number
		return fmt.Errorf("making %s: %w", v.Target, err)
	}
	return nil
}

// deviceWithin is how long a device may take to appear.
const deviceWithin = 5 * time.Second

// noZeroing keeps the kernel from zeroing the inode tables of a new ext4 in the background
// (Documentation/admin-guide/ext4.rst, init_itable). The kernel would write 130 MB of zeros to the root in the
// first seconds of each machine. They are not the workload's writes, and a copy of the image would grow by them.
const noZeroing = "noinit_itable"

// mount mounts what the host offers.
func (m *machine) mount(mt Mount, target, options string) error {
	flags, source, fstype := uintptr(unix.MS_NODEV|unix.MS_RDONLY), mt.Source, "virtiofs"
	if mt.Writable {
		flags &^= unix.MS_RDONLY
	}
	switch mt.Kind {
	case MountVirtiofs:
	case MountBlock:
		name, err := waitBlock(m.sys.FS(), mt.Source, deviceWithin)
		if err != nil {
			return err
		}
		source, fstype = path.Join("/dev", name), cmp.Or(mt.FS, FSExt4)
		if err := m.modules.fileSystem(fstype); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown kind of mount %q; use %s or %s", mt.Kind, MountVirtiofs, MountBlock)
	}
	if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // a mount point
		return err
	}
	if err := unix.Mount(source, target, fstype, flags, options); err != nil {
		if mt.Kind == MountVirtiofs && errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("%w: the machine has no such tag", err)
		}
		return fmt.Errorf("cannot mount the %s %s at %s: %w", mt.Kind, mt.Source, target, err)
	}
	return nil
}

func waitBlock(sys fs.FS, serial string, within time.Duration) (string, error) {
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		name, err := findBlock(sys, serial)
		if err == nil || time.Now().After(deadline) {
			return name, err
		}
	}
}

// findBlock returns the block device with that serial, such as vda or sda. virtio_blk has it in
// "serial" (Documentation/ABI/testing/sysfs-block). A SCSI disk has it in the page of vital product
// data 0x80, behind four bytes (SPC-4, 7.8.17).
func findBlock(sys fs.FS, serial string) (string, error) {
	devices, err := fs.Glob(sys, "block/*")
	if err != nil {
		return "", err
	}
	var seen []string
	for _, d := range devices {
		b, err := fs.ReadFile(sys, path.Join(d, "serial"))
		if err != nil {
			if b, err = fs.ReadFile(sys, path.Join(d, "device/vpd_pg80")); err != nil || len(b) < 4 {
				continue
			}
			b = b[4:]
		}
		s := strings.TrimSpace(string(b))
		if s == serial {
			return path.Base(d), nil
		}
		seen = append(seen, fmt.Sprintf("%q", s))
	}
	return "", fmt.Errorf("no block device has the serial %q; there are %s", serial, strings.Join(seen, ", "))
}

// up describes the machine as it is now.
func (m *machine) up() (Up, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Up{}, err
	}
	cpus, err := onlineCPUs(m.sys.FS())
	if err != nil {
		return Up{}, err
	}
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Up{}, err
	}
	memory, err := memTotal(string(b))
	if err != nil {
		return Up{}, err
	}
	return Up{Kernel: unix.ByteSliceToString(name.Release[:]), CPUs: cpus, Memory: memory, Boot: m.began, Ready: m.ready.at}, nil
}
