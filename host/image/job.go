package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tare/host/rootfs"
	"tare/internal/files"
	"tare/internal/rootless"
)

// format is part of every key. Increase it when the same inputs give another tree.
const format = "tare-image-4"

// job is one build.
type job struct {
	builder  *Builder
	cache    *cache
	recipe   Recipe
	apt      apt
	key      string
	packages []string
	wheels   []string
	programs []rootfs.HostFile
}

// computeKey digests all inputs: recipe, files, and the distribution's signed InRelease
// files, because the same lists resolve to the same packages.
func (j *job) computeKey() (string, error) {
	h := sha256.New()
	add := func(field string) { fmt.Fprintf(h, "%d:%s", len(field), field) }
	add(format)
	add(runtime.GOARCH)
	src, err := fs.ReadFile(j.builder.recipes(), path.Join(j.recipe.Name, RecipeFile))
	if err != nil {
		return "", err
	}
	add(string(src))
	for _, f := range j.recipe.Files {
		b, err := fs.ReadFile(j.builder.recipes(), path.Join(j.recipe.Name, f.From))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("files: there is no %s next to %s", f.From, RecipeFile)
		}
		if err != nil {
			return "", err
		}
		add(f.From)
		add(string(b))
	}
	if len(j.recipe.Packages) > 0 {
		lists, err := j.apt.lists()
		if err != nil {
			if missing := j.apt.check(); missing != nil {
				err = missing // the cause
			}
			return "", err
		}
		for _, f := range lists {
			if !strings.HasSuffix(f, "Release") { // InRelease, or Release beside Release.gpg
				continue
			}
			b, err := os.ReadFile(f) //nolint:gosec // apt's own lists
			if err != nil {
				return "", fmt.Errorf("cannot read apt's lists: %w", err)
			}
			add(filepath.Base(f))
			add(string(b))
		}
	}
	if err := j.findPrograms(add); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// able returns the reason why a build would fail on this host, in addition to what
// computeKey finds. It builds nothing.
func (j *job) able() error {
	if len(j.recipe.Packages) > 0 {
		if err := j.apt.check(); err != nil {
			return err
		}
	}
	if (len(j.recipe.Run) > 0 || len(j.recipe.Wheels) > 0) && !rootless.Root() {
		return errNeedsRoot
	}
	return nil
}

// findPrograms finds the recipe's programs and their libraries on the host, and adds all of
// their files to the key.
func (j *job) findPrograms(add func(string)) error {
	if len(j.recipe.Programs) == 0 {
		return nil
	}
	found, missing, err := rootfs.Closure(j.recipe.Programs)
	if err != nil {
		return fmt.Errorf("programs: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("programs: this host has no %s; apt-get install %s", missing[0], missing[0])
	}
	j.programs = found
	for _, f := range found {
		add(f.Path)
		add(f.Link)
		if f.Source == "" {
			continue
		}
		sum, err := files.Hash(f.Source)
		if err != nil {
			return err
		}
		add(sum)
	}
	return nil
}

// run builds the tree in a temporary folder and renames it. The tree is held until release
// is called.
func (j *job) run(ctx context.Context) (t Tree, release func(), err error) {
	start := time.Now()
	dir, err := j.cache.building(j.recipe.Name)
	if err != nil {
		return Tree{}, nil, err
	}
	if t, err = j.fill(ctx, dir); err == nil {
		t.Built, t.Seconds = start.UTC().Round(0), time.Since(start).Seconds()
		t, release, err = j.cache.keep(dir, t)
	}
	if err != nil {
		return Tree{}, nil, errors.Join(err, removeAll(dir))
	}
	return t, release, nil
}

func (j *job) fill(ctx context.Context, dir string) (Tree, error) {
	u, err := newUnpacker(dir)
	if err != nil {
		return Tree{}, err
	}
	defer u.close()
	if err := u.base(); err != nil {
		return Tree{}, err
	}
	for _, step := range []func(context.Context, *unpacker) error{
		j.addPackages, j.addPrograms, j.mountPoints, j.addWheels, j.addFiles, j.addLinks, j.runCommands, j.removePatterns,
	} {
		if err := step(ctx, u); err != nil {
			return Tree{}, err
		}
	}
	if err := u.defaults(); err != nil { // again: the recipe may have removed them
		return Tree{}, err
	}
	j.builder.say("%s: sealing the tree", j.recipe.Name)
	t, err := seal(ctx, dir)
	if err != nil {
		return Tree{}, err
	}
	t.Name, t.Key, t.Packages, t.Wheels, t.Command = j.recipe.Name, j.key, j.packages, j.wheels, j.recipe.Command
	for _, k := range slices.Sorted(maps.Keys(j.recipe.Env)) {
		t.Env = append(t.Env, k+"="+j.recipe.Env[k])
	}
	return t, nil
}

func (j *job) addPackages(ctx context.Context, u *unpacker) error {
	if len(j.recipe.Packages) == 0 {
		return nil
	}
	unlock, err := j.cache.lock(ctx, aptLock)
	if err != nil {
		return err
	}
	defer unlock()
	j.builder.say("%s: resolving %s", j.recipe.Name, strings.Join(j.recipe.Packages, " "))
	if err := j.apt.prepare(); err != nil {
		return err
	}
	names, err := j.apt.choose(ctx, j.recipe.Packages)
	if err != nil {
		return err
	}
	debs, err := j.apt.resolve(ctx, names)
	if err != nil {
		return err
	}
	if len(j.recipe.Only) > 0 {
		if debs, err = matching(debs, j.recipe.Only); err != nil {
			return err
		}
		j.builder.say("%s: fetching %s", j.recipe.Name, packages(len(debs)))
		err = j.apt.download(ctx, debs)
	} else {
		j.builder.say("%s: fetching %s", j.recipe.Name, packages(len(debs)))
		err = j.apt.fetch(ctx, names)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(debs, func(a, b deb) int { return strings.Compare(a.File, b.File) })
	j.builder.say("%s: unpacking %d packages", j.recipe.Name, len(debs))
	for _, d := range debs {
		if err := j.apt.unpack(ctx, d, u); err != nil {
			return fmt.Errorf("package %s: %w", d.name(), err)
		}
		j.packages = append(j.packages, d.name()+"="+d.version())
	}
	return nil
}

// addPrograms copies what findPrograms found.
func (j *job) addPrograms(_ context.Context, u *unpacker) error {
	for _, p := range j.programs {
		if err := u.hostFile(p); err != nil {
			return fmt.Errorf("program file %s: %w", p.Path, err)
		}
	}
	return nil
}

func (u *unpacker) hostFile(p rootfs.HostFile) error {
	if p.Source == "" {
		return u.symlink(p.Path, p.Link)
	}
	f, err := os.Open(p.Source)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	return u.file(p.Path, p.Mode, f)
}

func (j *job) mountPoints(_ context.Context, u *unpacker) error { return u.defaults() }

func (j *job) runCommands(ctx context.Context, u *unpacker) error {
	for _, args := range j.recipe.Run {
		j.builder.say("%s: running %s", j.recipe.Name, args[0])
		if err := u.step(ctx, args); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) removePatterns(_ context.Context, u *unpacker) error {
	return u.remove(append(leftovers(), j.recipe.Remove...))
}

func (j *job) addFiles(_ context.Context, u *unpacker) error {
	for _, f := range j.recipe.Files {
		b, err := fs.ReadFile(j.builder.recipes(), path.Join(j.recipe.Name, f.From))
		if err != nil {
			return err
		}
		if err := u.file(f.To, f.Mode, bytes.NewReader(b)); err != nil {
			return fmt.Errorf("file %s: %w", f.To, err)
		}
	}
	return nil
}

func (j *job) addLinks(_ context.Context, u *unpacker) error {
	for _, l := range j.recipe.Links {
		if err := u.symlink(l.Path, l.Target); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
	}
	return nil
}

// removeAll is os.RemoveAll for trees with read-only folders.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // about to be removed
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

func hashOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// packages counts them in words.
func packages(n int) string {
	if n == 1 {
		return "1 package"
	}
	return fmt.Sprintf("%d packages", n)
}
