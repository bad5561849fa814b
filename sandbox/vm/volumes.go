package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"tare/agent/guest"
	"tare/host/ext4"
	"tare/host/rootfs"
	"tare/host/spawn"
	"tare/sandbox"
	"tare/volume"
)

// dataDisk is the file of a volume's disk, below the volume's directory.
const dataDisk = "tare-data.raw"

// isDisk reports whether a machine has the volume as a virtio disk: the other volumes are
// directories that virtiofs serves.
func (o *options) isDisk(v volume.Volume) bool {
	return o.rootfs == rootBlock || v.Mode == volume.Block || v.Medium == volume.Image
}

// checkVolumes returns an error if the options or QEMU do not provide what the volumes need.
func (o *options) checkVolumes(volumes []volume.Volume, q qemu) error {
	disks := 0
	for _, v := range volumes {
		if v.Medium == volume.Bind && o.rootfs == rootBlock {
			return o.noDirectories(v.Host)
		}
		if o.isDisk(v) {
			disks++
		}
	}
	_, err := o.threadsOf(disks, q)
	return err
}

// noDirectories refuses a directory of the host, which disks cannot show.
func (o *options) noDirectories(dir string) error {
	return fmt.Errorf("%s = %s: a machine with disks alone cannot have the host's directory %s; set %s = %s", paramRootfs, rootBlock, dir, paramRootfs, rootVirtiofs)
}

// serveVolumes gives the machine its volumes, each as a disk or as a share.
func (i *instance) serveVolumes(ctx context.Context, h *hardware) error {
	disks := 0
	for _, m := range i.spec.Mounts {
		if i.o.isDisk(m.Volume) {
			disks++
		}
	}
	threads, err := i.o.threadsOf(disks, i.qemu)
	if err != nil {
		return err
	}
	i.threads = threads
	for _, m := range i.spec.Mounts {
		if m.Medium == volume.Bind && i.o.rootfs == rootBlock {
			return i.o.noDirectories(m.Source) // a disk would be a file in it
		}
		v := guest.Volume{Mount: guest.Mount{Kind: guest.MountVirtiofs, Source: m.Name, Writable: !m.ReadOnly}, Target: m.Path(), Device: m.Mode == volume.Block}
		var err error
		if i.o.isDisk(m.Volume) {
			v.Kind, v.FS = guest.MountBlock, guest.FSExt4
			if ownDisk(m) {
				v.FS = i.o.fs
			}
			err = i.serveDisk(ctx, h, m, threads[0])
			threads = threads[1:]
		} else {
			var view func() error
			if m.ReadOnly {
				view = func() error { return spawn.MountReadOnly(m.Source) }
			}
			err = i.share(h, m.Name, m.Source, view)
		}
		if err != nil {
			return fmt.Errorf("volume %s: %w", m.Name, err)
		}
		i.volumes = append(i.volumes, v)
	}
	return nil
}

// ownDisk reports whether a volume that is a disk in a machine is a directory on the host: its disk
// is a file there, with a file system of its own.
func ownDisk(m sandbox.Mount) bool { return m.Mode != volume.Block && m.Medium != volume.Image }

// serveDisk adds a disk and the numbers of its I/O threads.
func (i *instance) serveDisk(ctx context.Context, h *hardware, m sandbox.Mount, threads []int) error {
	d := disk{serial: m.Name, path: m.Source, cache: i.o.cache, aio: i.o.aio, bus: i.o.bus, queues: i.o.diskQueues, threads: threads}
	if !ownDisk(m) {
		h.disks = append(h.disks, d)
		return nil
	}
	d.path, d.luks = filepath.Join(m.Source, dataDisk), i.o.luks
	i.ownFiles = append(i.ownFiles, d.path)
	h.disks = append(h.disks, d)
	switch {
	case i.o.fs == guest.FSXFS:
		return makeXFS(ctx, d.path, dataRoom)
	case !d.luks:
		return ext4.Make(ctx, d.path, "", dataRoom)
	}
	encrypted, err := i.kind.encrypted(ctx)
	if err != nil {
		return err
	}
	return copySparse(ctx, encrypted, d.path)
}

// makeXFS makes a sparse file of this size in bytes with an empty XFS: mkfs.xfs(8).
func makeXFS(ctx context.Context, path string, size int64) error {
	tool, ok := rootfs.Lookup("mkfs.xfs")
	if !ok {
		return errors.New("this host has no mkfs.xfs, which " + paramDiskFS + " = " + guest.FSXFS + " needs; apt-get install xfsprogs")
	}
	out, err := exec.CommandContext(ctx, tool, "-q", "-f", "-d", fmt.Sprintf("name=%s,file,size=%d", path, size)).CombinedOutput() //nolint:gosec // the host's own program
	if err != nil {
		return fmt.Errorf("mkfs.xfs: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
