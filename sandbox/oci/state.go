package oci

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/internal/rootfs"
)

// openState makes the kind's state directory ready for one more container.
func (k *Kind) openState(c *container) error {
	k.stateMu.Lock()
	defer k.stateMu.Unlock()
	if err := c.writeState(); err != nil {
		return err
	}
	c.open = true
	k.users++
	return nil
}

// closeState is the opposite. With the last container the directory goes, and
// with it the empty network namespace that runsc keeps mounted in it
// (null-netns). What another process has in it stays: the directory is then
// not empty, and only what is ours by name is touched.
func (k *Kind) closeState(c *container) {
	k.stateMu.Lock()
	defer k.stateMu.Unlock()
	if !c.open {
		return
	}
	c.open = false
	if k.users--; k.users > 0 {
		return
	}
	entries, err := os.ReadDir(c.state)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Name() != "runtime.json" && e.Name() != "null-netns" {
			return
		}
	}
	null := filepath.Join(c.state, "null-netns")
	// Not mounted, or not there: then there is nothing to do.
	_ = unix.Unmount(null, unix.MNT_DETACH)
	for _, path := range []string{null, filepath.Join(c.state, "runtime.json"), c.state, filepath.Dir(c.state)} {
		_ = os.Remove(path)
	}
}

// runtimeFile is runtime.json: `BINARY ARGS --root DIR delete --force ID`
// deletes the container ID of the directory DIR that the file is in.
type runtimeFile struct {
	Binary string   `json:"binary"`
	Args   []string `json:"args"`
}

// writeState makes the runtime's state directory with runtime.json in it,
// whole or not at all, since clean may read it after a kill.
func (c *container) writeState() error {
	if err := os.MkdirAll(c.state, 0o711); err != nil { //nolint:gosec // as runtimes make theirs
		return fmt.Errorf("cannot make the runtime's state directory: %w; run as root", err)
	}
	f := runtimeFile{Binary: c.binary, Args: c.kind.cfg.Args}
	if tree, ok := c.hierarchy.Path("", ""); ok && c.hidden {
		// As options does it, in the words of util-linux; without that package
		// clean kills by control group.
		if unshare, ok := rootfs.Lookup("unshare"); ok {
			f.Args = append([]string{"-m", "sh", "-c", `umount "$0"; exec "$@"`, tree, c.binary}, f.Args...)
			f.Binary = unshare
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	path := filepath.Join(c.state, "runtime.json")
	if old, err := os.ReadFile(path); err == nil && string(old) == string(b) { //nolint:gosec // our own file
		return nil
	}
	tmp := path + "." + c.spec.Name
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
