// Package app builds container images of a small application and rolls them out, as a build pipeline does. Each build packs and compresses
// the files of the application again.
//
// The data path: 1. New writes the application's files once; 2. Build reads them, and makes an image whose layers no other
// image has; 3. Unpack writes the files of a pulled image into a folder; 4. Start runs its program until it says that it runs.
//
// Reference: the OCI image specification, https://github.com/opencontainers/image-spec/blob/main/layer.md.
package app

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tare/internal/tinyelf"
	"tare/workload/child"
)

// Program is the path of the application's program in its images. It prints a line and waits for a signal.
const Program = "/tare-app"

const (
	// each is the size of a file, in bytes. The last file of a layer may be smaller.
	each = 64 << 10
	// letters are the bytes of the files. A compression can halve them.
	letters = "0123456789abcdef"
	// stamp is the file of each layer with the number of the build.
	stamp = "stamp"
)

// Source is the application's files.
type Source struct {
	dir    string
	layers int
}

// New writes the files of an application into a new folder: so many layers, each of a size in bytes. The content is the same in every process.
func New(dir string, layers int, size int64) (*Source, error) {
	s := &Source{dir: dir, layers: layers}
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a load, no secret
	for l := range layers {
		folder := s.folder(l)
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return nil, fmt.Errorf("cannot make the application's files: %w", err)
		}
		for i := 0; size > int64(i)*each; i++ {
			b := make([]byte, min(each, size-int64(i)*each))
			for j := range b {
				b[j] = letters[r.IntN(len(letters))]
			}
			if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), b, 0o600); err != nil {
				return nil, fmt.Errorf("cannot make the application's files: %w", err)
			}
		}
	}
	return s, nil
}

func (s *Source) folder(layer int) string { return filepath.Join(s.dir, strconv.Itoa(layer)) }

// Build makes the image of a number: it reads the files, packs and compresses them, and computes the digests. No two numbers have a
// layer in common.
func (s *Source) Build(number uint64) (v1.Image, error) {
	program, err := tinyelf.Pause()
	if err != nil {
		return nil, err
	}
	var layers []v1.Layer
	for l := range s.layers {
		packed, err := s.pack(l, number, program)
		if err != nil {
			return nil, fmt.Errorf("cannot build image %d: %w", number, err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil },
			tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("cannot build image %d: %w", number, err)
		}
		layers = append(layers, layer)
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layers...)
	if err != nil {
		return nil, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Config.Entrypoint = "linux", runtime.GOARCH, []string{Program}
	if img, err = mutate.ConfigFile(img, c); err != nil {
		return nil, err
	}
	_, err = img.Digest() // or the push would compute it
	return img, err
}

// pack makes the archive of a layer. The first one has the program too.
func (s *Source) pack(layer int, number uint64, program []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, mode int64, content []byte) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	top := "app/" + strconv.Itoa(layer)
	err := add(path.Join(top, stamp), 0o644, []byte(strconv.FormatUint(number, 10)))
	if layer == 0 && err == nil {
		err = add(Program[1:], 0o755, program)
	}
	files, e := os.ReadDir(s.folder(layer))
	if err = errors.Join(err, e); err != nil {
		return nil, err
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(s.folder(layer), f.Name()))
		if err == nil {
			err = add(path.Join(top, f.Name()), 0o644, b)
		}
		if err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// Unpack writes the files of an image into a new folder. It compares every layer with its digest, and the stamps with the number.
func Unpack(img v1.Image, dir string, number uint64) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // so that no name leads out of it
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written to it
	for i, layer := range layers {
		if err := unpackLayer(root, layer); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		got, err := root.ReadFile(path.Join("app", strconv.Itoa(i), stamp))
		if err != nil {
			return err
		}
		if want := strconv.FormatUint(number, 10); string(got) != want {
			return fmt.Errorf("layer %d is of build %.20q, want %s", i, got, want)
		}
	}
	return nil
}

func unpackLayer(root *os.Root, layer v1.Layer) error {
	r, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it was read
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = member(root, h, t)
		}
		if err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, r) // the digest is compared at the end
	return err
}

func member(root *os.Root, h *tar.Header, r io.Reader) error {
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%.100q is not a file", h.Name)
	}
	if err := root.MkdirAll(path.Dir(h.Name), 0o750); err != nil {
		return err
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode).Perm()) //nolint:gosec // only its permissions are used
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// Start runs the program of an unpacked image, and returns once it says that it runs. stop ends the program.
func Start(ctx context.Context, dir string) (stop func(), err error) {
	running, end := context.WithCancel(ctx)
	cmd := child.Command(running, filepath.Join(dir, Program))
	said := &first{came: make(chan struct{})}
	cmd.Stdout = said
	ended := make(chan error, 1)
	go func() { ended <- child.Run(cmd, nil) }()
	select {
	case <-said.came:
		return func() {
			end()
			<-ended //nolint:errcheck // by the signal
		}, nil
	case err := <-ended:
		end()
		return nil, fmt.Errorf("the program of the image ended before it said that it runs: %w", err)
	}
}

// first tells when the first byte is written.
type first struct {
	once sync.Once
	came chan struct{}
}

func (f *first) Write(b []byte) (int, error) {
	f.once.Do(func() { close(f.came) })
	return len(b), nil
}
