package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MostCached is what Prune leaves of a host's files where no other limit is given, in
// bytes on the disk: each kind of machine has that many at most, and a study can define
// any number of kinds.
const MostCached = mostImages + mostSnapshots

// Cached is a file that machines start from, made once and kept.
type Cached struct {
	Kind  string    `json:"kind"` // disk, snapshot; leftover: what a killed process had not finished
	Name  string    `json:"name"` // of the kind of machine, where a study has defined it: NAME/FILE
	Path  string    `json:"path"`
	Bytes int64     `json:"bytes"` // on the disk
	Used  time.Time `json:"used"`

	file string // its name in its folder
}

// Kinds of Cached.
const (
	CachedDisk     = "disk"
	CachedSnapshot = "snapshot"
	CachedLeftover = "leftover"
)

// PruneOptions say what goes.
type PruneOptions struct {
	Limit int64 // bytes that may stay; 0: MostCached
	All   bool  // everything that is not in use
	Dry   bool  // list only
}

// Prune removes what killed processes left of the files of machines, of all kinds together,
// and what was used least recently until at most the limit is left. It returns what went.
// What was used within ten minutes stays, for a machine may be about to start from it, and what
// is being made. cache is Config.CacheDir of the kind vm; those that studies defined are in it.
func Prune(ctx context.Context, cache string, o PruneOptions) (gone []Cached, err error) {
	o.Limit = cmp.Or(o.Limit, MostCached)
	all, err := cached(cache)
	if err != nil {
		return nil, err
	}
	gone, err = shrink(ctx, all, o)
	if o.All && !o.Dry && ctx.Err() == nil {
		err = errors.Join(err, forgetKinds(cache))
	}
	return gone, err
}

// shrink removes leftovers, and what was not used for longest until at most the limit is left.
func shrink(ctx context.Context, all []Cached, o PruneOptions) (gone []Cached, err error) {
	slices.SortStableFunc(all, func(a, b Cached) int {
		if (a.Kind == CachedLeftover) != (b.Kind == CachedLeftover) {
			if a.Kind == CachedLeftover {
				return -1
			}
			return 1
		}
		return a.Used.Compare(b.Used)
	})
	var total int64
	for _, c := range all {
		total += c.Bytes
	}
	for _, c := range all {
		if ctx.Err() != nil {
			return gone, errors.Join(err, ctx.Err())
		}
		if c.Kind != CachedLeftover && !o.All && total <= o.Limit {
			continue
		}
		removed, failed := c.drop(o.Dry)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("cannot remove %s: %w", c.Path, failed))
		}
		if removed {
			total -= c.Bytes
			gone = append(gone, c)
		}
	}
	return gone, err
}

// cached lists the files of all kinds.
func cached(cache string) ([]Cached, error) {
	var out []Cached
	for _, pattern := range []string{"disks", "snapshots", ownKinds + "/*/disks", ownKinds + "/*/snapshots"} {
		dirs, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			found, err := cachedIn(dir)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// ownKinds is the folder of the kinds that studies define, by their names.
const ownKinds = "own"

func cachedIn(dir string) ([]Cached, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed just now
	}
	if err != nil {
		return nil, err
	}
	var out []Cached
	for _, e := range entries {
		c := Cached{Kind: CachedDisk, Name: e.Name(), Path: filepath.Join(dir, e.Name()), file: e.Name()}
		if filepath.Base(dir) == "snapshots" {
			c.Kind = CachedSnapshot
		}
		if name, ok := strings.CutPrefix(e.Name(), partly); ok {
			c.Kind, c.file = CachedLeftover, name
		}
		if kind := filepath.Dir(dir); filepath.Base(filepath.Dir(kind)) == ownKinds {
			c.Name = filepath.Join(filepath.Base(kind), c.Name)
		}
		var st unix.Stat_t
		if err := unix.Lstat(c.Path, &st); err != nil || e.Name() == lockFile {
			continue
		}
		c.Bytes, c.Used = st.Blocks*512, time.Unix(st.Mtim.Sec, st.Mtim.Nsec)
		out = append(out, c)
	}
	return out, nil
}

// drop removes a file, unless somebody makes it or has just used it. Machines that run
// have theirs open, and keep it.
func (c *Cached) drop(dry bool) (bool, error) {
	at, stop := context.WithCancel(context.Background())
	stop() // one try
	unlock, err := lock(at, filepath.Join(filepath.Dir(c.Path), lockFile), c.file)
	if errors.Is(err, context.Canceled) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	st, err := os.Lstat(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if c.Kind != CachedLeftover && time.Since(st.ModTime()) < fresh {
		return false, nil
	}
	if dry {
		return true, nil
	}
	return true, os.RemoveAll(c.Path)
}

// forgetKinds removes the folders of defined kinds of which nothing is left but locks and
// what a trial boot has shown. That one is made again.
func forgetKinds(cache string) error {
	kinds, err := filepath.Glob(filepath.Join(cache, ownKinds, "*"))
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		keep := false
		for _, dir := range []string{"disks", "snapshots"} {
			left, err := cachedIn(filepath.Join(kind, dir))
			if err != nil {
				return err
			}
			keep = keep || len(left) > 0
		}
		st, failed := os.Stat(filepath.Join(kind, verdictFile))
		if keep || failed == nil && time.Since(st.ModTime()) < fresh {
			continue
		}
		if failed := os.RemoveAll(kind); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}
