// Package rootfs makes the root file system of every sandbox of a study, without a
// registry: this binary, which should be static, and the host's tools with their
// libraries. All kinds of sandbox get the same tree, so that files never cause a
// difference between them.
//
// The data path: 1. Lookup finds each tool on the host; 2. closure follows the
// ELF headers (interpreter, DT_NEEDED, run paths) or the #! line to every file
// that it needs; 3. the contents are hashed into the tree's digest; 4. if CACHE/DIGEST
// exists and is complete it is used, else it is built in a temporary folder and renamed
// into place; 5. if the cache grows over 2 GiB, the least recently used trees are removed.
//
// Files are cloned (FICLONE) if the file system can do that, else copied. Hard links were
// rejected: a host file that is written in place, as a compiler does with this binary,
// would change a tree that is named by its digest.
package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// Tree is a root file system on the host.
type Tree struct {
	Path    string   // absolute; users must not write to it
	Digest  string   // SHA-256 of names, modes and contents, in hexadecimal
	Missing []string // tools that the host lacks
}

// ToolDir is searched after PATH. `make run` puts tools there that the distribution lacks,
// such as runsc.
const ToolDir = "/usr/local/lib/tare/bin"

// maxCache bounds the cache in bytes; a tree of all shipped tools is about 100 MB.
const maxCache = 2 << 30

// Lookup finds a program of the host. It takes a path as it is, and searches a name in
// PATH, then in the system directories that a short PATH (cron, sudo) lacks, then in ToolDir.
func Lookup(tool string) (path string, ok bool) {
	if strings.Contains(tool, "/") {
		p, err := filepath.Abs(tool)
		return p, err == nil && executable(p)
	}
	if tool == "" {
		return "", false
	}
	if p, err := exec.LookPath(tool); err == nil {
		if p, err = filepath.Abs(p); err == nil {
			return p, true
		}
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin", ToolDir} {
		if p := filepath.Join(dir, tool); executable(p) {
			return p, true
		}
	}
	return "", false
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// Build returns the tree with binary as /tare, the programs of tinyelf as /tare-hello and
// /tare-pause, and the tools under their host paths. It builds the tree if the cache lacks
// it. A binary that is not static, as with cgo, gets its libraries too; a library that the
// host lacks is an error. A tool that the host lacks is not an error: it is in Missing. Several
// processes may call Build at once.
func Build(ctx context.Context, cacheDir, binary string, tools []string) (Tree, error) {
	t, err := build(ctx, cacheDir, binary, tools)
	if err != nil {
		return Tree{}, fmt.Errorf("cannot make the root file system in %s: %w", cacheDir, err)
	}
	return t, nil
}

func build(ctx context.Context, cacheDir, binary string, tools []string) (Tree, error) {
	cacheDir, err := filepath.Abs(cacheDir)
	if err != nil {
		return Tree{}, err
	}
	var t Tree
	l := newList()
	if err := base(l, binary, runtime.GOARCH); err != nil {
		return Tree{}, err
	}
	c := closure{list: l, dirs: hostLibraryDirs("/etc/ld.so.conf")}
	if err := c.addLibraries(binary); err != nil {
		return Tree{}, fmt.Errorf("%s was built with cgo; build with CGO_ENABLED=0, as make build does: %w", binary, err)
	}
	tools = slices.Clone(tools)
	slices.Sort(tools)
	for _, tool := range slices.Compact(tools) {
		path, ok := Lookup(tool)
		if !ok {
			t.Missing = append(t.Missing, tool)
			continue
		}
		if err := c.add(path); err != nil {
			return Tree{}, fmt.Errorf("tool %s: %w", tool, err)
		}
	}
	if t.Digest, err = l.digest(ctx); err != nil {
		return Tree{}, err
	}
	err = store(ctx, cacheDir, l, &t)
	return t, err
}

// Bare is Build for a static binary of another processor, a GOARCH. The tree has no tools, because
// those of this host would not run there.
func Bare(ctx context.Context, cacheDir, binary, arch string) (t Tree, err error) {
	l := newList()
	if err = base(l, binary, arch); err == nil {
		t.Digest, err = l.digest(ctx)
	}
	if err == nil {
		err = store(ctx, cacheDir, l, &t)
	}
	if err != nil {
		return Tree{}, fmt.Errorf("cannot make the root file system for %s in %s: %w", arch, cacheDir, err)
	}
	return t, nil
}

// store makes the tree in the cache, unless it is there, and sets its path.
func store(ctx context.Context, cacheDir string, l *list, t *Tree) error {
	t.Path = filepath.Join(cacheDir, t.Digest)
	if err := os.MkdirAll(cacheDir, 0o755); err != nil { //nolint:gosec // sandboxes with other users read it
		return err
	}
	unlock, err := lock(ctx, filepath.Join(cacheDir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return ensure(ctx, l, t.Path, cacheDir)
}

// ensure makes the tree at path unless it exists. The caller holds the lock.
func ensure(ctx context.Context, l *list, path, cacheDir string) error {
	if l.whole(path) {
		now := time.Now()
		return os.Chtimes(path, now, now) // the time of last use, which prune reads
	}
	// Leftovers of a killed build, and a tree that lost content with the power.
	stale, err := filepath.Glob(filepath.Join(cacheDir, ".building-*"))
	if err != nil {
		return err
	}
	for _, p := range append(stale, path) {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(cacheDir, ".building-")
	if err != nil {
		return err
	}
	err = l.write(ctx, tmp)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return prune(cacheDir, filepath.Base(path), maxCache)
}

// prune removes the least recently used trees until at most limit bytes are left. It keeps
// the tree named keep, and trees used within the last hour, which another process may use.
func prune(cacheDir, keep string, limit int64) error {
	entries, err := os.ReadDir(cacheDir)
	if err != nil {
		return err
	}
	type tree struct {
		path string
		used time.Time
		size int64
	}
	var trees []tree
	var total int64
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		t := tree{path: filepath.Join(cacheDir, e.Name()), used: info.ModTime()}
		if t.size, err = files.Size(t.path); err != nil {
			return err
		}
		total += t.size
		if e.Name() != keep && time.Since(t.used) > time.Hour {
			trees = append(trees, t)
		}
	}
	slices.SortFunc(trees, func(a, b tree) int { return a.used.Compare(b.used) })
	for _, t := range trees {
		if total <= limit {
			break
		}
		if err := os.RemoveAll(t.path); err != nil {
			return fmt.Errorf("cannot shrink the cache; remove %s by hand: %w", t.path, err)
		}
		total -= t.size
	}
	return nil
}

// lock takes an exclusive flock(2), which the kernel releases when the process
// dies. It polls, because a blocking flock cannot be interrupted by ctx.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's cache
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("another process is building in the cache: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
