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
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/guest"
	"tare/internal/rootfs"
)

// Room in a file system for what is written to it. The files are sparse: the host's
// disk holds what was written.
const (
	rootRoom = 8 << 30
	dataRoom = 32 << 30
)

// mostImages bounds the cached images of trees, in bytes on the disk.
const mostImages = 8 << 30

// Names of the files of a machine's disks, below Spec.Upper and Spec.Data.
const (
	upperDisk = "root.qcow2"
	dataDisk  = "tare-data.raw"
)

// serveDisks gives the machine its root and /data as virtio disks.
func (i *instance) serveDisks(ctx context.Context, h *hardware) error {
	image, err := i.kind.image(ctx, i.spec.Root)
	if err != nil {
		return err
	}
	root := disk{serial: tagRoot, path: image, frozen: true}
	i.root = guest.Mount{Kind: guest.MountBlock, Source: tagRoot, Writable: i.spec.Upper != ""}
	if i.spec.Upper != "" {
		st, err := os.Stat(image)
		if err != nil {
			return err
		}
		root = disk{serial: tagRoot, path: filepath.Join(i.spec.Upper, upperDisk), over: image}
		if err := os.WriteFile(root.path, emptyQcow2(st.Size()), 0o600); err != nil {
			return err
		}
		i.ownFiles = append(i.ownFiles, root.path)
	}
	h.disks = append(h.disks, root)
	if i.spec.Data == "" {
		return nil
	}
	data := disk{serial: tagData, path: filepath.Join(i.spec.Data, dataDisk)}
	i.data = &guest.Mount{Kind: guest.MountBlock, Source: tagData, Writable: true}
	i.ownFiles = append(i.ownFiles, data.path)
	if err := makeExt4(ctx, data.path, "", dataRoom); err != nil {
		return err
	}
	h.disks = append(h.disks, data)
	return nil
}

// image returns an ext4 image of a tree. A tree never changes, so that its image is made
// once.
func (k *Kind) image(ctx context.Context, root string) (string, error) {
	key, size, err := identity(root)
	if err != nil {
		return "", fmt.Errorf("the tree %s: %w", root, err)
	}
	c := files{dir: filepath.Join(k.cfg.CacheDir, "disks"), most: mostImages}
	return c.get(ctx, key+".ext4", func(path string) error {
		return makeExt4(ctx, path, root, size+size/4+rootRoom)
	})
}

// identity digests names, kinds, sizes and times of all that is in a tree, and sums
// the sizes up. Contents are not read: trees are made by tare, and never changed in place.
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
		fmt.Fprintf(h, "%q %v %d %d\n", rel, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))[:32], size, err
}

// makeExt4 makes a file with an ext4 file system of that many bytes, of the tree at root or
// empty. Nothing is written that need not be: the kernel does without.
func makeExt4(ctx context.Context, path, root string, bytes int64) error {
	mke2fs, ok := rootfs.Lookup("mke2fs")
	if !ok {
		return fmt.Errorf("this host has no mke2fs, which rootfs = %s needs; apt-get install e2fsprogs", rootBlock)
	}
	args := []string{"-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0"}
	if root != "" {
		args = append(args, "-d", root)
	}
	args = append(args, path, fmt.Sprintf("%dK", bytes>>10))
	out, err := exec.CommandContext(ctx, mke2fs, args...).CombinedOutput() //nolint:gosec // the host's own program
	switch text := strings.TrimSpace(string(out)); {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("mke2fs of %s had not ended in time: %w", root, ctx.Err())
	case strings.Contains(text, "No space left"), errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("the disk of %s is full: %s", filepath.Dir(path), text)
	default:
		return fmt.Errorf("mke2fs: %w: %s", err, text)
	}
}

// emptyQcow2 is a file of that virtual size in which nothing was written yet:
// docs/interop/qcow2.txt of QEMU, version 3, clusters of 64 KiB. What it does not have is
// read from the file that it is laid over, which QEMU is told apart.
func emptyQcow2(size int64) []byte {
	const cluster = 64 << 10
	const perTable = cluster / 8 * cluster // bytes that one second-level table maps
	entries := (size + perTable - 1) / perTable
	l1Clusters := (entries*8 + cluster - 1) / cluster
	var b bytes.Buffer
	b.WriteString("QFI\xfb")
	for _, v := range []any{
		uint32(3), uint64(0), uint32(0), // version; no backing file by name
		uint32(16), uint64(size), uint32(0), //nolint:gosec // a file's size
		uint32(entries), uint64(3 * cluster), //nolint:gosec // a few; first-level table
		uint64(cluster), uint32(1), // refcount table
		uint32(0), uint64(0), // snapshots
		uint64(0), uint64(0), uint64(0), // features
		uint32(4), uint32(104), // refcounts of 16 bits; header's length
		uint64(0), // no extensions
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
