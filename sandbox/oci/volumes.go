package oci

import (
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tare/host/loop"
	"tare/sandbox"
	"tare/volume"
)

// folder is where the file system of an image is mounted for the runtime, in a mount
// namespace of its own.
func (c *container) folder(m sandbox.Mount) string { return filepath.Join(c.bundle, "volume-"+m.Name) }

// images are the mounts that are file systems in files.
func (c *container) images() (out []sandbox.Mount) {
	for _, m := range c.spec.Mounts {
		if m.Medium == volume.Image && m.Mode == volume.Filesystem {
			out = append(out, m)
		}
	}
	return out
}

// mountImages mounts them in the calling thread's mount namespace.
func (c *container) mountImages() error {
	for _, m := range c.images() {
		if err := unix.Mount(c.devices[m.Name].Path, c.folder(m), "ext4", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("volume %s: mounting %s: %w", m.Name, m.Source, err)
		}
	}
	return nil
}

// addVolumes adds the volumes to a configuration. Those that are not at /data are in a file
// system in memory, because the root may have no folders for them.
func (c *container) addVolumes(to *specs.Spec) error {
	for _, m := range c.images() {
		if err := os.Mkdir(c.folder(m), 0o700); err != nil {
			return err
		}
	}
	folders := false
	for _, m := range c.spec.Mounts {
		if m.Mode == volume.Block {
			if err := addDevice(to, m, c.devices[m.Name]); err != nil {
				return fmt.Errorf("volume %s: %w", m.Name, err)
			}
			continue
		}
		if m.Medium == volume.Bind {
			access := "rw"
			if m.ReadOnly {
				access = "ro"
			}
			to.Mounts = append(to.Mounts, specs.Mount{Destination: m.Path(), Type: "bind", Source: m.Source, Options: []string{"rbind", access}})
			continue
		}
		if m.Name != volume.Data && !folders {
			folders = true
			to.Mounts = append(to.Mounts, specs.Mount{Destination: volume.Root, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=755", "size=64k"}})
		}
		source := m.Source
		if m.Medium == volume.Image {
			source = c.folder(m)
		}
		to.Mounts = append(to.Mounts, specs.Mount{Destination: m.Path(), Type: "bind", Source: source, Options: []string{"rbind", "rw"}})
	}
	return nil
}

// addDevice lets the container have a block device: config-linux.md, "Devices" and "Allowed
// Device list".
func addDevice(to *specs.Spec, m sandbox.Mount, d *loop.Device) error {
	number, err := d.Number()
	if err != nil {
		return err
	}
	major, minor, mode := int64(unix.Major(number)), int64(unix.Minor(number)), os.FileMode(0o660)
	to.Linux.Devices = append(to.Linux.Devices, specs.LinuxDevice{Path: m.Path(), Type: "b", Major: major, Minor: minor, FileMode: &mode})
	to.Linux.Resources.Devices = append(to.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "b", Major: &major, Minor: &minor, Access: "rwm"})
	return nil
}
