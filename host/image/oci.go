package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
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
	b.say("%s: packing %d MiB", t.Name, t.Bytes>>20)
	l, err := makeLayer(ctx, t.Path, file.Name(), without)
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
	cfg.Architecture, cfg.OS, cfg.Created = runtime.GOARCH, "linux", created
	cfg.Config.Cmd = t.Command
	cfg.Config.Env = append([]string{"PATH=" + stepPath}, t.Env...)
	cfg.Config.WorkingDir = "/"
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "tare image build " + t.Name}})
	if err != nil {
		return nil, err
	}
	notes := map[string]string{
		"org.opencontainers.image.title":   t.Name,
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
		}), layout.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
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

// Push sends the tree to a registry as the reference REGISTRY/NAME:TAG, with
// the credentials of docker or podman, and returns the reference by digest. It uses no TLS
// for registries on this host. With insecure, any registry may be without TLS, or have a certificate that nothing vouches for.
func (b *Builder) Push(ctx context.Context, t Tree, ref string, insecure bool) (string, error) {
	by, parse := remote.DefaultTransport, []name.Option{}
	if insecure {
		by, parse = unchecked(), append(parse, name.Insecure)
	}
	to, err := name.ParseReference(ref, parse...)
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", ErrReference, ref, err)
	}
	var pushed string
	err = b.withOCI(ctx, t, func(img v1.Image) error {
		h, err := img.Digest()
		if err != nil {
			return err
		}
		pushed = to.Context().Digest(h.String()).String()
		b.say("%s: pushing to %s", t.Name, to)
		return remote.Write(to, img, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain()), remote.WithTransport(by))
	})
	if err != nil {
		return "", fmt.Errorf("cannot push the image %s to %s: %w", t.Name, to, pushError(to, err))
	}
	return pushed, nil
}

// unchecked is a transport that believes every certificate.
func unchecked() http.RoundTripper {
	t := remote.DefaultTransport.(*http.Transport).Clone()    // as that package says
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the user asks for it
	return t
}

// ErrReference means that the reference cannot be parsed.
var ErrReference = errors.New("cannot parse the image reference; write it as registry.example.org/tare/redis:latest")

// pushError adds what to do to errors that users can correct.
func pushError(to name.Reference, err error) error {
	var t *transport.Error
	switch {
	case errors.As(err, &t) && (t.StatusCode == http.StatusUnauthorized || t.StatusCode == http.StatusForbidden):
		return fmt.Errorf("the registry refuses the push; log in with docker login %s or podman login %s: %w", to.Context().RegistryStr(), to.Context().RegistryStr(), err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the registry %s has no TLS; --insecure pushes all the same: %w", to.Context().RegistryStr(), err)
	case strings.Contains(err.Error(), "failed to verify certificate"): // as *tls.CertificateVerificationError has it
		return fmt.Errorf("the certificate of %s cannot be checked; install its authority's certificate on this host, or push with --insecure: %w", to.Context().RegistryStr(), err)
	case errors.As(err, &t):
		return err
	case strings.Contains(err.Error(), "connection refused"), strings.Contains(err.Error(), "no such host"):
		return fmt.Errorf("no registry answers at %s: %w", to.Context().RegistryStr(), err)
	}
	return err
}
