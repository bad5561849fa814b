package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tare/host/image"
	"tare/run"
)

// openImages builds the images that the study's workloads run from and puts this
// program into them. One that cannot be had is no error: the cells that need it
// are skipped with the reason.
func (h *harness) openImages(ctx context.Context, a *app) error {
	names, err := h.engine.NeedsImages()
	if err != nil || len(names) == 0 {
		return err
	}
	b, err := a.builder(imageFlags{})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find tare's own binary: %w", err)
	}
	h.engine.Images = map[string]run.Image{}
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, release, err := b.Use(ctx, n)
		if err != nil {
			if inner := errors.Unwrap(err); inner != nil {
				err = inner // the engine says which image
			}
			h.engine.Images[n] = run.Image{Missing: err.Error()}
			continue
		}
		h.closes = append(h.closes, func() error { release(); return nil }) // when the study ends
		if err := image.Dress(t.Path, self); err != nil {
			return fmt.Errorf("image %s: %w", n, err)
		}
		h.engine.Images[n] = run.Image{Root: t.Path, Digest: t.Digest}
	}
	return nil
}

// imagesAsPlanned says which images this host could not build, without building
// any.
func (a *app) imagesAsPlanned(e *run.Engine) error {
	names, err := e.NeedsImages()
	if err != nil || len(names) == 0 {
		return err
	}
	b, err := a.builder(imageFlags{})
	if err != nil {
		return err
	}
	e.Images = map[string]run.Image{}
	for _, n := range names {
		img := run.Image{}
		t, built, err := b.Find(n)
		switch {
		case err != nil:
			img.Missing = err.Error()
		case built:
			img.Root, img.Digest = t.Path, t.Digest
		}
		e.Images[n] = img
	}
	return nil
}

// examineImages adds a finding for each image: whether it is built, or why this
// host cannot build it.
func (a *app) examineImages(add func(area, name, detail string, err error)) error {
	b, err := a.builder(imageFlags{})
	if err != nil {
		return err
	}
	lines, err := listImages(b)
	if err != nil {
		return err
	}
	for _, l := range lines {
		detail := l.About + "; not built yet"
		if l.Built {
			detail = l.About + "; built"
		}
		var problem error
		if l.Problem != "" {
			problem = errors.New(l.Problem)
		}
		add("image", l.Name, detail, problem)
	}
	return nil
}
