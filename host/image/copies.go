package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// MostCopies is the most copies of an image. With them, the index stays far below the 4 MiB that registries accept.
const MostCopies = 1000

// annotationCopy marks an image in an index as a copy, and names the platform that the copy is for. The index lists a copy with the
// platform unknown/unknown, so a client that pulls the index never gets it.
const annotationCopy = "tare.image.copy"

// unlike is the platform of copies in an index.
func unlike() *v1.Platform { return &v1.Platform{OS: "unknown", Architecture: "unknown"} }

// salted is a layer with the same files as another layer, but with unique digests. It has a few bytes before the archive: a global
// header with a random comment, which no program extracts (pax(1)). The comment is compressed by itself, because gzip members
// can be concatenated (RFC 1952, 2.2). So the archive is not compressed again.
type salted struct {
	of             v1.Layer
	before         []byte // compressed
	digest, diffID v1.Hash
	size           int64
}

// Digest implements partial.CompressedLayer, as the other methods do.
func (s *salted) Digest() (v1.Hash, error) { return s.digest, nil }

// DiffID is the digest of the uncompressed archive.
func (s *salted) DiffID() (v1.Hash, error) { return s.diffID, nil }

// Size is the size of the compressed archive, in bytes.
func (s *salted) Size() (int64, error) { return s.size, nil }

// MediaType says how the layer is compressed.
func (s *salted) MediaType() (types.MediaType, error) { return s.of.MediaType() }

// Compressed opens the archive.
func (s *salted) Compressed() (io.ReadCloser, error) {
	rest, err := s.of.Compressed()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(s.before), rest), rest}, nil
}

// salt makes n layers with the files of l. It reads l only twice, whatever n is.
func salt(l v1.Layer, n int) ([]v1.Layer, error) {
	size, err := l.Size()
	if err != nil {
		return nil, err
	}
	out, made := make([]v1.Layer, n), make([]*salted, n)
	digests, diffs := make([]hash.Hash, n), make([]hash.Hash, n)
	for i := range made {
		var packed bytes.Buffer
		plain, err := comment(rand.Text())
		if err != nil {
			return nil, err
		}
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(plain); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		made[i] = &salted{of: l, before: packed.Bytes(), size: size + int64(packed.Len())}
		digests[i], diffs[i] = sha256.New(), sha256.New()
		_, _ = digests[i].Write(packed.Bytes()) // a hash never fails
		_, _ = diffs[i].Write(plain)
	}
	if err := digest(l.Compressed, digests); err != nil {
		return nil, err
	}
	if err := digest(l.Uncompressed, diffs); err != nil {
		return nil, err
	}
	for i, s := range made {
		s.digest, s.diffID = asHash(digests[i]), asHash(diffs[i])
		if out[i], err = partial.CompressedToLayer(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// comment returns the beginning of an archive: a global header with a comment.
func comment(text string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "tare " + text}}); err != nil {
		return nil, err
	}
	err := w.Flush() // without an end marker, because the archive follows
	return b.Bytes(), err
}

// digest writes a layer to all hashes.
func digest(open func() (io.ReadCloser, error), into []hash.Hash) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	all := make([]io.Writer, len(into))
	for i := range into {
		all[i] = into[i]
	}
	_, err = io.Copy(io.MultiWriter(all...), r)
	return err
}

// copied adds the copies of a platform's image to an index.
func copied(all v1.ImageIndex, copies []v1.Image, of v1.Platform) v1.ImageIndex {
	for _, img := range copies {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: unlike(), Annotations: map[string]string{annotationCopy: of.String()},
		}})
	}
	return all
}

// copies returns the references of an index's copies for Linux on a processor.
func copies(index *remote.Descriptor, in name.Repository, arch string) (out []string, err error) {
	all, err := index.ImageIndex()
	if err != nil {
		return nil, err
	}
	m, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	of := v1.Platform{OS: "linux", Architecture: arch}
	for i := range m.Manifests {
		if d := &m.Manifests[i]; len(out) < MostCopies && d.Annotations[annotationCopy] == of.String() {
			out = append(out, in.Digest(d.Digest.String()).String())
		}
	}
	return out, nil
}
