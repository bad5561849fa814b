package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one item of the cache.
type Entry struct {
	Kind  string    `json:"kind"` // tree, package, wheel, layer
	Name  string    `json:"name"` // of the image, or the file
	Path  string    `json:"path"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"used"`

	digest  string
	records []string // of a tree
	newest  bool     // the newest tree of its image
}

// Kinds of entries.
const (
	KindTree    = "tree"
	KindPackage = "package"
	KindWheel   = "wheel"
	KindLayer   = "layer" // of a registry's images
)

// Hold marks a tree as used until release is called or the process ends, so that Prune does
// not remove it.
func (b *Builder) Hold(t Tree) (release func(), err error) {
	c, err := openCache(b.Cache)
	if err != nil {
		return nil, err
	}
	release, err = c.hold(t.Digest)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.Path); err != nil {
		release()
		return nil, fmt.Errorf("the image %s was removed from the cache just now; try again: %w", t.Name, err)
	}
	return release, nil
}

func treeLock(digest string) string { return "tree-" + digest }

func layerLock(digest string) string { return "layer-" + digest }

// PruneOptions say what to remove.
type PruneOptions struct {
	Limit int64 // bytes that may stay; 0: DefaultLimit
	All   bool  // everything that is not in use
	Old   bool  // trees that a newer build of the same image has replaced
	Dry   bool  // list only
}

// Prune removes the least recently used entries until at most the limit is left, and
// returns the removed entries. It keeps entries that are in use.
func (b *Builder) Prune(ctx context.Context, o PruneOptions) ([]Entry, error) {
	c, err := openCache(b.Cache)
	if err != nil {
		return nil, err
	}
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	entries, err := c.entries()
	if err != nil {
		return nil, err
	}
	var total int64
	for _, e := range entries {
		total += e.Bytes
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Used.Compare(b.Used) })
	var gone []Entry
	for _, e := range entries {
		if ctx.Err() != nil {
			return gone, ctx.Err()
		}
		if !o.All && total <= o.Limit && (!o.Old || e.Kind != KindTree || e.newest) {
			continue
		}
		removed, err := c.drop(e, o.Dry)
		if err != nil {
			return gone, fmt.Errorf("cannot remove %s: %w", e.Path, err)
		}
		if removed {
			total -= e.Bytes
			gone = append(gone, e)
		}
	}
	return gone, nil
}

// drop removes an entry unless it is in use: a tree while somebody holds it,
// layers likewise, packages and wheels while any build fetches or unpacks some.
func (c *cache) drop(e Entry, dry bool) (bool, error) {
	lock := treeLock(e.digest)
	switch e.Kind {
	case KindPackage:
		lock = aptLock
	case KindWheel:
		lock = wheelLock
	case KindLayer:
		lock = layerLock(e.Name)
	}
	unlock, free, err := c.tryLock(lock)
	if err != nil || !free {
		return false, err
	}
	defer unlock()
	if dry {
		return true, nil
	}
	if e.Kind != KindTree {
		return true, os.RemoveAll(e.Path)
	}
	for _, r := range e.records { // first, so that find never returns a partly removed tree
		if err := os.Remove(r); err != nil {
			return false, err
		}
	}
	// Rename it first: if tare is killed during the removal, the rest is not taken for a tree.
	away := filepath.Join(c.dir, buildingPrefix+"~gone-"+e.digest)
	if err := removeAll(away); err != nil {
		return false, err
	}
	if err := os.Rename(e.Path, away); err != nil {
		return false, err
	}
	return true, removeAll(away)
}

// entries lists what is in the cache.
func (c *cache) entries() ([]Entry, error) {
	trees, err := c.trees()
	if err != nil {
		return nil, err
	}
	out := trees
	for _, k := range []struct{ kind, pattern string }{{KindPackage, "apt/debs/*.deb"}, {KindWheel, "wheels/*"}, {KindLayer, "layers/*"}} {
		found, err := filepath.Glob(filepath.Join(c.dir, k.pattern))
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			st, err := os.Stat(p)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			e := Entry{Kind: k.kind, Name: filepath.Base(p), Path: p, Bytes: st.Size(), Used: st.ModTime()}
			if st.IsDir() {
				if e.Bytes, err = treeSize(p); err != nil {
					return nil, err
				}
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// trees lists the trees with their records. A tree without a record, as a killed build
// leaves it, counts as old.
func (c *cache) trees() ([]Entry, error) {
	byDigest := map[string]*Entry{}
	newest := map[string]Tree{}
	records, err := filepath.Glob(filepath.Join(c.dir, "built", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		t, used, err := readRecord(r)
		if err != nil {
			continue // removed just now, or not ours
		}
		e := byDigest[t.Digest]
		if e == nil {
			e = &Entry{Kind: KindTree, Name: t.Name, Path: filepath.Join(c.dir, "trees", t.Digest), Bytes: t.Bytes, digest: t.Digest}
			byDigest[t.Digest] = e
		}
		e.records = append(e.records, r)
		if used.After(e.Used) {
			e.Used = used
		}
		if n, ok := newest[t.Name]; !ok || t.Built.After(n.Built) {
			newest[t.Name] = t
		}
	}
	for _, n := range newest {
		byDigest[n.Digest].newest = true
	}
	dirs, err := os.ReadDir(filepath.Join(c.dir, "trees"))
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, d := range dirs {
		e := byDigest[d.Name()]
		if e == nil {
			e = &Entry{Kind: KindTree, Name: "?", Path: filepath.Join(c.dir, "trees", d.Name()), digest: d.Name()}
			if e.Bytes, err = treeSize(e.Path); err != nil {
				return nil, err
			}
		}
		out = append(out, *e)
	}
	return out, nil
}

func readRecord(file string) (Tree, time.Time, error) {
	var t Tree
	st, err := os.Stat(file)
	if err != nil {
		return t, time.Time{}, err
	}
	b, err := os.ReadFile(file) //nolint:gosec // our own cache
	if err != nil {
		return t, time.Time{}, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, time.Time{}, err
	}
	if len(t.Digest) != 64 || strings.Contains(t.Digest, "/") {
		return t, time.Time{}, errors.New("no digest")
	}
	return t, st.ModTime(), nil
}

func treeSize(dir string) (int64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n, err
}

// Leftovers lists the unfinished trees and files of killed builds in a cache, and removes
// them unless dry. It keeps what a running build holds.
func Leftovers(cacheDir string, dry bool) (found []string, err error) {
	for _, pattern := range []string{buildingPrefix + "*", "trees/*/" + buildingPrefix + "*", "wheels/*" + partSuffix, "built/*.new"} {
		paths, err := filepath.Glob(filepath.Join(cacheDir, pattern))
		if err != nil {
			return found, err
		}
		for _, p := range paths {
			release, busy, err := owner(cacheDir, p)
			if err != nil {
				return found, err
			}
			if busy {
				continue
			}
			found = append(found, p)
			if !dry {
				err = removeAll(p)
			}
			release()
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// fresh is the age up to which an unlocked file may still be in use: writing one takes
// seconds.
const fresh = 10 * time.Minute

// owner takes the lock of the build that makes path, if path has one. busy reports that the
// build runs.
func owner(cacheDir, path string) (release func(), busy bool, err error) {
	name, _, ok := strings.Cut(strings.TrimPrefix(filepath.Base(path), buildingPrefix), "~")
	switch {
	case strings.HasSuffix(path, partSuffix):
		name = wheelLock
	case !ok || name == "":
		st, err := os.Lstat(path)
		return func() {}, err == nil && time.Since(st.ModTime()) < fresh, nil
	}
	release, free, err := (&cache{dir: cacheDir}).tryLock(name)
	return release, err == nil && !free, err
}
