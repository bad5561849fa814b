package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations of an exported image's manifest, beside those of the OCI's image
// specification (annotations.md).
const (
	AnnotationDigest   = "tare.image.digest"   // of the tree
	AnnotationPackages = "tare.image.packages" // NAME=VERSION, separated by blanks
	AnnotationWheels   = "tare.image.wheels"   // NAME==VERSION sha256:HASH, separated by commas
)

const (
	annotationRef        = "org.opencontainers.image.ref.name"
	annotationContainerd = "io.containerd.image.name" // the name that `ctr images import` gives it
)

// Program is the name of the image that is tare itself: a tree of package rootfs.
const Program = "tare"

// withOCI makes an OCI image of the tree and calls use with it. The image has one layer, in
// a temporary file.
func (b *Builder) withOCI(ctx context.Context, t Tree, use func(v1.Image) error) error {
	if t.Name == Program { // it is in another cache, and nothing in it was put in by Dress
		if err := os.MkdirAll(b.Cache, 0o700); err != nil {
			return err
		}
		return b.packed(ctx, t, nil, use)
	}
	release, err := b.Hold(t)
	if err != nil {
		return err
	}
	defer release()
	return b.packed(ctx, t, dressed(), use)
}

// packed is withOCI for a tree that nobody can remove meanwhile.
func (b *Builder) packed(ctx context.Context, t Tree, without []string, use func(v1.Image) error) error {
	file, err := os.CreateTemp(b.Cache, buildingPrefix+"~layer-")
	if err != nil {
		return err
	}
	defer func() { _, _ = file.Close(), os.Remove(file.Name()) }()
	size := ""
	if t.Bytes > 0 { // the size of tare's own tree is not known
		size = fmt.Sprintf(" (%d MiB)", t.Bytes>>20)
	}
	b.say("packing the image %s%s", t.Name, size)
	l, err := makeLayer(ctx, t.Path, file.Name(), without, OnDisk(t.Name))
	if err != nil {
		return err
	}
	img, err := ociImage(t, l)
	if err != nil {
		return err
	}
	return use(img)
}

// ociImage makes an image of one layer: config, manifest, annotations.
func ociImage(t Tree, l v1.Layer) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: time.Unix(sealTime, 0).UTC()}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.Architecture, cfg.OS, cfg.Created = t.platform().Architecture, t.platform().OS, created
	cfg.Config.Entrypoint, cfg.Config.Cmd, cfg.Config.Env = t.Entrypoint, t.Command, t.Env
	if !slices.ContainsFunc(t.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		cfg.Config.Env = append([]string{"PATH=" + stepPath}, t.Env...)
	}
	cfg.Config.WorkingDir = cmp.Or(t.Dir, "/")
	if u := t.User; u.UID != 0 || u.GID != 0 {
		cfg.Config.User = fmt.Sprintf("%d:%d", u.UID, u.GID)
	}
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "tare image build " + filepath.Base(t.Name)}})
	if err != nil {
		return nil, err
	}
	notes := map[string]string{
		"org.opencontainers.image.title":   filepath.Base(t.Name), // without the folders of a path, which are private
		"org.opencontainers.image.created": created.Format(time.RFC3339),
		AnnotationDigest:                   t.Digest,
	}
	if len(t.Packages) > 0 {
		notes[AnnotationPackages] = strings.Join(t.Packages, " ")
	}
	if len(t.Wheels) > 0 {
		notes[AnnotationWheels] = strings.Join(t.Wheels, ",")
	}
	out, ok := mutate.Annotations(img, notes).(v1.Image)
	if !ok {
		return nil, errors.New("the image library returned an unexpected type for the annotated image; report this as an error of tare")
	}
	return out, nil
}

// Export writes the tree into the OCI image layout at dir. It makes dir if needed, and
// replaces an image of the same name. It returns the digest of the manifest.
func (b *Builder) Export(ctx context.Context, t Tree, dir string) (digest string, err error) {
	err = b.withOCI(ctx, t, func(img v1.Image) error {
		h, err := img.Digest()
		if err != nil {
			return err
		}
		digest = h.String()
		p, err := openLayout(dir)
		if err != nil {
			return err
		}
		err = p.ReplaceImage(img, match.Name(t.Name), layout.WithAnnotations(map[string]string{
			annotationRef:        t.Name,
			annotationContainerd: "localhost/tare/" + t.Name + ":latest",
		}), layout.WithPlatform(t.platform()))
		if err != nil {
			return err
		}
		return tidy(p)
	})
	if err != nil {
		return "", fmt.Errorf("cannot export the image %s to %s: %w", t.Name, dir, err)
	}
	return digest, nil
}

// tidy removes the blobs of a replaced image from a layout, and lets other users read the
// rest, because podman may run as another user.
func tidy(p layout.Path) error {
	stale, err := p.GarbageCollect()
	if err != nil {
		return err
	}
	for _, h := range stale {
		if err := p.RemoveBlob(h); err != nil {
			return err
		}
	}
	return filepath.WalkDir(string(p), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(file, 0o644) //nolint:gosec // no secret
	})
}

func openLayout(dir string) (layout.Path, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if len(entries) == 0 {
		return layout.Write(dir, empty.Index)
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
		return "", errors.New("the folder holds other files; give an empty folder or an OCI image layout")
	}
	return layout.FromPath(dir)
}
