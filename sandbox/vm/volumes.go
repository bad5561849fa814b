package vm

import (
	"context"
	"fmt"
	"path/filepath"

	"tare/agent/guest"
	"tare/host/ext4"
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

// checkVolumes says what the volumes need that the options do not give.
func (o *options) checkVolumes(volumes []volume.Volume) error {
	disks := 0
	for _, v := range volumes {
		if v.Medium == volume.Bind && o.rootfs == rootBlock {
			return o.noDirectories(v.Host)
		}
		if o.isDisk(v) {
			disks++
		}
	}
	if disks > 0 && o.threads > disks {
		return fmt.Errorf("%s = %d: a disk is served by one thread, and the virtual machine has %d; write %d", paramThreads, o.threads, disks, disks)
	}
	return nil
}

// noDirectories refuses a directory of the host, which disks cannot show.
func (o *options) noDirectories(dir string) error {
	return fmt.Errorf("%s = %s: a machine with disks alone cannot have the host's directory %s; set %s = %s", paramRootfs, rootBlock, dir, paramRootfs, rootVirtiofs)
}

// serveVolumes gives the machine its volumes, each as a disk or as a share.
func (i *instance) serveVolumes(ctx context.Context, h *hardware) error {
	disks := 0
	for _, m := range i.spec.Mounts {
		if m.Medium == volume.Bind && i.o.rootfs == rootBlock {
			return i.o.noDirectories(m.Source) // a disk would be a file in it
		}
		v := guest.Volume{Mount: guest.Mount{Kind: guest.MountVirtiofs, Source: m.Name, Writable: !m.ReadOnly}, Target: m.Path(), Device: m.Mode == volume.Block}
		var err error
		if i.o.isDisk(m.Volume) {
			v.Kind = guest.MountBlock
			err = i.serveDisk(ctx, h, m, disks)
			disks++
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

// serveDisk adds the nth disk. One that is a directory on the host is a file in it, with a
// file system of its own.
func (i *instance) serveDisk(ctx context.Context, h *hardware, m sandbox.Mount, n int) error {
	d := disk{serial: m.Name, path: m.Source, cache: i.o.cache, aio: i.o.aio, queues: i.o.diskQueues, thread: -1}
	if i.o.threads > 0 {
		d.thread = n % i.o.threads
	}
	if m.Mode == volume.Block || m.Medium == volume.Image {
		h.disks = append(h.disks, d)
		return nil
	}
	d.path, d.luks = filepath.Join(m.Source, dataDisk), i.o.luks
	i.ownFiles = append(i.ownFiles, d.path)
	h.disks = append(h.disks, d)
	if !d.luks {
		return ext4.Make(ctx, d.path, "", dataRoom)
	}
	encrypted, err := i.kind.encrypted(ctx)
	if err != nil {
		return err
	}
	return copySparse(encrypted, d.path)
}
