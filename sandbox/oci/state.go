package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/host/rootfs"
	"tare/internal/rootless"
)

const (
	runtimeName = "runtime.json"
	// nullNetns is where runsc keeps an empty network namespace mounted, below its
	// --root (runsc/specutils/namespace.go).
	nullNetns = "null-netns"
)

// openState makes the kind's state directory ready for one more container.
func (k *Runtime) openState(c *container) error {
	k.stateMu.Lock()
	defer k.stateMu.Unlock()
	if k.users == 0 {
		k.others = entriesOf(c.state)
	}
	c.open = true // closeState must remove it, even after an error
	k.users++
	return c.writeState()
}

// closeState is the opposite. After the last container it removes the directory and the
// empty network namespace that runsc keeps mounted in it. Entries that were there before
// belong to a killed run that clean has not seen yet. They stay, together with
// runtime.json, which tells clean how to delete them. Anything else that stays is an error.
func (k *Runtime) closeState(c *container) error {
	k.stateMu.Lock()
	defer k.stateMu.Unlock()
	if !c.open {
		return nil
	}
	c.open = false
	if k.users--; k.users > 0 {
		return nil
	}
	// A killed runtime may leave files of any name, so remove the mount first, whatever
	// else is there. Runtimes that start at the same time stack mounts; each call removes
	// one. It fails when nothing is mounted there any more.
	null := filepath.Join(c.state, nullNetns)
	for unix.Unmount(null, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
	}
	if err := os.Remove(null); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the runtime's leftovers: %w; `tare clean` tries again", err)
	}
	var left, others []string
	for _, name := range entriesOf(c.state) {
		switch {
		case name == runtimeName:
		case slices.Contains(k.others, name):
			others = append(others, name)
		default:
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("the runtime left %s in %s; `tare clean` removes it", strings.Join(left, ", "), c.state)
	}
	if len(others) > 0 {
		return nil
	}
	for _, path := range []string{filepath.Join(c.state, runtimeName), c.state} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the runtime's state directory: %w; `tare clean` tries again", err)
		}
	}
	_ = os.Remove(filepath.Dir(c.state)) // fails if other kinds have theirs in it
	return nil
}

// entriesOf lists a directory; the list is empty if the directory does not exist.
func entriesOf(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ownFiles are the patterns of the files that runtimes put into the state directory for one
// container: a directory or file of its name, runsc's ID_sandbox:ID.state and .lock, its
// control socket, and an unfinished runtime.json of ours.
func ownFiles(name string) []string {
	return []string{name, name + "_*", "runsc-" + name + ".sock", runtimeName + "." + name}
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
	f := runtimeFile{Binary: c.binary, Args: c.kind.global()}
	// As Enter and hide do it, in the words of util-linux; without that package
	// clean kills by control group.
	var before []string
	if rootless.Is() {
		before = []string{"-U", "-r"}
	}
	if tree, ok := c.tree(); ok && c.hidden {
		hide := `umount "$0"; exec "$@"`
		if rootless.Is() {
			hide = `mount -t tmpfs none "$0"; exec "$@"`
		}
		before = append(before, "-m", "sh", "-c", hide, tree)
	}
	if unshare, ok := rootfs.Lookup("unshare"); ok && len(before) > 0 {
		f.Args = slices.Concat(before, []string{c.binary}, f.Args)
		f.Binary = unshare
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	path := filepath.Join(c.state, runtimeName)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(b) { //nolint:gosec // our own file
		return nil
	}
	tmp := path + "." + c.spec.Name
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
