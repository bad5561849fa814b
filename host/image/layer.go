package image

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tare/internal/files"
	"tare/volume"
)

// dressed are the names that Dress puts into a tree, which are not part of it.
func dressed() []string {
	return []string{"tare", "tare-hello", "tare-pause", strings.TrimPrefix(volume.Root, "/")}
}

// layer is a whole tree as one compressed archive in a file.
type layer struct {
	path           string
	digest, diffID v1.Hash
	size           int64
}

// Digest is the digest of the compressed archive. It implements v1.Layer, as the other
// methods do.
func (l *layer) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID is the digest of the uncompressed archive.
func (l *layer) DiffID() (v1.Hash, error) { return l.diffID, nil }

// Compressed opens the archive.
func (l *layer) Compressed() (io.ReadCloser, error) { return os.Open(l.path) }

// Size is the size of the compressed archive, in bytes.
func (l *layer) Size() (int64, error) { return l.size, nil }

// MediaType says that the layer is a compressed archive.
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }

// makeLayer writes the tree, except the names in without, as an archive to the file and returns it
// as a layer. Names are sorted, so the same tree gives the same bytes. In a tree from a recipe, the owner is root and the
// time is sealTime. With own, the tree keeps its owners and times, because the user's program may depend on them.
// It uses gzip because every registry and runtime reads it.
func makeLayer(ctx context.Context, tree, file string, without []string, own bool) (_ v1.Layer, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // our own cache
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed, plain := sha256.New(), sha256.New()
	z, err := gzip.NewWriterLevel(io.MultiWriter(f, packed), gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(io.MultiWriter(z, plain))
	if err := writeTree(ctx, tree, without, func(p, rel string, d fs.DirEntry) error { return writeEntry(t, p, rel, d, own) }); err != nil {
		return nil, err
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return partial.CompressedToLayer(&layer{path: file, digest: asHash(packed), diffID: asHash(plain), size: st.Size()})
}

func asHash(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

// writeTree calls write for every entry in order, except the root and the names in without.
func writeTree(ctx context.Context, tree string, without []string, write func(p, rel string, d fs.DirEntry) error) error {
	return filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, p)
		if err != nil || rel == "." || slices.Contains(without, rel) {
			return err
		}
		return write(p, rel, d)
	})
}

func writeEntry(t *tar.Writer, p, rel string, d fs.DirEntry, own bool) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: rel, Mode: int64(info.Mode().Perm()), ModTime: time.Unix(sealTime, 0), Format: tar.FormatPAX}
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	if st, is := info.Sys().(*syscall.Stat_t); is && own {
		h.Uid, h.Gid, h.ModTime = int(st.Uid), int(st.Gid), info.ModTime()
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, rel+"/"
		return t.WriteHeader(h)
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(p); err != nil {
			return err
		}
		return t.WriteHeader(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	return files.Read(t, p)
}
