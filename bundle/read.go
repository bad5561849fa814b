package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"tare/store"
)

// Bounds of manifest.json: bytes for 400,000 members, and commas, of which a
// member has three: a list of nothing becomes much larger in memory than it is.
const (
	maxManifest = 64 << 20
	maxCommas   = 2e6
)

// maxTrailer is how many zero bytes may follow the end of the archive: other
// programs pad to blocks of 10 KiB.
const maxTrailer = 1 << 20

// Unpack writes the members of a bundle below dir, which is there and empty. On
// an error some may be in dir, and nothing is anywhere else: the caller removes
// dir. Errors wrap ErrRefused where the bundle is at fault.
func Unpack(ctx context.Context, file, dir string, l Limits) (*Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	sink := rootSink{root: root, dir: dir}
	m, err := read(ctx, file, l, &sink)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, d := range []string{"series", "raw"} { // also where no trial has any
		if err := root.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := genuine(ctx, dir, m); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// Check reads a whole bundle and says what Unpack would; it leaves nothing.
func Check(ctx context.Context, file string, l Limits) (_ *Manifest, err error) {
	dir, err := os.MkdirTemp("", "tare-bundle-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	m, err := read(ctx, file, l, &rootSink{root: root, dir: dir, only: dbName})
	if err == nil {
		err = genuine(ctx, dir, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// genuine judges the database of an unpacked bundle.
func genuine(ctx context.Context, dir string, m *Manifest) (err error) {
	db, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrNewer) {
		return fmt.Errorf("%w: its %s: %w", ErrNewer, dbName, err) // no fault of the bundle
	}
	if err != nil {
		return refuse("its %s: %w", dbName, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Genuine(ctx); err != nil {
		return refuse("%w", err)
	}
	st, err := db.State(ctx)
	if err != nil {
		return refuse("its %s: %w", dbName, err)
	}
	if st.Trials != m.Trials {
		return refuse("its manifest says %d trials, and %s has %d", m.Trials, dbName, st.Trials)
	}
	return nil
}

// sink takes what an archive holds.
type sink interface {
	begin(m *Manifest) error
	take(x Member, r io.Reader) error // reads r to its end
}

// rootSink writes below a root: everything, or one member alone.
type rootSink struct {
	root *os.Root
	dir  string
	only string
}

func (s *rootSink) begin(m *Manifest) error {
	need := m.Bytes()
	if s.only != "" {
		need = 0
		for _, x := range m.Members {
			if x.Name == s.only {
				need = x.Size
			}
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return nil //nolint:nilerr // then a full disk is found when it is full
	}
	if room := st.Bavail * uint64(st.Bsize); need > 0 && uint64(need) > room { //nolint:gosec // sizes are not negative
		return fmt.Errorf("it unpacks to %s, and %s has room for %s; free some, or name another place with TMPDIR=",
			size(need), filepath.Dir(s.dir), size(int64(min(room, 1<<62))))
	}
	return nil
}

func (s *rootSink) take(x Member, r io.Reader) (err error) {
	if s.only != "" && x.Name != s.only {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	if d := path.Dir(x.Name); d != "." {
		if err := s.root.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	f, err := s.root.OpenFile(x.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// read opens a file and reads it as a bundle.
func read(ctx context.Context, file string, l Limits, s sink) (*Manifest, error) {
	f, err := os.Open(file) //nolint:gosec // the user named it
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, refuse("it is no plain file")
	}
	return decompress(&stoppable{ctx, f}, l.allowed(st.Size()), s)
}

// decompress reads a compressed archive that may become so many bytes.
func decompress(r io.Reader, allowed int64, s sink) (*Manifest, error) {
	dec, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(1<<40)) // of a stream the window is the memory, and bounded counts the rest
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return scan(&bounded{r: dec, left: allowed, allowed: allowed}, s)
}

// scan reads an archive: the manifest, then each member that is in it, once.
func scan(b *bounded, s sink) (*Manifest, error) {
	tr := tar.NewReader(b)
	m, err := readManifest(tr)
	if err != nil {
		return nil, err
	}
	members, err := m.check(b.allowed)
	if err != nil {
		return nil, err
	}
	if err := s.begin(m); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(members))
	for {
		h, err := next(tr)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		x, ok := members[h.Name]
		switch {
		case !ok:
			if err := checkName(h.Name); err != nil {
				return nil, err
			}
			return nil, refuse("%q is not in its manifest", h.Name)
		case seen[h.Name]:
			return nil, refuse("%q is in it twice", h.Name)
		case h.Size != x.Size:
			return nil, refuse("%q has %d bytes, and its manifest says %d", h.Name, h.Size, x.Size)
		}
		seen[h.Name] = true
		if err := takeMember(tr, x, s); err != nil {
			return nil, err
		}
	}
	for _, x := range m.Members {
		if !seen[x.Name] {
			return nil, refuse("%q is in its manifest, and is not there", x.Name)
		}
	}
	return m, trailer(b)
}

func takeMember(tr *tar.Reader, x Member, s sink) error {
	h := sha256.New()
	in := &remembering{r: tr}
	if err := s.take(x, io.TeeReader(in, h)); err != nil {
		if in.err != nil {
			return broken(in.err)
		}
		return fmt.Errorf("unpack %s: %w", x.Name, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != x.SHA256 {
		return refuse("the SHA-256 of %q is not the one in its manifest: it was damaged, or changed", x.Name)
	}
	return nil
}

// next is the next header, of a plain file.
func next(tr *tar.Reader) (*tar.Header, error) {
	h, err := tr.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, broken(err)
	}
	kinds := map[byte]string{tar.TypeLink: "a hard link", tar.TypeSymlink: "a symbolic link", tar.TypeChar: "a device", tar.TypeBlock: "a device",
		tar.TypeDir: "a directory", tar.TypeFifo: "a pipe", tar.TypeGNUSparse: "a sparse file"}
	if h.Typeflag != tar.TypeReg {
		kind, ok := kinds[h.Typeflag]
		if !ok {
			kind = fmt.Sprintf("of type %q", h.Typeflag)
		}
		return nil, refuse("%q is %s; a bundle has plain files alone", h.Name, kind)
	}
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return nil, refuse("%q is a sparse file; a bundle has plain files alone", h.Name)
		}
	}
	return h, nil
}

func readManifest(tr *tar.Reader) (*Manifest, error) {
	h, err := next(tr)
	if errors.Is(err, io.EOF) {
		return nil, refuse("it is empty")
	}
	if err != nil {
		return nil, err
	}
	if h.Name != manifestName {
		return nil, refuse("it does not begin with %s: it is no bundle of tare", manifestName)
	}
	if h.Size > maxManifest {
		return nil, refuse("its manifest has %d bytes, more than the %d that are read", h.Size, maxManifest)
	}
	text, err := io.ReadAll(tr)
	if err != nil {
		return nil, broken(err)
	}
	if bytes.Count(text, []byte(",")) > maxCommas {
		return nil, refuse("its manifest lists more than a bundle takes")
	}
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, refuse("its manifest cannot be read: %w", err)
	}
	return m, nil
}

// check judges a manifest and returns its members by name.
func (m *Manifest) check(allowed int64) (map[string]Member, error) {
	switch {
	case m.Format != format:
		return nil, refuse("its manifest says %q, not %q", m.Format, format)
	case m.Version > Version:
		return nil, fmt.Errorf("%w: it is in format %d, and this one reads up to %d: use the tare that made it (%.40q), or a later one", ErrNewer, m.Version, Version, m.Tare)
	case m.Version < 1:
		return nil, refuse("its manifest says format %d", m.Version)
	}
	if err := checkFolder(m.Folder); err != nil {
		return nil, err
	}
	members, fold := make(map[string]Member, len(m.Members)), make(map[string]string, len(m.Members))
	var total int64
	for _, x := range m.Members {
		if err := checkName(x.Name); err != nil {
			return nil, err
		}
		if other, ok := fold[folded(x.Name)]; ok {
			if other == x.Name {
				return nil, refuse("%q is in its manifest twice", x.Name)
			}
			return nil, refuse("%q and %q differ in case alone", other, x.Name)
		}
		fold[folded(x.Name)] = x.Name
		if x.Size < 0 || x.Size > allowed-total {
			return nil, tooLarge(allowed)
		}
		total += x.Size
		members[x.Name] = x
	}
	if _, ok := members[dbName]; !ok {
		return nil, refuse("it has no %s", dbName)
	}
	return members, nil
}

// trailer checks that nothing but padding follows the archive.
func trailer(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for n := 0; n <= maxTrailer; {
		k, err := r.Read(buf)
		for _, c := range buf[:k] {
			if c != 0 {
				return refuse("something follows the end of its archive")
			}
		}
		n += k
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
	}
	return refuse("more than %s of nothing follow the end of its archive", size(maxTrailer))
}

// broken is what an error of the decompressor or of the tar reader means.
func broken(err error) error {
	var path *os.PathError
	switch {
	case errors.Is(err, ErrRefused), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &path):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse("it ends in the middle: it was not copied whole")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return refuse("it needs more than %s of memory to decompress", size(maxWindow))
	}
	return refuse("it is damaged: %w", err)
}

func tooLarge(allowed int64) error {
	return refuse("it unpacks to more than %s, for its size or at all; if you know who made it, `tare bundle --unpack` takes --limit", size(allowed))
}

// size is a number of bytes for people.
func size(n int64) string {
	v, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + units[0]
}

// bounded ends a stream that is too long with an error.
type bounded struct {
	r             io.Reader
	left, allowed int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.r.Read(one[:]); n == 0 && err != nil {
			return 0, err
		}
		return 0, tooLarge(b.allowed)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// remembering keeps the error of a source, so that it is not taken for one of
// where the data goes.
type remembering struct {
	r   io.Reader
	err error
}

func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
