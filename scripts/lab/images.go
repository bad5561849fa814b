package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Images of the lab, which nodes have without a registry.
const (
	pauseImage = "localhost/lab/pause:1"
	probeImage = "localhost/lab/probe:1"
)

// makeImages builds the probe and writes both images as one tar file, next to the programs.
func (l *lab) makeImages(ctx context.Context) (string, error) {
	file := l.program("images.tar")
	tmp, err := os.MkdirTemp(l.cache, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	probe := filepath.Join(tmp, "probe")
	if _, err := goTool(ctx, ".", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", probe, "./scripts/lab/probe"); err != nil {
		return "", err
	}
	all := map[name.Tag]v1.Image{}
	for ref, command := range map[string][]string{pauseImage: {"/probe", "pause"}, probeImage: {"/probe", "serve"}} {
		tag, err := name.NewTag(ref)
		if err != nil {
			return "", err
		}
		if all[tag], err = image(probe, command); err != nil {
			return "", err
		}
	}
	return file, tarball.MultiWriteToFile(file, all)
}

// image is an image of one program, /probe, and an empty /tmp.
func image(program string, command []string) (v1.Image, error) {
	content, err := os.ReadFile(program) //nolint:gosec // just built
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, h := range []tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "probe", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))},
	} {
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Size > 0 {
			if _, err := w.Write(content); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux",
		Config: v1.Config{Entrypoint: command, Env: []string{"PATH=/"}},
	})
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, l)
}

// pushProbe sends the probe to the lab's registry under a tag, with a layer that no node has, and returns the reference.
func (l *lab) pushProbe(ctx context.Context, tag string) (string, error) {
	ref := l.registryName() + "/lab/probe:" + tag
	to, err := name.NewTag(ref)
	if err != nil {
		return "", err
	}
	probe, err := name.NewTag(probeImage)
	if err != nil {
		return "", err
	}
	img, err := tarball.ImageFromPath(l.program("images.tar"), &probe)
	if err != nil {
		return "", err
	}
	fresh, err := random.Layer(1<<10, types.DockerLayer)
	if err != nil {
		return "", err
	}
	if img, err = mutate.AppendLayers(img, fresh); err != nil {
		return "", err
	}
	return ref, remote.Write(to, img, remote.WithContext(ctx))
}

// load imports images into both nodes.
func (l *lab) load(ctx context.Context, files []string) error {
	if len(files) == 0 {
		return errUsage
	}
	if err := l.mustRun(); err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // the user named it
		if err != nil {
			return err
		}
		for _, n := range nodes() {
			if err := l.importImages(ctx, n, content); err != nil {
				return err
			}
		}
		l.done("%s is in both nodes", file)
	}
	return nil
}

// importImages gives a node the images of a tar file. ctr runs among the node's mounts, where
// containerd's socket is.
func (l *lab) importImages(ctx context.Context, n node, content []byte) error {
	inside, err := l.insideNode(n)
	if err != nil {
		return err
	}
	if err := l.inside(ctx, inside, content, l.ctr(), "-a", criSock, "-n", "k8s.io", "images", "import", "--local", "-"); err != nil {
		return fmt.Errorf("cannot import images into %s: %w", n.name, err)
	}
	return nil
}

// ctr is the path of ctr as a node sees it.
func (l *lab) ctr() string { return filepath.Join(nodeBin, "ctr") }

// insideNode is an entry to the namespaces of a node's containerd.
func (l *lab) insideNode(n node) (entry, error) {
	all, err := l.recorded()
	if err != nil {
		return entry{}, err
	}
	for _, r := range all {
		if r.Name == n.name+"-containerd" && r.alive() {
			return entry{Net: namespace(n.name), Like: r.PID, Env: l.environ()}, nil
		}
	}
	return entry{}, errors.New(n.name + " has no containerd; run down, then up")
}
