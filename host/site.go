// Package host is this machine as a site: trials run here, in real sandboxes. The packages
// below it are what only this machine needs: its bridge (network), control groups (cgroup),
// processes (spawn), directories (state), root file systems (rootfs, image), free memory
// (freemem) and servers asked from outside (probe).
//
// The data path: 1. Open holds the machine and removes what killed runs left; 2. it makes
// directories, builds images and the root file system, tries each sandbox and opens the
// bridge; 3. the session's trials are made by package trial, with Place as their place;
// 4. Close takes all of it away again, last things first.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/collect"
	"tare/host/image"
	"tare/host/network"
	"tare/host/rootfs"
	"tare/host/setting"
	"tare/host/state"
	"tare/host/storage"
	"tare/internal/rootless"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/trial"
	"tare/volume"
	"tare/workload"
)

// Site is this host. All fields are set before it is used.
type Site struct {
	Dirs Dirs
	Flag string                           // that names Dirs.Data in a command line; "": it is the default
	Say  func(format string, args ...any) // tells the user
	// Kinds returns every sandbox by name, those that a study defines included. Their checks
	// use the directory.
	Kinds      func(checks string, own []study.Sandbox) (map[string]sandbox.Kind, error)
	Workloads  map[string]workload.Workload
	Collectors func(names []string) []collect.Collector
	Counting   collect.Collector
	Images     func() (*image.Builder, error)
	Describe   func(context.Context) record.Host
}

// About is of site.Site.
func (s *Site) About() site.About {
	return site.About{
		Flag: s.Flag, Cannot: "this host cannot run",
		Nothing: "this host can run no cell of the study; the reasons are above, and `tare doctor` checks the host",
	}
}

func root() bool { return rootless.Root() }

// real reports whether sandboxes that run something may work.
func real() bool { return root() || rootless.Is() }

// runPrefix begins the name of a run on the host, and so of its directories.
const runPrefix = "t"

// RunID is the name of the run that a process makes.
func RunID(pid int) string { return runPrefix + strconv.FormatInt(int64(pid), 36) }

// MakeChecks makes the directory for the checks of sandboxes. It returns the directory and
// a function that removes it. It is where a run's data is: gVisor cannot start from a tree
// that is mounted noexec, as /run is on most systemd hosts.
func (s *Site) MakeChecks() (dir string, remove func() error, err error) {
	if err := s.Dirs.Own(); err != nil {
		return "", nil, err
	}
	return state.MakeRun(s.Dirs.Notes, RunID(os.Getpid())+"-check")
}

// Settings are those of this host's kernel that trials may change.
func (s *Site) Settings() setting.Table {
	return setting.Table{Root: "/", Record: filepath.Join(s.Dirs.Run, setting.RecordName)}
}

// session is a Site that is open. Its maker makes the trials.
type session struct {
	trial.Maker
	site   *Site
	place  *Place
	node   record.Node
	skips  []record.Skip
	closes []func() error // in the order in which their things were made
}

func (s *Site) session(r site.Request) *session {
	place := &Place{Settings: s.Settings()}
	return &session{site: s, place: place, Maker: trial.Maker{
		ID: RunID(os.Getpid()), Study: r.Study, Catalogue: r.Catalogue, Workloads: s.Workloads,
		Counting: s.Counting, // the maker asks it what this host lacks
		Place:    place, Trying: r.Trying,
	}}
}

// Preview is of site.Site. It needs the host for a moment, because it starts a sandbox of
// each kind.
func (s *Site) Preview(ctx context.Context, r site.Request) (out site.Preview, err error) {
	h := s.session(r)
	defer h.Close()
	lock, err := s.Hold(ctx, "plan of "+r.Study.Name, r.Wait)
	if err != nil {
		return out, err
	}
	h.later(lock.Release)
	h.later(func() error { s.SweepIfEnded(ctx); return nil })
	if real() { // as a run has it, where nothing is put yet
		h.place.Data, h.place.Memory = s.Dirs.Data, memoryBase()
	}
	if err := h.openKinds(ctx); err != nil {
		return out, err
	}
	if err := h.findImages(ctx); err != nil {
		return out, err
	}
	needs, err := h.Needs()
	if err != nil {
		return out, err
	}
	for _, n := range needs {
		if _, ok := rootfs.Lookup(n); !ok {
			h.place.MissingTools = append(h.place.MissingTools, n)
		}
	}
	out.Skips, err = h.Skips(ctx)
	return out, err
}

// Open is of site.Site.
func (s *Site) Open(ctx context.Context, r site.Request) (_ site.Session, err error) {
	h := s.session(r)
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	lock, err := s.Hold(ctx, "study "+r.Study.Name, r.Wait)
	if err != nil {
		return nil, err
	}
	h.later(lock.Release)
	s.sweep(ctx, "an earlier run")
	// When the session ends, all that it made should be gone, unless a signal came at a bad time.
	h.later(func() error { s.sweep(context.WithoutCancel(ctx), "this run"); return nil })
	if err := h.openDirs(); err != nil {
		return nil, err
	}
	if err := h.openKinds(ctx); err != nil {
		return nil, err
	}
	if err := h.openImages(ctx); err != nil {
		return nil, err
	}
	needs, err := h.Needs()
	if err != nil {
		return nil, err
	}
	tree, err := buildRoot(ctx, s.Dirs, needs)
	if err != nil {
		return nil, err
	}
	h.place.Root, h.place.MissingTools = tree.Path, tree.Missing
	if h.skips, err = h.Skips(ctx); err != nil {
		return nil, err
	}
	h.openCollectors()
	if err := h.openNetwork(ctx); err != nil {
		return nil, err
	}
	h.node = record.Node{Host: s.Describe(ctx)}
	h.node.Name = h.node.Host.Hostname
	h.node.Host.Data = storage.New().Describe(h.place.Data)
	return h, nil
}

// Nodes is of site.Session: this machine.
func (h *session) Nodes() []record.Node { return []record.Node{h.node} }

// Preview is of site.Session. Trials take what they say, so there is no pace.
func (h *session) Preview() site.Preview { return site.Preview{Skips: h.skips} }

// later has f called when the session closes, before what was asked for earlier.
func (h *session) later(f func() error) { h.closes = append(h.closes, f) }

// Close is of site.Session. It takes away what was made last first; the sweep, one of the
// last steps, names what stays.
func (h *session) Close() {
	for _, closing := range slices.Backward(h.closes) {
		_ = closing()
	}
	h.closes = nil
}

// openDirs makes the directories of the run. That for data in memory is noted beside tare's
// own data, so that `tare clean` finds it.
func (h *session) openDirs() (err error) {
	d, p := h.site.Dirs, h.place
	add := func(dir *string, of func() (string, func() error, error)) {
		if err != nil {
			return
		}
		var remove func() error
		if *dir, remove, err = of(); err == nil {
			h.later(remove)
		}
	}
	add(&p.State, func() (string, func() error, error) { return state.MakeRun(d.Run, h.ID) })
	add(&p.Data, func() (string, func() error, error) { return state.MakeData(d.Notes, d.Data, h.ID) })
	if err == nil {
		p.data, err = os.Stat(p.Data)
	}
	if base := memoryBase(); base != "" && real() {
		add(&p.Memory, func() (string, func() error, error) { return state.MakeData(d.Notes, base, h.ID+"-memory") })
	}
	return err
}

// openKinds makes the sandboxes, and what their checks need.
func (h *session) openKinds(ctx context.Context) error {
	if root() {
		_, release, err := h.site.Groups(ctx)
		if err != nil {
			h.site.Say("%v", err)
		}
		h.later(release)
	}
	checks, remove, err := h.site.MakeChecks()
	if err != nil {
		return err
	}
	h.later(remove)
	h.Kinds, err = h.site.Kinds(checks, h.Study.Sandboxes)
	return err
}

// findImages says which images this host could not build, without building any.
func (h *session) findImages(ctx context.Context) error {
	return h.eachImage(ctx, func(b *image.Builder, name string) (Image, error) {
		t, built, err := b.Find(name)
		switch {
		case err != nil:
			return missing(err), nil
		case built:
			return unpacked(t), nil
		}
		return Image{}, nil
	})
}

// openImages builds the images that the study's workloads run from and puts this program
// into them. One that cannot be had is not an error: the cells that need it are skipped with the
// reason.
func (h *session) openImages(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find tare's own binary: %w", err)
	}
	return h.eachImage(ctx, func(b *image.Builder, name string) (Image, error) {
		if err := ctx.Err(); err != nil {
			return Image{}, err
		}
		t, release, err := b.Use(ctx, name)
		if err != nil {
			return missing(err), nil
		}
		h.later(func() error { release(); return nil }) // when the study ends
		if err := image.Dress(t.Path, self); err != nil {
			return Image{}, fmt.Errorf("image %s: %w", name, err)
		}
		return unpacked(t), nil
	})
}

func unpacked(t image.Tree) Image {
	return Image{Root: t.Path, Image: trial.Image{
		Digest: t.Identity(), Entrypoint: t.Entrypoint, Command: t.Command, Env: t.Env, Dir: t.Dir, User: t.User, Problem: t.Unable(),
	}}
}

// missing is an image that this host does not have. The place says which one.
func missing(err error) Image {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return Image{Missing: err.Error()}
}

func (h *session) eachImage(ctx context.Context, get func(*image.Builder, string) (Image, error)) error {
	names, err := h.NeedsImages()
	if err != nil || len(names) == 0 {
		return err
	}
	h.place.Images = map[string]Image{}
	var b *image.Builder
	for _, n := range names {
		if n == volume.HostRoot {
			if h.place.Images[n], err = h.hostRoot(ctx); err != nil {
				return err
			}
			continue
		}
		if b == nil {
			if b, err = h.site.Images(); err != nil {
				return err
			}
		}
		if h.place.Images[n], err = get(b, n); err != nil {
			return err
		}
	}
	return nil
}

// openCollectors leaves out, with a word, those whose source this host lacks.
func (h *session) openCollectors() {
	for _, c := range h.site.Collectors(h.Study.Collect.Names) {
		if err := c.Check(); err != nil {
			h.site.Say("without the collector %s: %v", c.Name(), err)
			continue
		}
		h.Collectors = append(h.Collectors, c)
	}
}

// openNetwork makes the bridge if a workload has two endpoints or is asked from outside.
func (h *session) openNetwork(ctx context.Context) error {
	wanted, err := h.NeedsNetwork()
	if err != nil || !wanted || !real() {
		return err
	}
	bridge, err := network.Open(ctx)
	if err != nil {
		return fmt.Errorf("cannot make the bridge that sandboxes share: %w", err)
	}
	h.place.Bridge = bridge
	h.later(bridge.Close)
	return nil
}

// buildRoot builds the sandboxes' root file system with the tools that are there.
func buildRoot(ctx context.Context, d Dirs, tools []string) (rootfs.Tree, error) {
	binary, err := os.Executable()
	if err != nil {
		return rootfs.Tree{}, fmt.Errorf("cannot find tare's own binary: %w", err)
	}
	return rootfs.Build(ctx, filepath.Join(d.Cache, "rootfs"), binary, tools)
}

// memoryBase returns a directory of a memory file system, "" if this user can write to none where
// hosts mount them.
func memoryBase() string {
	for _, dir := range []string{"/dev/shm", "/run"} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err == nil && st.Type == unix.TMPFS_MAGIC && unix.Access(dir, unix.W_OK) == nil {
			return dir
		}
	}
	return ""
}
