package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"tare/host/rootfs"
)

const (
	pullBytes  = 500 << 20 // of the image's files
	pullLayers = 4
	pullAgain  = 1 // second
)

// pull takes an image of 500 MB from a registry on this host, beside skopeo and an unpacker of its
// layout: umoci, or tar for each layer, which does less. The image is made of this host's own files.
func (b *bench) pull(ctx context.Context) (_ []row, err error) {
	dir := filepath.Join(b.work, "pull")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/bench/app:1"
	bytes, err := pushHostFiles(ctx, dir, ref)
	if err != nil {
		return nil, err
	}
	_, skopeo := rootfs.Lookup("skopeo")
	var pairs []pair
	var again []float64
	for i := range b.wants(minRounds) {
		var p pair
		at := filepath.Join(dir, strconv.Itoa(i))
		ours := func() (err error) {
			if _, p.ours, err = b.buildImage(ctx, ref, filepath.Join(at, "tare")); err != nil {
				return err
			}
			_, cached, err := b.buildImage(ctx, ref, filepath.Join(at, "tare"))
			again = append(again, cached)
			return err
		}
		theirs := func() (err error) {
			if skopeo {
				p.peer, err = skopeoUnpack(ctx, ref, filepath.Join(at, "skopeo"))
			}
			return err
		}
		sides := []func() error{ours, theirs}
		if i%2 == 1 {
			sides = []func() error{theirs, ours}
		}
		for _, side := range sides {
			_ = exec.CommandContext(ctx, "sync").Run() // what one side has left to write is not the other's
			if err := side(); err != nil {
				return nil, err
			}
		}
		if err := os.RemoveAll(at); err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	cold := row{Figure: "an image from a registry on this host, not seen before", Unit: "s"}
	if skopeo {
		cold = cold.beside("ratio", "skopeo and "+unpacker(), pairs).atMost(1)
	} else {
		ours, _ := sides(pairs)
		cold.Tare, cold.Rounds = median(ours), len(ours)
	}
	cold.Note = fmt.Sprintf("%d MiB in %d layers, of this host's /usr; tare also compares digests and waits for the disk", bytes>>20, pullLayers)
	return []row{cold, row{Figure: "the same image again", Unit: "s", Tare: median(again), Rounds: len(again)}.below(pullAgain)}, nil
}

func unpacker() string {
	if _, ok := rootfs.Lookup("umoci"); ok {
		return "umoci"
	}
	return "tar"
}

// skopeoUnpack copies an image into a layout and unpacks it.
func skopeoUnpack(ctx context.Context, ref, dir string) (seconds float64, err error) {
	at, tree := filepath.Join(dir, "layout"), filepath.Join(dir, "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := quiet(ctx, "skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", "docker://"+ref, "oci:"+at+":1"); err != nil {
		return 0, err
	}
	if unpacker() == "umoci" {
		err = quiet(ctx, "umoci", "raw", "unpack", "--image", at+":1", tree)
		return time.Since(begun).Seconds(), err
	}
	p, err := layout.FromPath(at)
	if err != nil {
		return 0, err
	}
	index, err := p.ImageIndex()
	if err != nil {
		return 0, err
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		return 0, fmt.Errorf("skopeo copied %d images: %w", len(m.Manifests), err)
	}
	text, err := os.ReadFile(filepath.Join(at, "blobs", "sha256", m.Manifests[0].Digest.Hex)) //nolint:gosec // the layout just made
	if err != nil {
		return 0, err
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return 0, err
	}
	for _, l := range manifest.Layers {
		if err := quiet(ctx, "tar", "-xzpf", filepath.Join(at, "blobs", "sha256", l.Digest.Hex), "-C", tree); err != nil {
			return 0, err
		}
	}
	return time.Since(begun).Seconds(), nil
}

func quiet(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:gosec // the bench's own words
		return fmt.Errorf("%s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// pushHostFiles makes an image of the first files of /usr, and pushes it.
func pushHostFiles(ctx context.Context, dir, to string) (bytes int64, err error) {
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Config: v1.Config{Cmd: []string{"/usr/bin/true"}}})
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	var lists [pullLayers]strings.Builder // names of files, for tar
	walked := filepath.WalkDir("/usr", func(p string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		info, err := d.Info()
		if err != nil || info.Size() > pullBytes/pullLayers {
			return err
		}
		n := bytes * pullLayers / pullBytes
		if n >= pullLayers {
			return fs.SkipAll
		}
		if info.Mode().IsRegular() {
			bytes += info.Size()
		}
		lists[n].WriteString(strings.TrimPrefix(p, "/") + "\n")
		return nil
	})
	if walked != nil {
		return 0, walked
	}
	for i := range lists {
		list, packed := filepath.Join(dir, "list"), filepath.Join(dir, "layer-"+strconv.Itoa(i))
		if err := os.WriteFile(list, []byte(lists[i].String()), 0o600); err != nil {
			return 0, err
		}
		if err := quiet(ctx, "tar", "-C", "/", "-cf", packed, "--no-recursion", "--verbatim-files-from", "-T", list); err != nil {
			return 0, err
		}
		l, err := tarball.LayerFromFile(packed)
		if err != nil {
			return 0, err
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			return 0, err
		}
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		return 0, err
	}
	return bytes, remote.Write(ref, img, remote.WithContext(ctx))
}
