// Package devices fills /dev of a root directory, the same for every kind of sandbox.
//
// The data path: 1. the caller mounts a tmpfs; 2. Nodes and Links make in it what the OCI
// runtime specification requires (config-linux.md, "Default Devices"), less the terminals.
package devices

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Nodes makes null, zero, full, random, and urandom in dev. A user namespace may not make them;
// there the host's are mounted, as OCI runtimes do.
func Nodes(dev string) error {
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		path := filepath.Join(dev, name)
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))) //nolint:gosec // small numbers
		if errors.Is(err, unix.EPERM) {
			if err := bind(path, "/dev/"+name); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("making %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // as these devices are everywhere
			return err
		}
	}
	return nil
}

// bind mounts a device over a new file.
func bind(path, device string) error {
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = unix.Mount(device, path, "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return nil
}

// Links makes the links from dev to a process's own descriptors: fd, stdin, stdout, and stderr.
func Links(dev string) error {
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}
