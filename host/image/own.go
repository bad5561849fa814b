package image

import (
	"bufio"
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
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/readahead"

	"tare/param"
)

// found is an image of a user that was looked up, and not read yet.
type found struct {
	manifest string // digest of the manifest; "" if there is none
	config   []byte // of the OCI's image specification; nil: a root file system without one
	layers   []func() (io.ReadCloser, error)
	// damaged is called, if it is set, with the number of a layer that is not what the
	// config says.
	damaged func(int) error
}

// source is where a user's image is.
type source interface {
	// key is what of the source a tree depends on: the same key, the same tree.
	key(context.Context) (string, error)
	// find looks the image up; done is called when its layers have been read.
	find(context.Context) (f *found, done func(), err error)
}

// source says where the image of a name is; nil if the name is a recipe's.
func (b *Builder) source(name string) (source, error) {
	known, err := b.Names()
	if err != nil || slices.Contains(known, name) {
		return nil, err
	}
	if OnDisk(name) {
		return b.onDisk(name)
	}
	if !strings.ContainsAny(name, "/:@") {
		if _, err := os.Lstat(name); err == nil {
			return nil, fmt.Errorf("%w; if you mean the file or folder, write ./%s", ErrUnknown, name)
		}
		return nil, fmt.Errorf("%w; %s or, for an image from Docker Hub, add its tag: %s:latest", ErrUnknown, param.Suggest(name, known), name)
	}
	return b.inRegistry(name)
}

// OnDisk reports whether a name is the path of an archive, a layout or a folder.
func OnDisk(name string) bool {
	return slices.Contains([]string{".", ".."}, name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../")
}

// label names the lock, the temporary folders and the records of a user's image. No recipe has
// such a name.
func label(name string) string { return "_" + digestOf(name)[:16] }

func digestOf(fields ...string) string {
	h := sha256.New()
	for _, f := range fields {
		_, _ = fmt.Fprintf(h, "%d:%s", len(f), f) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// own is build for a user's image.
func (b *Builder) own(ctx context.Context, name string, s source) (_ Tree, release func(), err error) {
	c, err := openCache(b.Cache)
	if err != nil {
		return Tree{}, nil, err
	}
	unlock, err := c.lock(ctx, label(name))
	if err != nil {
		return Tree{}, nil, err
	}
	defer unlock()
	key, err := s.key(ctx)
	if err != nil {
		if t, ok := c.latest(name); ok && (errors.Is(err, errNoAnswer) || errors.Is(err, ErrInsecure)) {
			b.say("%s: %v; taking what was pulled at %s", name, err, t.Built.Format(time.DateTime))
			release, err := b.Hold(t)
			return t, release, err
		}
		return Tree{}, nil, err
	}
	key = digestOf(format, name, key)
	if t, ok := c.find(label(name), key); ok {
		if release, err := b.Hold(t); err == nil {
			return t, release, nil
		}
	}
	start := time.Now()
	f, done, err := s.find(ctx)
	if err != nil {
		return Tree{}, nil, err
	}
	defer done()
	t, release, err := b.unpack(ctx, c, Tree{Name: name, Key: key, Manifest: f.manifest, Built: start.UTC().Round(0)}, f)
	if err != nil {
		return Tree{}, nil, err
	}
	if _, err := b.Prune(ctx, PruneOptions{Limit: b.Limit}); err != nil {
		b.say("%s: the cache is over its limit: %v", name, err)
	}
	return t, release, nil
}

// unpack makes the tree of an image, unless another name has brought it already: its digest is
// that of the config, which has those of the layers.
func (b *Builder) unpack(ctx context.Context, c *cache, t Tree, f *found) (_ Tree, release func(), err error) {
	var conf v1.ConfigFile
	if f.config != nil {
		read, err := v1.ParseConfigFile(bytes.NewReader(f.config))
		if err != nil {
			return Tree{}, nil, fmt.Errorf("its config: %w", err)
		}
		if conf = *read; len(conf.RootFS.DiffIDs) != len(f.layers) {
			return Tree{}, nil, fmt.Errorf("it is not the image of a container: its config has %d layers, its manifest %d", len(conf.RootFS.DiffIDs), len(f.layers))
		}
		if err := fits(conf.Architecture, conf.OS); err != nil {
			return Tree{}, nil, err
		}
		sum := sha256.Sum256(f.config)
		t.Digest = hex.EncodeToString(sum[:])
		if same, ok := c.tree(t.Digest); ok {
			if release, err := c.hold(t.Digest); err == nil {
				same.Name, same.Key, same.Manifest, same.Built = t.Name, t.Key, t.Manifest, t.Built
				return same, release, c.write(same)
			}
		}
	}
	dir, err := c.building(label(t.Name))
	if err != nil {
		return Tree{}, nil, err
	}
	if err = b.fill(ctx, dir, &t, f, conf); err == nil {
		t.Seconds = time.Since(t.Built).Seconds()
		t, release, err = c.keep(dir, t)
	}
	if err != nil {
		return Tree{}, nil, errors.Join(err, removeAll(dir))
	}
	return t, release, nil
}

func (b *Builder) fill(ctx context.Context, dir string, t *Tree, f *found, conf v1.ConfigFile) error {
	a, err := newApplier(dir)
	if err != nil {
		return err
	}
	defer a.close()
	for i, open := range f.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.say("%s: unpacking layer %d of %d", t.Name, i+1, len(f.layers))
		got, err := a.from(ctx, open)
		if err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
		if f.config == nil {
			t.Digest = got
		} else if want := conf.RootFS.DiffIDs[i].Hex; got != want {
			err := fmt.Errorf("layer %d has the digest %s, but the image's config says %s; get the image again", i+1, got, want)
			if f.damaged != nil {
				err = errors.Join(err, f.damaged(i))
			}
			return err
		}
	}
	if err := a.finish(); err != nil {
		return err
	}
	if err := a.adopt(t, conf.Config); err != nil {
		return err
	}
	t.Bytes, t.Files = a.bytes, a.files
	return nil
}

// from unpacks a layer and returns the digest of its uncompressed archive.
func (a *applier) from(ctx context.Context, open func() (io.ReadCloser, error)) (digest string, err error) {
	raw, err := open()
	if err != nil {
		return "", err
	}
	defer raw.Close() //nolint:errcheck // read only
	plain, err := decompress(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	ahead := readAhead(ctx, io.TeeReader(plain, sum))
	defer ahead.Close() //nolint:errcheck // likewise
	if err := a.layer(ahead); err != nil {
		return "", err
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(ahead, maxPadding)); err != nil || n == maxPadding {
		return "", errors.Join(err, errors.New("there is data after the end of its archive"))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// readAhead reads in a goroutine of its own, so that to decompress and to write take two
// processors. It fails when ctx has ended.
func readAhead(ctx context.Context, r io.Reader) io.ReadCloser {
	return readahead.NewReader(readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
}

// readFunc is a function as an io.Reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

const maxPadding = 1 << 20 // bytes after the end of an archive

// decompress finds out how a layer is compressed. Its media type may say otherwise.
func decompress(raw io.Reader) (io.ReadCloser, error) {
	r := bufio.NewReaderSize(raw, 256<<10)
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}): // RFC 1952
		return gzip.NewReader(r)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}): // RFC 8878
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case bytes.HasPrefix(head, []byte("BZh")), bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X'}):
		return nil, errors.New("it is compressed with bzip2 or xz; use gzip, zstd or no compression")
	}
	return io.NopCloser(r), nil
}

// Own lists the images that users took from elsewhere, the newest tree of each, by name.
func (b *Builder) Own() ([]Tree, error) {
	c, err := openCache(b.Cache)
	if err != nil {
		return nil, err
	}
	newest := map[string]Tree{}
	c.recorded("_*", func(t Tree) bool {
		if n, ok := newest[t.Name]; !ok || t.Built.After(n.Built) {
			newest[t.Name] = t
		}
		return false
	})
	var out []Tree
	for _, n := range slices.Sorted(maps.Keys(newest)) {
		out = append(out, newest[n])
	}
	return out, nil
}

// latest returns the tree that was pulled last under a name.
func (c *cache) latest(name string) (out Tree, ok bool) {
	return c.recorded(label(name)+"-*", func(t Tree) bool { return t.Name == name })
}

// tree returns any record of a tree.
func (c *cache) tree(digest string) (Tree, bool) {
	return c.recorded("_*", func(t Tree) bool { return t.Digest == digest })
}

func (c *cache) recorded(pattern string, fits func(Tree) bool) (out Tree, ok bool) {
	records, _ := filepath.Glob(filepath.Join(c.dir, "built", pattern+".json"))
	for _, r := range records {
		t, _, err := readRecord(r)
		t.Path = filepath.Join(c.dir, "trees", t.Digest)
		if st, serr := os.Stat(t.Path); err == nil && serr == nil && st.IsDir() && fits(t) && (!ok || t.Built.After(out.Built)) {
			out, ok = t, true
		}
	}
	return out, ok
}

// onDisk is a path, and a name after a colon where it has several images.
func (b *Builder) onDisk(name string) (source, error) {
	at, tag := name, ""
	st, err := os.Stat(at)
	for i, c := range name { // the first colon after something that is there: both parts may have others
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if c == ':' {
			at, tag = name[:i], name[i+1:]
			st, err = os.Stat(at)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no such file or folder", ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	if at, err = filepath.Abs(at); err != nil {
		return nil, err
	}
	switch {
	case st.Mode().IsRegular():
		return file{path: at, tag: tag, temp: b.Cache}, nil
	case !st.IsDir():
		return nil, fmt.Errorf("%w: it is neither a file nor a folder", ErrUnknown)
	}
	if _, err := os.Stat(filepath.Join(at, "oci-layout")); err == nil {
		return file{path: at, tag: tag, temp: b.Cache}, nil
	}
	if cache, err := filepath.Abs(b.Cache); err != nil || strings.HasPrefix(cache+"/", strings.TrimSuffix(at, "/")+"/") {
		return nil, errors.Join(err, fmt.Errorf("%w: tare's cache %s is in that folder; give a folder that contains only the files of the image", ErrUnknown, cache))
	}
	return rootFolder(at), nil
}

// file is an image layout or an archive of one.
type file struct{ path, tag, temp string }

func (f file) key(context.Context) (string, error) {
	st, err := os.Stat(f.path)
	if err != nil {
		return "", err
	}
	if st.IsDir() {
		if st, err = os.Stat(filepath.Join(f.path, "index.json")); err != nil {
			return "", err
		}
	}
	return identity(st), nil
}

// identity changes whenever a file does: stat(2).
func identity(st fs.FileInfo) string {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Sprint(st.Size(), st.ModTime().UnixNano(), st.Mode())
	}
	return fmt.Sprint(s.Dev, s.Ino, s.Size, s.Mode, s.Uid, s.Gid, s.Mtim, s.Ctim)
}

func (f file) find(ctx context.Context) (*found, func(), error) {
	b, err := f.blobs(ctx)
	if err != nil {
		return nil, nil, err
	}
	img, err := inLayout(b, f.tag)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return img, func() { _ = b.Close() }, nil
}

// blobs opens the layout. An archive that is compressed as a whole is decompressed first,
// because its index may be at its end.
func (f file) blobs(ctx context.Context) (_ blobs, err error) {
	if st, err := os.Stat(f.path); err == nil && st.IsDir() {
		root, err := os.OpenRoot(f.path)
		return folder{root}, err
	}
	raw, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	var head [4]byte
	_, _ = raw.ReadAt(head[:], 0) // a short file is not an archive
	if bytes.HasPrefix(head[:], []byte{0x1f, 0x8b}) || bytes.Equal(head[:], []byte{0x28, 0xb5, 0x2f, 0xfd}) || head[0] == 'B' || head[0] == 0xfd {
		if raw, err = f.plain(ctx, raw); err != nil {
			return nil, err
		}
	}
	a, err := openPacked(raw)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return a, nil
}

func (f file) plain(ctx context.Context, raw *os.File) (_ *os.File, err error) {
	defer raw.Close() //nolint:errcheck // read only
	r, err := decompress(raw)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // likewise
	out, err := os.CreateTemp(f.temp, buildingPrefix+"~archive-")
	if err != nil {
		return nil, err
	}
	ahead := readAhead(ctx, r)
	defer ahead.Close()                          //nolint:errcheck // likewise
	if err = os.Remove(out.Name()); err == nil { // only this process has it
		var n int64
		if n, err = io.Copy(out, io.LimitReader(ahead, maxBytes+1)); err == nil && n > maxBytes {
			err = fmt.Errorf("the archive is larger than %d GiB", maxBytes>>30)
		}
	}
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}
