package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// portWithin is how long the port may take to appear: the device announces its ports to the
// driver after the driver is loaded.
const portWithin = 10 * time.Second

// openPort opens the port with the host's name for it:
// https://docs.kernel.org/admin-guide/devices.html, virtio_console.c. In a machine with a
// virtio socket it connects to the host by that socket. once reports that the stream serves
// one host only.
func openPort(sys *os.Root, within time.Duration) (port *os.File, once bool, err error) {
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		if present(sys.FS(), vsockDevice) {
			if port, err = dialHost(); err == nil {
				return port, true, nil
			}
		} else if dev, failed := findPort(sys.FS()); failed == nil {
			port, err = os.OpenFile(path.Join("/dev", dev), os.O_RDWR|unix.O_NOCTTY, 0) //nolint:gosec // the kernel names it
			return port, false, err
		} else {
			err = failed
		}
		if time.Now().After(deadline) {
			return nil, false, err
		}
	}
}

// vsockDevice is the alias of virtio's socket device: 19 of VIRTIO 1.2, 5.10.1.
const vsockDevice = DevicePrefix + "d00000013v*"

// dialHost connects to the host's VsockPort: vsock(7).
func dialHost() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the virtio socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_HOST, Port: VsockPort}); err != nil {
		return nil, errors.Join(fmt.Errorf("the host does not answer on port %d of the virtio socket: %w", VsockPort, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "vsock"), nil
}

// findPort returns the device of the port, such as vport0p1.
func findPort(sys fs.FS) (string, error) {
	names, err := fs.Glob(sys, "class/virtio-ports/*/name")
	if err != nil {
		return "", err
	}
	for _, n := range names {
		b, err := fs.ReadFile(sys, n)
		if err == nil && strings.TrimSpace(string(b)) == PortName {
			return path.Base(path.Dir(n)), nil
		}
	}
	return "", fmt.Errorf("cannot find the virtio port %s among %d: %w", PortName, len(names), errNoPort)
}

var errNoPort = errors.New("the machine needs -device virtio-serial-pci and -device virtserialport, and the kernel virtio_console")
