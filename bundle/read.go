package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tare/param"
	"tare/store"
)

// maxTrailer is how many zero bytes may follow the archive: other programs pad to blocks of
// 10 KiB.
const maxTrailer = 1 << 20

// Unpack writes the members of a bundle below dir, which must be an empty folder. It writes
// nowhere else. After an error dir may have some members; the caller removes dir. Errors wrap
// ErrRefused if the bundle is at fault.
func Unpack(ctx context.Context, file, dir string, l Limits) (*Manifest, error) {
	return unpack(ctx, file, dir, l, "")
}

// Check reads a whole bundle and returns the same as Unpack. It leaves no files.
func Check(ctx context.Context, file string, l Limits) (_ *Manifest, err error) {
	dir, err := os.MkdirTemp("", "tare-bundle-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return unpack(ctx, file, dir, l, dbName)
}

// unpack writes the members, or only one of them, and checks the database.
func unpack(ctx context.Context, file, dir string, l Limits, only string) (*Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	m, err := read(ctx, file, l, &rootSink{root: root, dir: dir, only: only})
	for _, d := range []string{"series", "raw"} { // also if no trial has such files
		if err == nil {
			err = root.MkdirAll(d, 0o700)
		}
	}
	if err == nil {
		err = genuine(ctx, dir, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// genuine checks the database of an unpacked bundle.
func genuine(ctx context.Context, dir string, m *Manifest) (err error) {
	db, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrNewer) {
		return fmt.Errorf("%w: its %s: %w", ErrNewer, dbName, err) // the bundle may be valid
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
		return nil, refuse("it is not a regular file")
	}
	return decompress(&stoppable{ctx, f}, l.allowed(st.Size()), s)
}

// decompress reads a compressed archive of at most allowed bytes, decompressed.
func decompress(r io.Reader, allowed int64, s sink) (*Manifest, error) {
	dec, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(1<<40)) // for a stream the window bounds the memory, and bounded counts the bytes
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
			return nil, refuse("%.300q is not in its manifest", h.Name)
		case seen[h.Name]:
			return nil, refuse("%.300q is in it twice", h.Name)
		case h.Size != x.Size:
			return nil, refuse("%.300q has %d bytes, but its manifest says %d", h.Name, h.Size, x.Size)
		}
		seen[h.Name] = true
		if err := takeMember(tr, x, s); err != nil {
			return nil, err
		}
	}
	for _, x := range m.Members {
		if !seen[x.Name] {
			return nil, refuse("%.300q is in its manifest, but not in the bundle", x.Name)
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
		return refuse("the SHA-256 of %.300q is not the one in its manifest: it was damaged, or changed", x.Name)
	}
	return nil
}

// next returns the next header. It must be that of a regular file.
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
			kind = fmt.Sprintf("of type %.300q", h.Typeflag)
		}
		return nil, refuse("%.300q is %s; a bundle may contain only regular files", h.Name, kind)
	}
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return nil, refuse("%.300q is a sparse file; a bundle may contain only regular files", h.Name)
		}
	}
	return h, nil
}

// trailer checks that nothing but padding follows the archive.
func trailer(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for n := 0; n <= maxTrailer; {
		k, err := r.Read(buf)
		for _, c := range buf[:k] {
			if c != 0 {
				return refuse("data follows the end of its archive")
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
	return refuse("more than %s of zero bytes follow the end of its archive", param.AboutSize(maxTrailer))
}
