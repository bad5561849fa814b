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

// portWithin is how long the port may take to appear: the driver learns of its
// ports by messages of the device, after it was loaded.
const portWithin = 10 * time.Second

// openPort finds the port by the name that the host gave it and opens it:
// https://docs.kernel.org/admin-guide/devices.html, virtio_console.c.
func openPort(sys *os.Root, within time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		dev, err := findPort(sys.FS())
		if err == nil {
			return os.OpenFile(path.Join("/dev", dev), os.O_RDWR|unix.O_NOCTTY, 0) //nolint:gosec // the kernel names it
		}
		if time.Now().After(deadline) {
			return nil, err
		}
	}
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
	return "", fmt.Errorf("there is no virtio port %s among %d: %w", PortName, len(names), errNoPort)
}

var errNoPort = errors.New("the machine needs -device virtio-serial-pci and -device virtserialport, and the kernel virtio_console")
