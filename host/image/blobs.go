package image

import (
	"archive/tar"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
)

// blobs are the files of an image layout, in a folder or an archive.
type blobs interface {
	open(name string) (io.ReadCloser, error)
	io.Closer
}

// folder is a layout on the disk. Its links lead nowhere else.
type folder struct{ *os.Root }

func (f folder) open(name string) (io.ReadCloser, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file", name), err, file.Close())
	}
	return file, nil
}

// packed is a layout in an uncompressed archive. The file is left open while it is in use.
type packed struct {
	file  *os.File
	at    map[string]*io.SectionReader
	links map[string]string // of docker save, before version 25: the same layer twice
}

const maxArchived = 10_000 // of an archive of an image, with a few for each layer

func openPacked(file *os.File) (*packed, error) {
	a := &packed{file: file, at: map[string]*io.SectionReader{}, links: map[string]string{}}
	t := tar.NewReader(file)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is not an archive of an image: %w", err)
		}
		if len(a.at)+len(a.links) > maxArchived {
			return nil, fmt.Errorf("it has more than %d files; it is not an archive of an image, but maybe one of a root file system: unpack it and give the folder", maxArchived)
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := file.Seek(0, io.SeekCurrent) // package tar reads no further than it must
			if err != nil {
				return nil, err
			}
			a.at[name] = io.NewSectionReader(file, at, h.Size)
		case tar.TypeSymlink:
			a.links[name] = path.Join(path.Dir(name), h.Linkname) //nolint:gosec // a key of a map
		}
	}
}

func (a *packed) open(name string) (io.ReadCloser, error) {
	r, ok := a.at[cmp.Or(a.links[name], name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(r, 0, r.Size())), nil
}

func (a *packed) Close() error { return a.file.Close() }

// document reads a JSON file of a layout.
func document(b blobs, name string) ([]byte, error) {
	r, err := b.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("%s is longer than %d MiB", name, maxText>>20)
	}
	return text, err
}

func blobPath(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// checked reads a document whose digest is known.
func checked(b blobs, h v1.Hash) ([]byte, error) {
	text, err := document(b, blobPath(h))
	if err != nil {
		return nil, err
	}
	if got, _, err := v1.SHA256(strings.NewReader(string(text))); err != nil || got != h {
		return nil, fmt.Errorf("%s has the digest %s; get the image again", blobPath(h), got)
	}
	return text, nil
}

// inLayout finds an image in a layout or an archive: that of the name, or the only one.
func inLayout(b blobs, tag string) (*found, error) {
	index, err := document(b, "index.json")
	if errors.Is(err, fs.ErrNotExist) {
		return saved(b, tag)
	}
	if err != nil {
		return nil, err
	}
	for range 4 { // an index may list others
		d, err := choose(index, tag)
		if err != nil {
			return nil, err
		}
		text, err := checked(b, d.Digest)
		if err != nil {
			return nil, err
		}
		if d.MediaType.IsIndex() {
			index, tag = text, ""
			continue
		}
		m, err := v1.ParseManifest(strings.NewReader(string(text)))
		if err != nil {
			return nil, fmt.Errorf("its manifest %s: %w", d.Digest, err)
		}
		f := &found{manifest: d.Digest.String()}
		if f.config, err = checked(b, m.Config.Digest); err != nil {
			return nil, err
		}
		for _, l := range m.Layers {
			f.layers = append(f.layers, func() (io.ReadCloser, error) { return b.open(blobPath(l.Digest)) })
		}
		return f, nil
	}
	return nil, errLoop
}

// saved finds an image in an archive of `docker save` without an index.
func saved(b blobs, tag string) (*found, error) {
	text, err := document(b, "manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it has neither an index.json nor a manifest.json; give an OCI image layout, an archive of `docker save` or `podman save`, or the folder of a root file system")
	}
	if err != nil {
		return nil, err
	}
	var images tarball.Manifest
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, fmt.Errorf("its manifest.json: %w", err)
	}
	var names []string
	images = slices.DeleteFunc(images, func(d tarball.Descriptor) bool {
		names = append(names, d.RepoTags...)
		return tag != "" && !slices.ContainsFunc(d.RepoTags, func(t string) bool { return called(t, tag) })
	})
	if len(images) != 1 {
		return nil, severalImages(len(images), tag, names)
	}
	f := &found{}
	if f.config, err = document(b, path.Clean(images[0].Config)); err != nil {
		return nil, err
	}
	for _, l := range images[0].Layers {
		f.layers = append(f.layers, func() (io.ReadCloser, error) { return b.open(path.Clean(l)) })
	}
	return f, nil
}

// called reports whether an image's whole name is what a user calls it: all of it or its tag.
func called(whole, tag string) bool { return whole == tag || strings.HasSuffix(whole, ":"+tag) }

func severalImages(n int, tag string, names []string) error {
	switch {
	case n == 0 && tag != "":
		return fmt.Errorf("it has no image %s; it has %s", tag, strings.Join(names, ", "))
	case n == 0:
		return errors.New("it has no image")
	}
	return fmt.Errorf("it has %d images; write one of them after a colon: %s", n, strings.Join(names, ", "))
}

// choose picks the image of an index: the one that tag names, for this host's processor.
func choose(index []byte, tag string) (v1.Descriptor, error) {
	m, err := v1.ParseIndexManifest(strings.NewReader(string(index)))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("its index: %w", err)
	}
	var names, others []string
	fit := slices.DeleteFunc(m.Manifests, func(d v1.Descriptor) bool {
		if !d.MediaType.IsImage() && !d.MediaType.IsIndex() || d.Platform != nil && d.Platform.OS == "unknown" {
			return true // a signature, an attestation
		}
		ref, whole := d.Annotations[annotationRef], d.Annotations[annotationContainerd]
		if ref != "" {
			names = append(names, ref)
		}
		if tag != "" && !called(ref, tag) && !called(whole, tag) && d.Digest.String() != tag {
			return true
		}
		if p := d.Platform; p != nil && fits(p.Architecture, p.OS) != nil {
			others = append(others, p.OS+"/"+p.Architecture)
			return true
		}
		return false
	})
	switch {
	case len(fit) == 0 && len(others) > 0:
		slices.Sort(others)
		return v1.Descriptor{}, fmt.Errorf("it is for %s: %w", strings.Join(slices.Compact(others), ", "), errPlatform)
	case len(fit) > 1 && fit[0].Platform != nil && fit[0].Annotations[annotationRef] == fit[1].Annotations[annotationRef]:
		return fit[0], nil // variants of one processor, the first of which is the most usual
	case len(fit) != 1:
		return v1.Descriptor{}, severalImages(len(fit), tag, names)
	}
	return fit[0], nil
}
