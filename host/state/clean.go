package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
	"tare/host/network"
	"tare/host/setting"
	"tare/site/claim"
)

// Kinds of a claim.Leftover, in the order of removal.
const (
	KindProcess   = "process"
	KindContainer = "container"
	KindMount     = "mount"
	KindNetns     = "netns"
	KindLink      = "link"
	KindCgroup    = "cgroup"
	KindSetting   = "setting" // changes above our control groups, and of the kernel's settings
	KindDirectory = "directory"
)

// itemTime bounds the removal of one item, so that one that hangs does not keep
// the rest.
const itemTime = 15 * time.Second

// Clean finds by name all that this program makes on a host, and removes it unless dryRun:
// processes, containers, mounts, network namespaces, links, control groups, directories. The
// order matters, because each holds the next: a process its mounts and namespaces, a mount
// its directory. The caller holds the host's lock, so that nothing is in use.
//
// If Clean cannot remove an item, it sets the item's Err and continues. The error names what
// it could not inspect, such as other users' processes without root.
func Clean(ctx context.Context, dryRun bool) ([]claim.Leftover, error) {
	c := &cleaner{run: RunDir, lib: LibDir, dry: dryRun}
	return c.clean(ctx)
}

func (c *cleaner) clean(ctx context.Context) ([]claim.Leftover, error) {
	steps := []func(context.Context){
		c.processes, c.containers, c.mounts, c.namespaces, c.links, c.cgroups, c.settings, c.directories,
	}
	for _, step := range steps {
		step(ctx)
	}
	return c.found, errors.Join(c.unseen...)
}

type cleaner struct {
	run, lib string
	dry      bool
	own      bool                         // of what an ordinary user's runs left
	spare    func(kind, name string) bool // in tests: what is not the test's
	found    []claim.Leftover
	unseen   []error
}

// item reports one leftover and, unless this is a dry run, removes it.
func (c *cleaner) item(ctx context.Context, kind, name string, remove func(context.Context) error) {
	if c.spare != nil && c.spare(kind, name) {
		return
	}
	l := claim.Leftover{Kind: kind, Name: name}
	if !c.dry {
		if l.Err = ctx.Err(); l.Err == nil {
			ctx, cancel := context.WithTimeout(ctx, itemTime)
			defer cancel()
			l.Err = remove(ctx)
		}
	}
	c.found = append(c.found, l)
}

func (c *cleaner) miss(err error) {
	if err != nil {
		c.unseen = append(c.unseen, err)
	}
}

func (c *cleaner) mounts(ctx context.Context) {
	points, err := mountsBelow(c.run, c.lib)
	if err != nil {
		c.miss(err)
		return
	}
	// Children before parents. Two on one point stand twice in the table, and
	// each umount takes the upper one.
	slices.SortFunc(points, func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, p := range points {
		c.item(ctx, KindMount, p, func(ctx context.Context) error { return unmount(ctx, p) })
	}
}

// unmount tries for a second, then detaches: the mount leaves the tree at once, and ends
// with its last user.
func unmount(ctx context.Context, point string) error {
	for range 20 {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("unmounting: %w%s", err, rootHint(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting: %w%s", err, rootHint(err))
	}
	return nil
}

func rootHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; run as root"
	}
	return ""
}

func (c *cleaner) namespaces(ctx context.Context) {
	names, err := network.List()
	c.miss(err)
	for _, n := range names {
		c.item(ctx, KindNetns, n, func(context.Context) error { return network.Remove(n) })
	}
}

func (c *cleaner) links(ctx context.Context) {
	names, err := network.HostLinks()
	c.miss(err)
	for _, n := range names {
		c.item(ctx, KindLink, n, func(context.Context) error { return network.RemoveHostLink(n) })
	}
}

func (c *cleaner) cgroups(ctx context.Context) {
	h, err := cgroup.Detect()
	if err != nil {
		c.miss(err)
		return
	}
	for _, h := range h.Everywhere() {
		top := h.Open(cgroup.Top)
		children, there := top.Children()
		for _, rel := range children {
			c.item(ctx, KindCgroup, rel, func(ctx context.Context) error { return destroy(ctx, h.Open(rel)) })
		}
		// "tare" itself is removed with its last child; without children it is a leftover too.
		if _, still := top.Children(); there && still && (!c.dry || len(children) == 0) {
			c.item(ctx, KindCgroup, cgroup.Top, func(ctx context.Context) error { return destroy(ctx, top) })
		}
	}
	// The groups above belong to others: undo only tare's changes there.
	if changed := h.Altered(); changed != "" {
		c.item(ctx, KindSetting, changed, func(context.Context) error { return h.TakeBack() })
	}
}

// settings gives the kernel's settings back that a trial changed.
func (c *cleaner) settings(ctx context.Context) {
	t := setting.Table{Root: "/", Record: filepath.Join(c.run, setting.RecordName)}
	changes, err := t.Changes()
	c.miss(err)
	for _, s := range changes {
		if s.Err == nil {
			c.item(ctx, KindSetting, s.Name, func(context.Context) error { return t.Undo(s.File) })
			continue
		}
		c.found = append(c.found, claim.Leftover{Kind: KindSetting, Name: s.Name, Err: s.Err, Kept: true})
		if !c.dry {
			c.miss(t.Undo(s.File)) // which only forgets it
		}
	}
	if !c.dry && err == nil {
		c.miss(t.Forget())
	}
}

// destroy refuses to kill the caller's own ancestors: someone may have started
// a shell in one of our groups, and then tare clean in it.
func destroy(ctx context.Context, g *cgroup.Group) error {
	pids, err := g.Procs()
	if err != nil {
		return err
	}
	for _, pid := range lineage() {
		if slices.Contains(pids, pid) {
			return fmt.Errorf("its process %d is this program or one that started it; run tare clean from outside of the group", pid)
		}
	}
	return g.Destroy(ctx)
}

// CleanOwn is Clean for a user without root, whose mounts and network namespaces ended with the
// run. run and lib belong to this user. In the user namespace of another run, the processes of
// the dead one cannot be told.
func CleanOwn(ctx context.Context, run, lib string, dryRun bool) ([]claim.Leftover, error) {
	c := &cleaner{run: run, lib: lib, dry: dryRun, own: true}
	for _, step := range []func(context.Context){c.processes, c.containers, c.directories} {
		step(ctx)
	}
	return c.found, errors.Join(c.unseen...)
}

func (c *cleaner) directories(ctx context.Context) {
	for _, path := range []string{c.run, c.lib} {
		b, err := openOwn(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			c.miss(fmt.Errorf("directories: %w%s", err, rootHint(err)))
			continue
		}
		c.below(ctx, b, path)
		b.close()
	}
}

// below removes what runs left in one of tare's own directories. It removes only what has
// a record: a run's directories, the directories elsewhere that links name, and the state
// directories of OCI runtimes. It names the rest.
func (c *cleaner) below(ctx context.Context, b *base, path string) {
	entries, err := fs.ReadDir(b.root.FS(), ".")
	if err != nil {
		c.miss(fmt.Errorf("directories: %w%s", err, rootHint(err)))
	}
	for _, e := range entries {
		name, full := e.Name(), filepath.Join(path, e.Name())
		// The locks belong to the caller, who holds the host.
		if path == c.run && (name == lockName || name == bridgeLock) {
			continue
		}
		if path == c.run && (name == setting.RecordName || name == setting.RecordName+".new") {
			continue // of a setting that could not be given back
		}
		if path == c.run && name == namespacesName && e.IsDir() {
			c.item(ctx, KindDirectory, full, func(context.Context) error { return b.root.RemoveAll(name) })
			continue
		}
		if path == c.run && name == runtimesName && e.IsDir() {
			c.item(ctx, KindDirectory, full, func(context.Context) error { return b.removeRuntimes() })
			continue
		}
		if dir, ok := placed(full); ok && path == c.lib {
			c.item(ctx, KindDirectory, dir, func(context.Context) error {
				if err := removePlaced(dir); err != nil {
					return err
				}
				return b.root.Remove(name)
			})
			continue
		}
		f, err := b.look(name, isRecord, nil)
		switch {
		case err == nil:
			f.close()
			c.item(ctx, KindDirectory, full, func(context.Context) error { return b.remove(name, isRecord, nil) })
		case errors.Is(err, errInUse), errors.Is(err, fs.ErrNotExist):
		case c.spare == nil || !c.spare(KindDirectory, full):
			c.found = append(c.found, claim.Leftover{Kind: KindDirectory, Name: full, Err: err, Kept: errors.Is(err, errForeign)})
		}
	}
}

// bridgeLock is host/network's lock in RunDir.
const bridgeLock = "bridge.lock"

// namespacesName is where host/network has the files of an ordinary user's network namespaces.
const namespacesName = "netns"

// removeRuntimes removes the state directories of OCI runtimes, and then their parent.
func (b *base) removeRuntimes() error {
	sub, err := openBase(filepath.Join(b.path, runtimesName))
	if err != nil {
		return err
	}
	defer sub.close()
	entries, err := fs.ReadDir(sub.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("removing: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			errs = append(errs, sub.root.Remove(e.Name())) // RUNTIME.json
			continue
		}
		errs = append(errs, sub.remove(e.Name(), isRuntimeRecord, nil))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.root.Remove(runtimesName)
}
