package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/agent/guest"
	"tare/host/ext4"
	"tare/internal/files"
)

// Room in a file system for what is written to it. The files are sparse: the host's
// disk holds what was written.
const (
	rootRoom = 8 << 30
	dataRoom = 32 << 30
)

// mostImages bounds the cached images of trees, in bytes on the disk.
const mostImages = 8 << 30

// The file of a machine's root disk, below Spec.Upper: what is laid over the image, or a copy of it.
const (
	upperDisk = "root.qcow2"
	copyDisk  = "root.raw"
)

// serveRootDisk gives the machine its root as a virtio disk.
func (i *instance) serveRootDisk(ctx context.Context, h *hardware) error {
	if len(i.spec.Shown) > 0 {
		return i.o.noDirectories("/")
	}
	looked := time.Now()
	image, err := i.kind.image(ctx, i.spec.Root)
	i.began = i.began.Add(time.Since(looked)) // once for a tree, so no part of a start
	if err != nil {
		return err
	}
	root, err := i.rootDisk(ctx, image)
	if err != nil {
		return err
	}
	i.root = guest.Mount{Kind: guest.MountBlock, Source: tagRoot, Writable: !root.frozen}
	h.disks = append(h.disks, root)
	return nil
}

// rootDisk makes the machine's own overlay or copy of the image. The time for this is a part of the start.
func (i *instance) rootDisk(ctx context.Context, image string) (disk, error) {
	own := func(name string) string {
		path := filepath.Join(i.spec.Upper, name)
		i.ownFiles = append(i.ownFiles, path) // before it is written, so that half a file is removed too
		return path
	}
	switch {
	case i.spec.Upper == "" && i.o.rootDisk != auto:
		return disk{}, fmt.Errorf("%s = %s: the sandbox was given no directory to write to; this is a bug in tare, please report it", paramRootDisk, i.o.rootDisk)
	case i.spec.Upper == "":
		return disk{serial: tagRoot, path: image, frozen: true}, nil
	case i.o.rootDisk == rootCopy:
		d := disk{serial: tagRoot, path: own(copyDisk)}
		return d, copySparse(ctx, image, d.path)
	}
	st, err := os.Stat(image)
	if err != nil {
		return disk{}, err
	}
	d := disk{serial: tagRoot, path: own(upperDisk), over: image}
	return d, os.WriteFile(d.path, emptyQcow2(st.Size(), i.backing(image)), 0o600)
}

// image returns an ext4 image of a tree, which is made once.
func (k *Hypervisor) image(ctx context.Context, root string) (string, error) {
	t, err := known(root)
	if err != nil {
		return "", fmt.Errorf("the tree %s: %w", root, err)
	}
	c := folder{dir: filepath.Join(k.cfg.CacheDir, "disks"), most: mostImages}
	return c.get(ctx, t.key+".ext4", func(path string) error {
		return ext4.Make(ctx, path, root, t.size+t.size/4+rootRoom)
	})
}

// tree is what a walk through a tree has found.
type tree struct {
	program unix.Stat_t // of /tare in it, as it was
	key     string
	size    int64 // bytes, by whole blocks
}

// trees are those that this process has walked through, by path.
var trees sync.Map //nolint:gochecknoglobals // every kind of machine has the same trees

// known returns what a tree is, walking through it once a process. Of a tree that is in
// use only /tare is ever replaced, by renaming another over it.
func known(root string) (tree, error) {
	var program unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "tare"), &program); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tree{}, err
	}
	if v, ok := trees.Load(root); ok {
		t := v.(tree) //nolint:forcetypeassert // nothing else is in it
		was := &t.program
		if was.Dev == program.Dev && was.Ino == program.Ino && was.Size == program.Size && was.Mtim == program.Mtim && was.Ctim == program.Ctim {
			return t, nil
		}
	}
	key, size, err := identity(root)
	if err != nil {
		return tree{}, err
	}
	t := tree{program: program, key: key, size: size}
	trees.Store(root, t)
	return t, nil
}

// identity digests names, kinds, links and contents of all that is in a tree, and sums
// the sizes up. Sizes and times would not do: the times of a built image are all
// one, and /tare is replaced in place.
func identity(root string) (key string, size int64, err error) {
	h := sha256.New()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		size += (info.Size() + 4095) / 4096 * 4096
		var own unix.Stat_t
		if err := unix.Lstat(path, &own); err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v %d %d %d %d\n", rel, info.Mode(), info.Size(), own.Uid, own.Gid, own.Rdev)
		switch {
		case info.Mode().IsRegular():
			return files.Read(h, path)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			fmt.Fprintf(h, "%q\n", to)
			return err
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))[:32], size, err
}

// backing is the name of an image in the file that is laid over it: QEMU is told it apart.
func (i *instance) backing(image string) string {
	if i.qemu.vmm == cloudHypervisor {
		return image
	}
	return ""
}

// emptyQcow2 is a file of that virtual size in which nothing was written yet:
// docs/interop/qcow2.txt of QEMU, version 3, clusters of 64 KiB. What it does not have is
// read from the raw image that it is laid over, which it names unless that is "".
func emptyQcow2(size int64, backing string) []byte {
	const cluster = 64 << 10
	const perTable = cluster / 8 * cluster // bytes that one second-level table maps
	entries := (size + perTable - 1) / perTable
	l1Clusters := (entries*8 + cluster - 1) / cluster
	var extensions []byte
	var nameAt uint64
	if backing != "" {
		extensions = []byte("\xe2\x79\x2a\xca\x00\x00\x00\x03raw\x00\x00\x00\x00\x00") // the image's format
		nameAt = 104 + uint64(len(extensions)) + 8
	}
	var b bytes.Buffer
	b.WriteString("QFI\xfb")
	for _, v := range []any{
		uint32(3), nameAt, uint32(len(backing)), //nolint:gosec // version; a path
		uint32(16), uint64(size), uint32(0), //nolint:gosec // a file's size
		uint32(entries), uint64(3 * cluster), //nolint:gosec // a few; first-level table
		uint64(cluster), uint32(1), // refcount table
		uint32(0), uint64(0), // snapshots
		uint64(0), uint64(0), uint64(0), // features
		uint32(4), uint32(104), // refcounts of 16 bits; header's length
		extensions, uint64(0), []byte(backing),
	} {
		_ = binary.Write(&b, binary.BigEndian, v) // a buffer takes all
	}
	out := make([]byte, (3+l1Clusters)*cluster)
	copy(out, b.Bytes())
	binary.BigEndian.PutUint64(out[cluster:], 2*cluster) // the refcount block
	for n := range 3 + l1Clusters {
		binary.BigEndian.PutUint16(out[2*cluster+2*n:], 1)
	}
	return out
}
