package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tare/host/image"
	"tare/internal/files"
)

// hostImages is the cache of `tare image` for root.
const hostImages = "/var/cache/tare/images"

// Targets of building images, in seconds. TensorFlow has none: its wheel alone
// has 1.2 GB.
const (
	imageBuildTarget   = 60
	imageRebuildTarget = 1
)

// image builds every image from a warm package cache into an empty cache of
// trees, and then once more, when nothing has changed.
func (b *bench) image(ctx context.Context) (_ []row, err error) {
	names, err := (&image.Builder{Cache: hostImages}).Names()
	if err != nil {
		return nil, err
	}
	cache := filepath.Join(b.work, "images")
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	var rows []row
	for _, name := range names {
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		got, err := b.oneImage(ctx, name, cache)
		if err != nil {
			got = []row{{Figure: "building the image " + name, Note: "not measured: " + err.Error()}}
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

func (b *bench) oneImage(ctx context.Context, name, cache string) ([]row, error) {
	// What fetches its packages, if that was not done before.
	if _, _, err := b.buildImage(ctx, name, hostImages); err != nil {
		return nil, err
	}
	for _, kept := range []string{"apt/debs", "wheels"} {
		if err := linkAll(filepath.Join(hostImages, kept), filepath.Join(cache, kept)); err != nil {
			return nil, err
		}
	}
	tree, first, err := b.buildImage(ctx, name, cache)
	if err != nil {
		return nil, err
	}
	_, again, err := b.buildImage(ctx, name, cache)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Join(cache, "trees", tree.Digest)); err != nil {
		return nil, err
	}
	build := row{Figure: "building the image " + name, Unit: "s", Tare: first, Rounds: 1, Note: fmt.Sprintf("%d MiB, %d packages, %d wheels", tree.Bytes>>20, len(tree.Packages), len(tree.Wheels))}
	if len(tree.Wheels) == 0 {
		build = build.below(imageBuildTarget)
	}
	return []row{build, row{Figure: "the image " + name + " again, unchanged", Unit: "s", Tare: again, Rounds: 1}.below(imageRebuildTarget)}, nil
}

func (b *bench) buildImage(ctx context.Context, name, cache string) (image.Tree, float64, error) {
	begun := time.Now()
	out, err := b.printed(ctx, "image", "build", name, "--cache", cache, "--json")
	took := time.Since(begun).Seconds()
	if err != nil {
		return image.Tree{}, 0, err
	}
	var trees []image.Tree
	if err := json.Unmarshal(out, &trees); err != nil || len(trees) != 1 {
		return image.Tree{}, 0, fmt.Errorf("tare image build printed %d images: %w", len(trees), err)
	}
	return trees[0], took, nil
}

// linkAll makes the files below from also be below to, those that are not yet.
func linkAll(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == from {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if d.IsDir() {
			if d.Name() == "partial" {
				return fs.SkipDir
			}
			return os.MkdirAll(at, 0o755) //nolint:gosec // apt fetches as another user
		}
		err = os.Link(p, at) //nolint:gosec // root's own cache
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err != nil { // another file system
			return files.Copy(at, p, 0o644)
		}
		return nil
	})
}
