package oci

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
	"tare/host/loop"
	"tare/host/rootfs"
	"tare/host/spawn"
	"tare/internal/rootless"
	"tare/sandbox"
)

// container is one container of a runtime, from prepare to remove.
type container struct {
	kind      *Runtime
	spec      sandbox.Spec
	binary    string
	hidden    bool
	state     string // the runtime's state directory, shared by the kind's containers
	bundle    string
	group     *cgroup.Group
	hierarchy *cgroup.Hierarchy
	devices   loop.Volumes
	open      bool   // counted in kind.users
	starts    string // the control group in which launch starts the runtime; "" if it is not ours

	deleteWithin time.Duration // bounds one `RUNTIME delete` at the end; 0 for deleteInTime
	stuck        bool          // the runtime's delete hung: it is not tried again
}

// How long one `RUNTIME delete` may take at the end, and how long where the
// trial's time is over already.
const (
	deleteInTime = 5 * time.Second
	deleteLate   = 2 * time.Second
)

// cgroup is the container's own group, which the runtime makes and which
// carries the limits.
func (c *container) cgroup() string { return c.group.Rel() + "/c" }

// runtimeGroup is the group for the runtime's own processes.
func (c *container) runtimeGroup() string { return c.group.Rel() + "/rt" }

// command is the runtime's command line for a verb.
func (c *container) command(args ...string) *exec.Cmd {
	all := append(c.kind.args(c), "--root", c.state)
	cmd := exec.Command(c.binary, append(all, args...)...) //nolint:gosec // the runtime that the user named
	// The runtime needs PATH for its own helpers; the marker is for clean.
	cmd.Env = append(os.Environ(), spawn.Marker+"="+c.spec.Name)
	return cmd
}

// options say how to start the runtime: in a group ("" for none of ours), and,
// where it cannot bear the sight of it, without the version 2 tree.
func (c *container) options(group string) spawn.Options {
	o := spawn.Options{Hierarchy: c.hierarchy, Group: group}
	if c.hidden {
		o.Private, o.Prepare = true, c.hide
	}
	return o
}

// rooted are the options of the calls that make a container (run, create,
// restore): its writable root is mounted for them alone, and lives on in the
// container's own mount namespace. A second such mount, for delete and the like,
// would be one over the same upper layer, which overlayfs forbids.
func (c *container) rooted(group string) spawn.Options {
	o := c.options(group)
	if c.spec.Upper == "" && len(c.spec.Shown) == 0 && len(c.images()) == 0 {
		return o
	}
	before := o.Prepare
	o.Private = true
	o.Prepare = func() error {
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		if err := c.mountImages(); err != nil || c.spec.Upper == "" && len(c.spec.Shown) == 0 {
			return err
		}
		return spawn.MountRoot(c.spec)
	}
	return o
}

// tree is what hide takes away: the version 2 tree, or all of them.
func (c *container) tree() (string, bool) {
	if rootless.Is() {
		return "/sys/fs/cgroup", true
	}
	return c.hierarchy.Path("", "")
}

func (c *container) hide() error {
	tree, ok := c.tree()
	if !ok {
		return nil
	}
	var err error
	if rootless.Is() { // a user namespace may not unmount what it has from outside
		err = unix.Mount("tmpfs", tree, "tmpfs", 0, "")
	} else {
		err = unix.Unmount(tree, unix.MNT_DETACH)
	}
	if err != nil {
		return fmt.Errorf("hiding %s from %s: %w", tree, c.kind.cfg.Runtime, err)
	}
	return nil
}

// end deletes the container in whatever state it is, and all that belongs to
// it. wait waits for the runtime's foreground process. Each step that a hanging
// runtime could block is bounded, and the next one goes further.
func (c *container) end(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if c.exists() && !c.stuck {
		// An error is no news: the container may be deleting itself at this
		// moment. What counts is whether it is there afterwards.
		_ = c.delete(ctx)
	}
	// The foreground process has seen the container's end and goes by itself,
	// after tidying; killing it at once would leave its own things behind.
	short, done := context.WithTimeout(ctx, 3*time.Second)
	_ = wait(short)
	done()
	return errors.Join(c.remove(ctx), wait(ctx))
}

// remove kills what is in the groups and removes groups, state and bundle.
func (c *container) remove(ctx context.Context) error {
	err := c.group.Destroy(ctx)
	if c.exists() && !c.stuck {
		_ = c.delete(ctx)
	}
	for _, pattern := range ownFiles(c.spec.Name) {
		left, gerr := filepath.Glob(filepath.Join(c.state, pattern))
		err = errors.Join(err, gerr)
		for _, path := range left {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	err = errors.Join(err, c.devices.Close())
	c.devices = nil
	return errors.Join(err, c.kind.closeState(c), os.RemoveAll(c.bundle), spawn.EmptyOverlay(c.spec.Upper))
}

// exists says whether the runtime's state knows the container.
func (c *container) exists() bool {
	for _, pattern := range []string{c.spec.Name, c.spec.Name + "_*.state"} {
		if left, err := filepath.Glob(filepath.Join(c.state, pattern)); err == nil && len(left) > 0 {
			return true
		}
	}
	return false
}

// delete calls `RUNTIME delete --force`.
func (c *container) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.deleteWithin, deleteInTime))
	defer cancel()
	var said spawn.Tail
	del := c.command("delete", "--force", c.spec.Name)
	ran, err := spawn.Run(ctx, c.options(""), del, &said, &said)
	switch {
	case err != nil:
		c.stuck = ctx.Err() != nil
		err = hung(ctx, del, ran.Begun, err)
	case ran.Exit.Code != 0:
		err = fmt.Errorf("%s delete: exit code %d%s", c.kind.cfg.Runtime, ran.Exit.Code, spawn.Says(&said))
	}
	return err
}

// readVersion asks a runtime for its version: the first line of --version, or,
// where that says nothing, the module version that Go built it from.
func readVersion(runtime string) string {
	path, ok := rootfs.Lookup(runtime)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output() //nolint:gosec // the runtime that the user named
	line, _, _ := strings.Cut(string(out), "\n")
	if err == nil && line != "" && !strings.Contains(line, "VERSION_MISSING") {
		return strings.TrimSpace(line)
	}
	if info, err := buildinfo.ReadFile(path); err == nil {
		return info.Main.Path + " " + info.Main.Version
	}
	return ""
}

// readPid reads the file that --pid-file wrote.
func readPid(path string) (int, error) {
	b, err := os.ReadFile(path) //nolint:gosec // in our own directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, errors.New("the runtime did not write a pid file")
	}
	if err != nil {
		return 0, err
	}
	var pid int
	if _, err := fmt.Sscanf(string(b), "%d", &pid); err != nil || pid <= 1 {
		return 0, fmt.Errorf("the runtime's pid file says %q", b)
	}
	return pid, nil
}
