package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// cache is the folder that holds trees/DIGEST, built/NAME-KEY.json, apt/ and
// locks/.
type cache struct{ dir string }

// buildingPrefix begins the names of trees that are not finished.
const buildingPrefix = ".building-"

func openCache(dir string) (*cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"trees", "built", "locks"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil { //nolint:gosec // sandboxes with other users read it
			return nil, fmt.Errorf("cannot make the cache: %w", err)
		}
	}
	return &cache{dir: dir}, nil
}

// building makes an empty folder for a tree, and removes the leftovers of a killed build of
// the same image. The caller holds the image's lock.
func (c *cache) building(name string) (string, error) {
	stale, err := filepath.Glob(filepath.Join(c.dir, buildingPrefix+name+"~*"))
	if err != nil {
		return "", err
	}
	for _, p := range stale {
		if err := removeAll(p); err != nil {
			return "", fmt.Errorf("cannot remove the leftovers of a killed build: %w", err)
		}
	}
	dir, err := os.MkdirTemp(c.dir, buildingPrefix+name+"~")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // sandboxes with other users read it
}

// layer is the file of a fetched layer, as the registry has it.
func (c *cache) layer(digest string) string { return filepath.Join(c.dir, "layers", digest) }

// recordName begins the names of an image's records.
func recordName(image string) string {
	if nameRE.MatchString(image) {
		return image
	}
	return label(image)
}

func (c *cache) record(name, key string) string {
	return filepath.Join(c.dir, "built", name+"-"+key[:16]+".json")
}

// find returns the tree that was built from the same inputs.
func (c *cache) find(name, key string) (Tree, bool) {
	b, err := os.ReadFile(c.record(name, key))
	if err != nil {
		return Tree{}, false
	}
	var t Tree
	if json.Unmarshal(b, &t) != nil || t.Key != key {
		return Tree{}, false
	}
	t.Path = filepath.Join(c.dir, "trees", t.Digest)
	if st, err := os.Stat(t.Path); err != nil || !st.IsDir() {
		return Tree{}, false
	}
	c.touch(c.record(name, key))
	return t, true
}

// touch sets the time of last use, which prune reads.
func (c *cache) touch(p string) {
	now := time.Now()
	_ = os.Chtimes(p, now, now)
}

// keep renames a finished tree into place, records it and returns it held. It flushes the
// tree to the disk first, so that a tree in its place is always complete.
func (c *cache) keep(dir string, t Tree) (_ Tree, release func(), err error) {
	f, err := os.Open(dir) //nolint:gosec // our own tree
	if err != nil {
		return Tree{}, nil, err
	}
	err = unix.Syncfs(int(f.Fd()))
	_ = f.Close()
	if err != nil {
		return Tree{}, nil, fmt.Errorf("cannot write the tree to the disk: %w", err)
	}
	t.Path = filepath.Join(c.dir, "trees", t.Digest)
	release, err = c.hold(t.Digest) // before the rename, so that Prune never finds it unheld
	if err != nil {
		return Tree{}, nil, err
	}
	if err := c.note(dir, t); err != nil {
		release()
		return Tree{}, nil, err
	}
	return t, release, nil
}

func (c *cache) note(dir string, t Tree) error {
	err := os.Rename(dir, t.Path)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) { // other inputs gave the same content
		err = removeAll(dir)
	}
	if err != nil {
		return err
	}
	return c.write(t)
}

// write records a tree that is in its place.
func (c *cache) write(t Tree) error {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	rec := c.record(recordName(t.Name), t.Key)
	if err := os.WriteFile(rec+".new", append(b, '\n'), 0o644); err != nil { //nolint:gosec // no secret
		return err
	}
	return os.Rename(rec+".new", rec)
}

// hold marks a tree as used until release is called.
func (c *cache) hold(digest string) (release func(), err error) { return c.share(treeLock(digest)) }

// share takes a shared flock(2) of that name, which keeps Prune off.
func (c *cache) share(name string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "locks", name), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own cache
	if err != nil {
		return nil, err
	}
	for { // for a short time: Prune never waits while it has the lock
		if err = unix.Flock(int(f.Fd()), unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot hold a part of the image cache: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// Locks in addition to those of images, whose names have no ~. A build holds each from
// before it fetches a file, or finds it in the cache, until it has unpacked the file.
const (
	aptLock   = "~apt" // apt's lists and archive are shared
	wheelLock = "~wheels"
)

// tryLock takes an exclusive flock(2) of that name, unless another process has it. The
// kernel releases it when this process dies.
func (c *cache) tryLock(name string) (unlock func(), ok bool, err error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "locks", name), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own cache
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, true, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("cannot lock the image cache: %w", err)
}

// lock is tryLock until it succeeds or ctx ends. It polls, because a blocking
// flock cannot be interrupted.
func (c *cache) lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		unlock, ok, err := c.tryLock(name)
		if ok || err != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process is building it: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
