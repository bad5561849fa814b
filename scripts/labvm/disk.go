package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"tare/host/image"
	"tare/host/rootfs"
	"tare/internal/files"
)

//go:embed recipe
var recipes embed.FS

const (
	rootSize  = "6G" // of the machine's file system; the file is sparse
	toolsSize = "2G"
	format    = "tare-lab-2" // raise it when the same tree makes a different disk
)

// disk is what a machine boots from. Nothing writes to its files.
type disk struct {
	kernel string
	root   string // an ext4 file system
	image  string // name and digest of the tree that it was made of
}

func ownRecipes() (fs.FS, error) { return fs.Sub(recipes, "recipe") }

// errNotDebian says that the machine cannot be made from this host's packages. It boots
// without an initramfs, and only Debian's cloud kernel has the drivers built in.
var errNotDebian = errors.New("the machine needs Debian's packages, but this host is not Debian; use Debian 12 or later")

func debian() error {
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return fmt.Errorf("%w: %w", errNotDebian, err)
	}
	if !slices.Contains(strings.Split(string(b), "\n"), "ID=debian") {
		return errNotDebian
	}
	return nil
}

// makeDisk returns the disk of the recipe. It makes the disk, and downloads packages for it,
// if the one in dir was made from something else.
func makeDisk(ctx context.Context, dir string, say func(string, ...any)) (disk, error) {
	if err := debian(); err != nil {
		return disk{}, err
	}
	own, err := ownRecipes()
	if err != nil {
		return disk{}, err
	}
	builder := &image.Builder{Cache: filepath.Join(dir, "images"), Recipes: own, Say: say}
	tree, release, err := builder.Use(ctx, "machine")
	if err != nil {
		return disk{}, err
	}
	defer release()
	sum := sha256.Sum256([]byte(format + rootSize + tree.Digest))
	d := disk{image: tree.Digest}
	home := filepath.Join(dir, fmt.Sprintf("disk-%x", sum[:8]))
	d.kernel, d.root = filepath.Join(home, "vmlinuz"), filepath.Join(home, "root.img")
	if _, err := os.Stat(home); err == nil {
		return d, nil
	}
	say("machine: making its disk")
	if err := d.write(ctx, home, tree.Path); err != nil {
		return disk{}, fmt.Errorf("cannot make the machine's disk: %w", err)
	}
	return d, removeOthers(dir, home)
}

// write makes a temporary folder and renames it, so that an existing folder is complete.
func (d disk) write(ctx context.Context, home, tree string) error {
	kernels, err := filepath.Glob(filepath.Join(tree, "boot", "vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(kernels) == 0 {
		return errors.New("its tree has no /boot/vmlinuz-VERSION")
	}
	slices.Sort(kernels)
	part := home + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o755); err != nil { //nolint:gosec // no secret
		return err
	}
	if err := files.Copy(filepath.Join(part, filepath.Base(d.kernel)), kernels[len(kernels)-1], 0o644); err != nil {
		return err
	}
	if err := format4(ctx, filepath.Join(part, filepath.Base(d.root)), tree, rootSize); err != nil {
		return err
	}
	return os.Rename(part, home)
}

// removeOthers removes disks of older recipes.
func removeOthers(dir, keep string) error {
	all, err := filepath.Glob(filepath.Join(dir, "disk-*"))
	for _, d := range all {
		if d != keep {
			err = errors.Join(err, os.RemoveAll(d))
		}
	}
	return err
}

// format4 makes a file with an ext4 file system that holds a copy of a tree.
func format4(ctx context.Context, file, tree, size string) error {
	mke2fs, ok := rootfs.Lookup("mke2fs")
	if !ok {
		return errors.New("cannot find mke2fs; run scripts/setup.sh run, or install e2fsprogs")
	}
	// No journal and no lazy initialisation: nobody writes to the file a second time.
	args := []string{"-q", "-F", "-t", "ext4", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", "-d", tree, file, size}
	if out, err := exec.CommandContext(ctx, mke2fs, args...).CombinedOutput(); err != nil { //nolint:gosec // our own arguments
		return fmt.Errorf("mke2fs: %w: %s", err, out)
	}
	return nil
}
