// Package image makes the root file systems of applications without a
// registry: from the distribution's packages, Python wheels, the host's own
// programs and files beside the recipe.
//
// The data path: 1. Parse reads a recipe, images/NAME/image.yaml; 2. its key,
// the digest of all inputs, is looked up in the cache; if it is there, the image is
// finished; 3. apt resolves and fetches packages (packages.go), pip wheels
// (wheels.go); 4. their members are checked and unpacked into .building-NAME-*
// (unpack.go), files and links are put over them, commands run in the tree
// (step.go), patterns are removed; 5. seal gives every entry the same owner and
// time and computes the digest; 6. the tree is renamed to trees/DIGEST; 7. Dress
// puts this binary in at use; 8. Export and Push make an OCI image of it
// (oci.go).
//
// mmdebstrap was rejected: it downloads the archive's lists for every build, needs Perl
// and mounts, and its trees have the output of dpkg's hooks. To resolve with apt on an
// empty status and to unpack takes seconds, and gives the same files as its variant
// "extract".
package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"tare/images"
	"tare/sandbox"
)

// Tree is an image on this host.
type Tree struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"`     // absolute; users must not write to it
	Digest   string    `json:"digest"`   // SHA-256 in hexadecimal: of names, modes, links and contents; of a user's image, of its config
	Bytes    int64     `json:"bytes"`    // of all files
	Files    int       `json:"files"`    // entries of any kind
	Packages []string  `json:"packages"` // NAME=VERSION, sorted
	Wheels   []string  `json:"wheels"`   // NAME==VERSION sha256:HASH, sorted
	Key      string    `json:"key"`      // SHA-256 of the inputs
	Built    time.Time `json:"built"`
	Seconds  float64   `json:"seconds"` // duration of the build

	// How its programs are to run.
	Entrypoint []string     `json:"entrypoint,omitempty"`
	Command    []string     `json:"command,omitempty"`
	Env        []string     `json:"env,omitempty"` // NAME=VALUE, sorted
	Dir        string       `json:"dir,omitempty"` // working directory; "": /
	User       sandbox.User `json:"user,omitzero"`
	Problem    string       `json:"problem,omitempty"` // its own command is not in it; see Unable

	Manifest string `json:"manifest,omitempty"` // digest of a user's image, if it has one

	Arch string `json:"-"` // GOARCH of its programs; "": this host's
}

// platform is what its programs run on.
func (t Tree) platform() v1.Platform {
	return v1.Platform{OS: "linux", Architecture: cmp.Or(t.Arch, runtime.GOARCH)}
}

// Identity is the digest by which others know the image: of the manifest, as a registry has it, or
// of the tree.
func (t Tree) Identity() string {
	return cmp.Or(t.Manifest, t.Digest)
}

// Builder builds images into a cache. All fields except Cache are optional: the defaults
// are the shipped recipes, no progress messages, and DefaultLimit.
type Builder struct {
	Cache    string               // folder of the cache, made if missing
	Recipes  fs.FS                // NAME/image.yaml
	Say      func(string, ...any) // gets a message for each step
	Limit    int64                // bytes of the cache
	lists    string               // apt's, for tests
	stall    time.Duration        // how long a registry may say nothing; 0: stallTime
	insecure bool                 // registries may be without TLS, or have any certificate
}

// DefaultLimit bounds the cache in bytes.
const DefaultLimit = 8 << 30

func (b *Builder) recipes() fs.FS {
	if b.Recipes != nil {
		return b.Recipes
	}
	return images.FS
}

func (b *Builder) say(format string, args ...any) {
	if b.Say != nil {
		b.Say(format, args...)
	}
}

// Names lists the images that have a recipe, sorted.
func (b *Builder) Names() ([]string, error) {
	files, err := fs.Glob(b.recipes(), "*/"+RecipeFile)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		out = append(out, path.Dir(f))
	}
	slices.Sort(out)
	return out, nil
}

// ErrUnknown means that no recipe has that name.
var ErrUnknown = errors.New("there is no such image")

// Recipe reads the recipe of an image.
func (b *Builder) Recipe(name string) (Recipe, error) {
	known, err := b.Names()
	if err != nil {
		return Recipe{}, err
	}
	if !slices.Contains(known, name) {
		return Recipe{}, fmt.Errorf("image %q: %w; there are %s", name, ErrUnknown, strings.Join(known, ", "))
	}
	file := path.Join(name, RecipeFile)
	f, err := b.recipes().Open(file)
	if err != nil {
		return Recipe{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	return Parse(name, path.Join("images", file), f)
}

// Build makes the image of that name in the cache, unless the cache has it.
// Several processes may ask for it at once; one builds, the others wait.
func (b *Builder) Build(ctx context.Context, name string) (Tree, error) {
	t, release, err := b.Use(ctx, name)
	if err != nil {
		return Tree{}, err
	}
	release()
	return t, nil
}

// Use is Build for callers that use the tree for a while: Prune does not remove it until
// release is called or the process ends.
func (b *Builder) Use(ctx context.Context, name string) (t Tree, release func(), err error) {
	s, err := b.source(name)
	if err != nil {
		return Tree{}, nil, fmt.Errorf("image %s: %w", name, err)
	}
	verb := "build"
	if s != nil {
		verb = "take"
		t, release, err = b.own(ctx, name, s)
	} else {
		var recipe Recipe
		if recipe, err = b.Recipe(name); err != nil {
			return Tree{}, nil, err
		}
		t, release, err = b.build(ctx, recipe)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("the disk is full; free space (tare image prune), or give another --cache: %w", err)
	}
	if err != nil {
		return Tree{}, nil, fmt.Errorf("cannot %s the image %s: %w", verb, name, err)
	}
	return t, release, nil
}

func (b *Builder) job(c *cache, r Recipe) *job {
	return &job{builder: b, cache: c, recipe: r, apt: apt{dir: filepath.Join(c.dir, "apt"), host: cmp.Or(b.lists, hostLists)}}
}

func (b *Builder) build(ctx context.Context, r Recipe) (_ Tree, release func(), err error) {
	c, err := openCache(b.Cache)
	if err != nil {
		return Tree{}, nil, err
	}
	unlock, err := c.lock(ctx, r.Name)
	if err != nil {
		return Tree{}, nil, err
	}
	defer unlock()
	j := b.job(c, r)
	if j.key, err = j.computeKey(); err != nil {
		return Tree{}, nil, err
	}
	if t, ok := c.find(r.Name, j.key); ok {
		if release, err := b.Hold(t); err == nil {
			return t, release, nil
		} // Prune has removed it meanwhile: build it again
	}
	if err := j.able(); err != nil { // before anything is fetched
		return Tree{}, nil, err
	}
	t, release, err := j.run(ctx)
	if err != nil {
		return Tree{}, nil, err
	}
	if _, err := b.Prune(ctx, PruneOptions{Limit: b.Limit}); err != nil {
		b.say("%s: the cache is over its limit: %v", r.Name, err)
	}
	return t, release, nil
}

// Find returns the image if the cache has it for the present inputs. The error says why
// this host cannot build it.
func (b *Builder) Find(name string) (t Tree, built bool, err error) {
	s, err := b.source(name)
	if err != nil {
		return Tree{}, false, fmt.Errorf("image %s: %w", name, err)
	}
	c, err := openCache(b.Cache)
	if err != nil {
		return Tree{}, false, err
	}
	if s != nil {
		t, built = c.latest(name) // whether it is the newest is not asked before it is used
		return t, built, nil
	}
	recipe, err := b.Recipe(name)
	if err != nil {
		return Tree{}, false, err
	}
	j := b.job(c, recipe)
	if j.key, err = j.computeKey(); err != nil {
		return Tree{}, false, err
	}
	if t, built = c.find(name, j.key); !built {
		err = j.able()
	}
	return t, built, err
}
