// Package ext4 makes file systems in files.
package ext4

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/host/rootfs"
)

// Overhead is roughly the disk space that a file system of Make takes beside its files: the journal, which is 64 MiB for sizes
// of 2 to 16 GiB, and the tables that mke2fs writes.
const Overhead = 72 << 20

// Make makes a file with an ext4 file system of that many bytes, of the tree at root, or
// empty if root is "". more are further arguments of mke2fs(8). It writes as little as
// possible: the kernel does without the rest.
func Make(ctx context.Context, path, root string, bytes int64, more ...string) error {
	mke2fs, ok := rootfs.Lookup("mke2fs")
	if !ok {
		return fmt.Errorf("this host has no mke2fs, which disks with a file system need; apt-get install e2fsprogs")
	}
	args := []string{"-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0"}
	args = append(args, more...)
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
		return fmt.Errorf("the disk of %s is full (%s): %w", filepath.Dir(path), text, unix.ENOSPC)
	default:
		return fmt.Errorf("mke2fs: %w: %s", err, text)
	}
}
