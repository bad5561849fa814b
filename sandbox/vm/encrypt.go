package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/host/ext4"
	"tare/host/rootfs"
)

// secret is the pass phrase of all encrypted disks: they are there to be weighed, and
// hold nothing but a workload's files.
const secret = "secret,id=key0,data=tare" //nolint:gosec // it guards nothing: an empty file system

// encrypted returns an empty ext4 file system in a LUKS volume (docs/interop of QEMU,
// "luks" of qemu-block-drivers(7)) of the size of other data disks, which is made once: finding a number of
// rounds for the pass phrase takes seconds of CPU. Volume and file system are as good as
// sparse: what mke2fs leaves alone, or writes as zeros, the kernel does not read before it
// has written it.
func (k *Hypervisor) encrypted(ctx context.Context) (string, error) {
	tool, ok := rootfs.Lookup("qemu-img")
	if !ok {
		return "", fmt.Errorf("%s = %s needs qemu-img, which this host lacks; apt-get install qemu-utils", paramDisk, diskLUKS)
	}
	c := folder{dir: filepath.Join(k.cfg.CacheDir, "disks"), most: mostImages}
	return c.get(ctx, "data-1.luks", func(path string) error {
		plain := path + ".plain"
		defer func() { _ = os.Remove(plain) }()
		// Groups for growing are zeros that are read.
		if err := ext4.Make(ctx, plain, "", dataRoom, "-O", "^resize_inode"); err != nil {
			return err
		}
		var err error
		for range 3 { // where the host is busy it may fail to measure its own CPU time
			if err = run(ctx, tool, "create", "-q", "-f", "luks", "--object", secret, "-o", "key-secret=key0,iter-time=10", path, fmt.Sprint(dataRoom)); err == nil {
				break
			}
		}
		if err != nil {
			return err
		}
		return run(ctx, tool, "convert", "--object", secret, "-n", "--target-is-zero", "--image-opts", "driver=raw,file.filename="+plain,
			"--target-image-opts", "driver=luks,key-secret=key0,file.filename="+path)
	})
}

func run(ctx context.Context, tool string, args ...string) error {
	if out, err := exec.CommandContext(ctx, tool, args...).CombinedOutput(); err != nil { //nolint:gosec // the host's own program
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(tool), args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// copyStep is how much is copied between two checks of the context: a tenth of a second on a slow disk.
const copyStep = 16 << 20

// copySparse copies the data of a file, and keeps its holes (lseek(2), SEEK_DATA). It reads and
// writes, so that the copy shares no block with the file: copy_file_range(2), and so io.Copy between two
// files, makes reflinks on XFS and Btrfs.
func copySparse(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from) //nolint:gosec // in our own cache
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	st, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // a sandbox's own directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Truncate(st.Size()); err != nil {
		return err
	}
	for at := int64(0); ; {
		begin, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		at = min(at, begin+copyStep)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("copying %s: %w", from, err)
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, at-begin)); err != nil {
			return err
		}
	}
}
