package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// PushOptions say how an image is sent to a registry.
type PushOptions struct {
	Insecure bool   // the registry may be without TLS, or have a certificate that nothing vouches for
	Others   []Tree // the same image for other processors
	Add      bool   // keep the images for other processors that the reference has
	Copies   int    // copies of each image, at most MostCopies; they have the same files and share no layer (Asked.Copies)
}

// Push sends the tree to a registry as the reference REGISTRY/NAME:TAG, with
// the credentials of docker or podman, and returns the reference by digest. It uses no TLS
// for registries on this host. With Others, Add or Copies, the reference stands for an index of images.
func (b *Builder) Push(ctx context.Context, t Tree, ref string, o PushOptions) (string, error) {
	by := remote.DefaultTransport
	if o.Insecure {
		by = unchecked()
	}
	to, err := parseReference(ref, o.Insecure)
	if err != nil {
		return "", err
	}
	if _, is := to.(name.Digest); is {
		return "", fmt.Errorf("%w: %q has a digest, which follows from what is pushed; write a tag", ErrReference, ref)
	}
	p := pushing{b, to, []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain()), remote.WithTransport(by)}}
	var h v1.Hash
	if o.Add || len(o.Others) > 0 || o.Copies > 0 {
		h, err = p.index(ctx, append([]Tree{t}, o.Others...), o)
	} else {
		var all []v1.Hash
		if all, err = p.send(ctx, t, to, 0); err == nil {
			h = all[0]
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot push the image %s to %s: %w", t.Name, to, pushError(to, err))
	}
	return to.Context().Digest(h.String()).String(), nil
}

// pushing is one call of Push.
type pushing struct {
	*Builder
	to name.Reference
	by []remote.Option
}

// send sends an image and copies of it, and returns their digests in this order. Without a reference, only the digest names the
// image. Copies never have another name.
func (p pushing) send(ctx context.Context, t Tree, as name.Reference, copies int) (all []v1.Hash, err error) {
	return all, p.withOCI(ctx, t, func(img v1.Image) error {
		p.say("pushing the image %s for %s to %s", t.Name, t.platform(), p.to)
		h, err := p.write(as, img)
		if all = append(all, h); err != nil || copies == 0 {
			return err
		}
		own, err := img.Layers()
		if err != nil {
			return err
		}
		layers, err := salt(own[0], copies) // ociImage makes one layer
		if err != nil {
			return err
		}
		size, err := own[0].Size()
		if err != nil {
			return err
		}
		p.say("pushing %d copies of the image, %d MiB each", copies, size>>20)
		for _, l := range layers {
			if img, err = ociImage(t, l); err != nil {
				return err
			}
			if h, err = p.write(nil, img); err != nil {
				return err
			}
			all = append(all, h)
		}
		return nil
	})
}

// write sends one image, and returns its digest.
func (p pushing) write(as name.Reference, img v1.Image) (v1.Hash, error) {
	h, err := img.Digest()
	if err != nil {
		return h, err
	}
	if as == nil {
		as = p.to.Context().Digest(h.String())
	}
	return h, remote.Write(as, img, p.by...)
}

// index sends an image for each processor, with copies, and then the index of them.
func (p pushing) index(ctx context.Context, trees []Tree, o PushOptions) (v1.Hash, error) {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	if o.Add {
		var err error
		if all, err = p.there(all); err != nil {
			return v1.Hash{}, err
		}
	}
	for _, t := range trees {
		sent, err := p.send(ctx, t, nil, o.Copies)
		if err != nil {
			return v1.Hash{}, err
		}
		images := make([]v1.Image, len(sent))
		for i, h := range sent {
			if images[i], err = remote.Image(p.to.Context().Digest(h.String()), p.by...); err != nil {
				return v1.Hash{}, err
			}
		}
		all = copied(listed(all, images[0], t.platform()), images[1:], t.platform())
	}
	if err := remote.WriteIndex(p.to, all, p.by...); err != nil {
		return v1.Hash{}, err
	}
	return all.Digest()
}

// there is the index that the reference stands for, of its one image if it is none; nothing if the
// registry does not have it.
func (p pushing) there(nothing v1.ImageIndex) (v1.ImageIndex, error) {
	d, err := remote.Get(p.to, p.by...)
	var t *transport.Error
	switch {
	case errors.As(err, &t) && t.StatusCode == http.StatusNotFound:
		return nothing, nil
	case err != nil:
		return nil, err
	case d.MediaType.IsIndex():
		return d.ImageIndex()
	}
	img, err := d.Image()
	if err != nil {
		return nil, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	return listed(nothing, img, v1.Platform{OS: c.OS, Architecture: c.Architecture}), nil
}

// listed adds an image to an index. It replaces the image for the same processor and its copies.
func listed(all v1.ImageIndex, img v1.Image, of v1.Platform) v1.ImageIndex {
	all = mutate.RemoveManifests(all, func(d v1.Descriptor) bool {
		return d.Annotations[annotationCopy] == of.String() || d.Platform != nil && d.Platform.OS == of.OS && d.Platform.Architecture == of.Architecture
	})
	return mutate.AppendManifests(all, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &of}})
}

// unchecked is a transport that believes every certificate.
func unchecked() http.RoundTripper {
	t := remote.DefaultTransport.(*http.Transport).Clone()    // as that package says
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the user asks for it
	return t
}

// parseReference reads the name of an image in a registry. With insecure, the registry may be without TLS.
func parseReference(text string, insecure bool) (name.Reference, error) {
	if _, after, is := strings.Cut(text, "://"); is {
		return nil, fmt.Errorf("%w: %q has a scheme; write %s", ErrReference, text, after)
	}
	var parse []name.Option
	if insecure {
		parse = append(parse, name.Insecure)
	}
	ref, err := name.ParseReference(text, parse...)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrReference, text, err)
	}
	return ref, nil
}

// ErrReference means that the reference cannot be parsed.
var ErrReference = errors.New("cannot parse the image reference; write it as registry.example.org/tare/redis:latest")

// pushError adds what to do to errors that users can correct.
func pushError(to name.Reference, err error) error {
	var t *transport.Error
	switch {
	case errors.As(err, &t) && (t.StatusCode == http.StatusUnauthorized || t.StatusCode == http.StatusForbidden):
		return fmt.Errorf("the registry refuses the push; log in with docker login %s or podman login %s: %w", to.Context().RegistryStr(), to.Context().RegistryStr(), err)
	case noTLS(err):
		return fmt.Errorf("the registry %s has no TLS; --insecure pushes all the same: %w", to.Context().RegistryStr(), err)
	case badCertificate(err):
		return fmt.Errorf("the certificate of %s cannot be checked; install its authority's certificate on this host, or push with --insecure: %w", to.Context().RegistryStr(), err)
	case errors.As(err, &t):
		return err
	case strings.Contains(err.Error(), "connection refused"), strings.Contains(err.Error(), "no such host"):
		return fmt.Errorf("no registry answers at %s: %w", to.Context().RegistryStr(), err)
	}
	return err
}
