package image

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// recipes makes recipes of name and text, each with the file a.txt.
func recipes(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]+"/"+RecipeFile] = &fstest.MapFile{Data: []byte("about: a test\n" + pairs[i+1])}
		out[pairs[i]+"/a.txt"] = &fstest.MapFile{Data: []byte("a of " + pairs[i])}
	}
	return out
}

const oneFile = "files: [{from: a.txt, to: /app/a.txt, mode: \"0640\"}]\nlinks: {/l: app/a.txt}\n"

func mustBuild(t testing.TB, b *Builder, name string) Tree {
	t.Helper()
	tree, err := b.Build(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestSameInputsSameDigest: from empty caches, under another umask.
func TestSameInputsSameDigest(t *testing.T) {
	a := mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}, "app")
	old := unix.Umask(0o077)
	b := mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}, "app")
	unix.Umask(old)
	if a.Digest != b.Digest || a.Key != b.Key {
		t.Errorf("digests %s and %s, keys %s and %s", a.Digest, b.Digest, a.Key, b.Key)
	}
	if diff := cmp.Diff(listing(t, a.Path), listing(t, b.Path)); diff != "" {
		t.Errorf("the trees differ:\n%s", diff)
	}
	for name, m := range map[string]string{
		"a mode": strings.ReplaceAll(oneFile, "0640", "0600"), "a link's target": strings.ReplaceAll(oneFile, "/l: app", "/l: /app"),
		"a name": strings.ReplaceAll(oneFile, "/l:", "/m:"),
	} {
		if c := mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: recipes("app", m)}, "app"); c.Digest == a.Digest {
			t.Errorf("%s does not change the digest", name)
		}
	}
	other := recipes("app", oneFile)
	other["app/a.txt"].Data = []byte("b")
	if c := mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: other}, "app"); c.Digest == a.Digest || c.Key == a.Key {
		t.Error("a file's content does not change the digest and the key")
	}
}

// listing is every entry of a tree with mode, time, owner, size and target.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		target, _ := os.Readlink(p)
		if info.ModTime().Unix() != sealTime {
			t.Errorf("%s has the time %v", rel, info.ModTime())
		}
		out = append(out, strings.Join([]string{rel, info.Mode().String(), target}, " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryTreeHasMountPointsAndUsers(t *testing.T) {
	tree := mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}, "app")
	for _, d := range []string{"proc", "sys", "dev", "tmp", "data", "run"} {
		if st, err := os.Lstat(filepath.Join(tree.Path, d)); err != nil || !st.IsDir() {
			t.Errorf("%s: %v", d, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(tree.Path, "etc/passwd")); err != nil || !strings.HasPrefix(string(b), "root:") {
		t.Errorf("%q %v", b, err)
	}
	own := recipes("app", "files: [{from: a.txt, to: /etc/passwd}]")
	tree = mustBuild(t, &Builder{Cache: t.TempDir(), Recipes: own}, "app")
	if b, err := os.ReadFile(filepath.Join(tree.Path, "etc/passwd")); err != nil || string(b) != "a of app" {
		t.Errorf("the recipe's own file is not kept: %q %v", b, err)
	}
}

func TestBuiltOnce(t *testing.T) {
	var steps int
	var mu sync.Mutex
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile), Say: func(string, ...any) { mu.Lock(); steps++; mu.Unlock() }}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := b.Build(context.Background(), "app"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	once := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	want := 0
	once.Say = func(string, ...any) { want++ }
	mustBuild(t, once, "app")
	if steps != want {
		t.Errorf("six builds took %d steps, one takes %d", steps, want)
	}
	if _, built, err := b.Find("app"); !built || err != nil {
		t.Errorf("Find: %v %v", built, err)
	}
}

// TestKilledBuild: what it left is removed by the next build of the image and by
// Leftovers, not what a running build holds.
func TestKilledBuild(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile, "app-two", oneFile)}
	c, err := openCache(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	mustDir := func(name string) string {
		dir, err := c.building(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "closed"), 0o500); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	one, two := mustDir("app"), mustDir("app-two")
	mustBuild(t, b, "app")
	if _, err := os.Stat(one); err == nil {
		t.Error("the next build did not remove what the killed one left")
	}
	unlock, err := c.lock(t.Context(), "app-two")
	if err != nil {
		t.Fatal(err)
	}
	if left, err := Leftovers(b.Cache, false); err != nil || len(left) != 0 {
		t.Errorf("what a running build holds was removed: %v %v", left, err)
	}
	unlock()
	if left, err := Leftovers(b.Cache, true); err != nil || len(left) != 1 || left[0] != two {
		t.Errorf("dry: %v %v", left, err)
	}
	if left, err := Leftovers(b.Cache, false); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
	if _, err := os.Stat(two); err == nil {
		t.Error("the leftover is there yet")
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", "files: [{from: a.txt, to: /usr/bin}]")}
	if _, err := b.Build(t.Context(), "app"); err == nil || !strings.Contains(err.Error(), "cannot build the image app") {
		t.Fatalf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.Cache, buildingPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), lists: t.TempDir(), Recipes: recipes(
		"lists", "packages: [sh]", "program", "programs: [no-such-program-here]", "file", "files: [{from: b.txt, to: /b}]")}
	for name, want := range map[string]string{
		"lists": "run apt-get update", "program": "apt-get install no-such-program-here", "file": "there is no b.txt next to image.yaml",
		"nosuch": "write one of file, lists, program",
	} {
		if name == "lists" {
			if err := (apt{}).check(); err != nil {
				want = err.Error()
			}
		}
		if _, err := b.Build(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := b.Build(t.Context(), "nosuch"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestPrune(t *testing.T) {
	big := recipes("one", oneFile, "two", oneFile, "three", oneFile)
	for name, f := range big {
		if strings.HasSuffix(name, "a.txt") {
			f.Data = append(f.Data, make([]byte, 10_000)...)
		}
	}
	b := &Builder{Cache: t.TempDir(), Recipes: big}
	now := time.Now()
	trees := map[string]Tree{}
	c, _ := openCache(b.Cache)
	for i, n := range []string{"one", "two", "three"} {
		tree := mustBuild(t, b, n)
		trees[n] = tree
		used := now.Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(c.record(n, tree.Key), used, used); err != nil {
			t.Fatal(err)
		}
	}
	release, err := b.Hold(trees["one"]) // the oldest, but in use
	if err != nil {
		t.Fatal(err)
	}
	names := func(es []Entry) (out []string) {
		for _, e := range es {
			out = append(out, e.Name)
		}
		return out
	}
	dry, err := b.Prune(t.Context(), PruneOptions{Limit: 25_000, Dry: true})
	if err != nil || !cmp.Equal(names(dry), []string{"two"}) {
		t.Errorf("dry: %v %v", names(dry), err)
	}
	gone, err := b.Prune(t.Context(), PruneOptions{Limit: 25_000})
	if err != nil || !cmp.Equal(names(gone), []string{"two"}) {
		t.Errorf("gone: %v %v; want two, the oldest that is not in use", names(gone), err)
	}
	if _, err := os.Stat(trees["two"].Path); err == nil {
		t.Error("the tree is there yet")
	}
	if _, err := b.Hold(trees["two"]); err == nil {
		t.Error("a tree that is gone can be held")
	}
	release()
	gone, err = b.Prune(t.Context(), PruneOptions{All: true})
	if err != nil || !cmp.Equal(names(gone), []string{"one", "three"}) {
		t.Errorf("all: %v %v", names(gone), err)
	}
	left, _ := os.ReadDir(filepath.Join(b.Cache, "trees"))
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	mustBuild(t, b, "two") // it comes back
}

func TestPruneOld(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	old := mustBuild(t, b, "app")
	c, _ := openCache(b.Cache)
	b.Recipes = recipes("app", oneFile+"env: {A: b}\nremove: [/etc/hosts]\ncommand: [x]\n", "more", oneFile)
	b.Recipes.(fstest.MapFS)["app/a.txt"].Data = []byte("new")
	fresh := mustBuild(t, b, "app")
	c.touch(c.record("app", old.Key)) // that it was used last makes it no newer
	gone, err := b.Prune(t.Context(), PruneOptions{Old: true})
	if err != nil || len(gone) != 1 || gone[0].Path != old.Path {
		t.Errorf("%v %v", gone, err)
	}
	if _, err := os.Stat(fresh.Path); err != nil {
		t.Error(err)
	}
}

// TestPruneSparesWhatIsFetched: packages and wheels stay while a build has the
// lock, however old their files are; then they go, however new.
func TestPruneSparesWhatIsFetched(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	c, err := openCache(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-24 * time.Hour)
	files := map[string]string{aptLock: filepath.Join(b.Cache, "apt/debs/a_1_all.deb"), wheelLock: filepath.Join(b.Cache, "wheels/a-1.part/a.whl")}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Dir(f), long, long); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for lock, f := range files {
		unlock, err := c.lock(t.Context(), lock)
		if err != nil {
			t.Fatal(err)
		}
		gone, err := b.Prune(t.Context(), PruneOptions{All: true, Dry: true})
		if err != nil || len(gone) != 1 || strings.HasPrefix(f, gone[0].Path) {
			t.Errorf("%s is held, and prune would remove %v, %v; want the other file alone", lock, gone, err)
		}
		if left, err := Leftovers(b.Cache, true); err != nil || (len(left) > 0) != (lock == aptLock) {
			t.Errorf("%s is held, and leftovers are %v, %v", lock, left, err)
		}
		unlock()
		c.touch(f)
	}
	if _, err := b.Prune(t.Context(), PruneOptions{All: true}); err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			t.Errorf("%s is there yet", f)
		}
	}
}

// TestUseHolds: from a build, and from the cache, no prune comes between.
func TestUseHolds(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	for range 2 { // built, found
		tree, release, err := b.Use(t.Context(), "app")
		if err != nil {
			t.Fatal(err)
		}
		if gone, err := b.Prune(t.Context(), PruneOptions{All: true}); err != nil || len(gone) > 0 {
			t.Errorf("%v %v went, held", gone, err)
		}
		if _, err := os.Stat(tree.Path); err != nil {
			t.Error(err)
		}
		release()
	}
	// Against a prune that never rests: each tree is there.
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = b.Prune(context.Background(), PruneOptions{All: true})
		}
	})
	for range 50 {
		tree, release, err := b.Use(ctx, "app")
		if err != nil {
			t.Error(err)
			break
		}
		if _, err := os.Stat(filepath.Join(tree.Path, "app/a.txt")); err != nil {
			t.Error(err)
		}
		release()
	}
	cancel()
	wg.Wait()
}

func TestCacheStaysWithinItsLimit(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("one", oneFile, "two", oneFile), Limit: 1}
	one := mustBuild(t, b, "one")
	two := mustBuild(t, b, "two")
	if _, err := os.Stat(one.Path); err == nil {
		t.Error("the older tree stays beyond the limit")
	}
	if _, err := os.Stat(two.Path); err != nil {
		t.Errorf("the tree that was just built is gone: %v", err)
	}
}

func TestDress(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", oneFile)}
	tree := mustBuild(t, b, "app")
	clone := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", tree.Path, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Dress(clone, self); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := files.Hash(self)
	if got, err := files.Hash(filepath.Join(clone, "tare")); err != nil || got != want {
		t.Errorf("/tare is not this binary: %v", err)
	}
	before, _ := os.Stat(filepath.Join(clone, "tare"))
	if err := os.WriteFile(filepath.Join(clone, "other"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Dress(clone, filepath.Join(clone, "other")); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(filepath.Join(clone, "tare")); err != nil || os.SameFile(before, after) || after.Mode() != 0o755 {
		t.Errorf("another binary was not renamed into place: %v %v", after.Mode(), err)
	}
	for _, n := range []string{"tare-hello", "tare-pause"} {
		if st, err := os.Stat(filepath.Join(clone, n)); err != nil || st.Mode() != 0o755 {
			t.Errorf("%s: %v", n, err)
		}
	}
	if _, err := os.Stat(filepath.Join(tree.Path, "tare")); err == nil {
		t.Error("dressing the copy dressed the original")
	}
}
