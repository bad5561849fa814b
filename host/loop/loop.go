// Package loop makes files into block devices: loop(4).
//
// The data path: 1. Attach takes a free device for a file; 2. sandboxes open the device by
// Number; 3. the kernel frees it when the last of them, and the Device, have closed it, also
// when this program is killed (LO_FLAGS_AUTOCLEAR).
package loop

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/sandbox"
	"tare/volume"
)

// Device is a loop device that has a file.
type Device struct {
	Path string // such as /dev/loop0
	f    *os.File
}

// most is how often Attach asks for a free device that another program takes first.
const most = 64

// Attach makes the file at path a block device. With direct, requests go past the host's page
// cache (O_DIRECT), as far as the file system can.
func Attach(path string, direct bool) (*Device, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a volume's own file
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the device has it
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("this host has no loop devices: %w; load the kernel's module loop", err)
	}
	defer control.Close()                                                                                   //nolint:errcheck // nothing was written
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}} //nolint:gosec // a descriptor is small
	if direct {
		config.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	copy(config.Info.File_name[:], path)
	for range most {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no loop device is free: %w", err)
		}
		d := &Device{Path: "/dev/loop" + strconv.Itoa(n)}
		if d.f, err = os.OpenFile(d.Path, os.O_RDWR, 0); err != nil {
			return nil, err
		}
		if err = unix.IoctlLoopConfigure(int(d.f.Fd()), &config); err == nil {
			return d, d.writable()
		}
		_ = d.f.Close()
		if !errors.Is(err, unix.EBUSY) { // otherwise another program took it in between
			return nil, fmt.Errorf("cannot make %s a block device: %w", path, err)
		}
	}
	return nil, errors.New("no loop device stays free; stop the programs that take them")
}

// writable undoes BLKROSET, blockdev(8): a device keeps it from its last file, and mount(2) would then say that
// permission is denied. It gives the device back if it fails.
func (d *Device) writable() error {
	if err := unix.IoctlSetPointerInt(int(d.f.Fd()), unix.BLKROSET, 0); err != nil {
		return errors.Join(fmt.Errorf("cannot make %s writable: %w", d.Path, err), d.Close())
	}
	return nil
}

// Close gives the device back. It stays while a sandbox has it open.
func (d *Device) Close() error {
	if d == nil {
		return nil
	}
	return d.f.Close()
}

// Number is the device's number, for mknod(2).
func (d *Device) Number() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.f.Fd()), &st); err != nil {
		return 0, err
	}
	return st.Rdev, nil
}

// Volumes are the block devices behind a sandbox's volumes, by the volume's name.
type Volumes map[string]*Device

// Open opens a device for each volume that needs one on this host: those that the sandbox
// sees as a device, and those with a file system in a file.
func Open(mounts []sandbox.Mount) (_ Volumes, err error) {
	out := Volumes{}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	for _, m := range mounts {
		var d *Device
		switch {
		case m.Medium == volume.Device:
			d = &Device{Path: m.Source}
			d.f, err = os.OpenFile(m.Source, os.O_RDWR, 0)
		case m.Mode == volume.Block || m.Medium == volume.Image:
			d, err = Attach(m.Source, m.Medium != volume.Memory)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", m.Name, err)
		}
		out[m.Name] = d
	}
	return out, nil
}

// Close gives all of them back.
func (v Volumes) Close() error {
	var errs []error
	for _, d := range v {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
