package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tare/sandbox"
)

// Prepare implements sandbox.Preparer: it looks for the programs and the kernel, tries
// KVM and makes the image of a tree. What is left for the first start of a size is its
// snapshot, which needs a sandbox's place, and is not counted by Boot.
func (k *Hypervisor) Prepare(ctx context.Context, spec sandbox.Spec) error {
	if err := k.prepare(ctx, spec); err != nil {
		return fmt.Errorf("%s: %w", k.Name(), err)
	}
	return nil
}

func (k *Hypervisor) prepare(ctx context.Context, spec sandbox.Spec) error {
	o, q, err := k.chosen(ctx, spec)
	if err != nil {
		return err
	}
	f, err := k.files(ctx)
	if err != nil {
		return err
	}
	if err := sweep(filepath.Join(k.cfg.CacheDir, verdictFile)); err != nil {
		return err
	}
	if _, err := k.accelerator(ctx, o.accel, q, f); err != nil {
		return err
	}
	if o.rootfs == rootBlock {
		if o.luks {
			if _, err := k.encrypted(ctx); err != nil {
				return err
			}
		}
		_, err = k.image(ctx, spec.Root)
	} else {
		_, err = k.findVirtiofsd(ctx)
	}
	return err
}

// sweep removes what killed processes left beside a file that is written under
// another name first.
func sweep(path string) error {
	left, err := filepath.Glob(path + ".*")
	if err != nil {
		return err
	}
	for _, l := range left {
		if st, err := os.Stat(l); err != nil || time.Since(st.ModTime()) < fresh {
			continue // being written
		}
		if err := os.Remove(l); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

var _ sandbox.Preparer = (*Hypervisor)(nil)
