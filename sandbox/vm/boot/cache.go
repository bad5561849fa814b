package boot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/host/image"
	"tare/internal/files"
)

// Image is the recipe of the kernel's package.
const Image = "guest-kernel"

// Cache is the Source over the image cache. It is safe for concurrent use, also by
// several processes.
type Cache struct {
	Images *image.Builder
	Dir    string // of what is made here: DIGEST/vmlinuz and DIGEST/initramfs.cpio
	Self   string // this program
	Init   []byte // what a guest starts; nil: what this program carries, or Self if it carries none
	Kernel string // a kernel of the user's in place of the package's; "" for none
	Local  bool   // Get downloads and builds no kernel, it says how

	mu   sync.Mutex
	init string // SHA-256 of what a guest starts, once it was needed
	user kernel // the user's, as it was last read
}

// Names in the folder of a combination.
const (
	kernelFile    = "vmlinuz"
	initramfsFile = "initramfs.cpio"
)

// format is part of every digest: raise it when the same inputs begin to give
// another initramfs.
const format = "tare-guest-2"

// Get returns the files, making what is missing.
func (c *Cache) Get(ctx context.Context) (Files, error) {
	if c.Kernel != "" {
		c.mu.Lock()
		last := c.user
		c.mu.Unlock()
		k, err := userKernel(c.Kernel, last)
		if err != nil {
			return Files{}, err
		}
		c.mu.Lock()
		c.user = k
		c.mu.Unlock()
		return c.files(k)
	}
	if c.Local {
		if _, built, err := c.Images.Find(Image); err != nil || !built {
			return Files{}, errors.Join(errNotBuilt, err)
		}
	}
	t, release, err := c.Images.Use(ctx, Image)
	if err != nil {
		return Files{}, err
	}
	defer release() // the kernel is copied
	k, err := imageKernel(t)
	if err != nil {
		return Files{}, fmt.Errorf("image %s: %w", Image, err)
	}
	return c.files(k)
}

// Find does so without making or downloading a kernel.
func (c *Cache) Find() (Files, bool, error) {
	if c.Kernel != "" {
		f, err := c.Get(context.Background())
		return f, err == nil, err
	}
	if _, built, err := c.Images.Find(Image); err != nil || !built {
		return Files{}, false, err
	}
	f, err := c.Get(context.Background())
	return f, err == nil, err
}

var errNotBuilt = errors.New("no kernel for virtual machines is in the cache; tare image build " + Image + ", or start a study, which builds it")

// files returns what is made of a kernel and this program.
func (c *Cache) files(k kernel) (Files, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.init == "" {
		sum, err := c.hashInit()
		if err != nil {
			return Files{}, err
		}
		c.init = sum
	}
	h := sha256.New()
	for _, s := range append([]string{format, k.digest, c.init}, wanted()...) {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	digest := hex.EncodeToString(h.Sum(nil))
	dir := filepath.Join(c.Dir, digest)
	f := Files{
		Kernel: filepath.Join(dir, kernelFile), Initramfs: filepath.Join(dir, initramfsFile),
		Version: k.version, Package: k.pkg, Digest: digest,
	}
	if _, err := os.Stat(dir); err != nil {
		if err := c.make(dir, k); err != nil {
			return Files{}, fmt.Errorf("cannot make the files that virtual machines start from: %w", err)
		}
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // the mark of use that prune reads
	return f, c.prune(digest)
}

// program is what a guest starts if that is not Self.
func (c *Cache) program() []byte {
	if c.Init != nil {
		return c.Init
	}
	return carried()
}

// hashInit digests what a guest starts.
func (c *Cache) hashInit() (string, error) {
	if b := c.program(); b != nil {
		return fmt.Sprintf("%x", sha256.Sum256(b)), nil
	}
	return files.Hash(c.Self)
}

// make writes the files beside and renames.
func (c *Cache) make(dir string, k kernel) (err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { //nolint:gosec // no secret
		return err
	}
	tmp, err := os.MkdirTemp(c.Dir, makingPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // no secret
		return err
	}
	modules, steps, err := k.modules()
	if err != nil {
		return err
	}
	if err := files.Copy(filepath.Join(tmp, kernelFile), k.image, 0o644); err != nil {
		return err
	}
	if b := c.program(); b != nil {
		err = writeArchive(filepath.Join(tmp, initramfsFile), bytes.NewReader(b), int64(len(b)), modules, steps)
	} else {
		err = writeProgram(filepath.Join(tmp, initramfsFile), c.Self, modules, steps)
	}
	if err != nil {
		return err
	}
	err = os.Rename(tmp, dir)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	return err
}

const makingPrefix = ".making-"

const (
	keep    = 4         // combinations that stay, the last used
	keepFor = time.Hour // a machine may be about to start from it
)

// prune removes the combinations that were not used for longest, and what killed
// processes left.
func (c *Cache) prune(used string) error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	type entry struct {
		name string
		at   time.Time
	}
	var old []entry
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.Name() == used {
			continue
		}
		old = append(old, entry{e.Name(), info.ModTime()})
	}
	slices.SortFunc(old, func(a, b entry) int { return b.at.Compare(a.at) })
	kept := 1 // used
	for _, e := range old {
		unfinished := strings.HasPrefix(e.name, makingPrefix)
		if time.Since(e.at) < keepFor || !unfinished && kept < keep {
			if !unfinished {
				kept++
			}
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.Dir, e.name)); err != nil {
			return err
		}
	}
	return nil
}
