package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Bounds of what a registry may take.
const (
	stallTime = 20 * time.Second // without a byte
	resumes   = 4                // of a layer, without a byte in between
	atOnce    = 3                // layers that are fetched at the same time
)

// inRegistry is an image that is pulled.
func (b *Builder) inRegistry(text string) (source, error) {
	ref, err := parseReference(text, b.insecure)
	if err != nil {
		return nil, err
	}
	return &pulled{builder: b, name: text, ref: ref}, nil
}

// pulled is an image of a registry. Its layers are kept in the cache, so that other images can
// share them, and that a pull that was interrupted fetches only what is missing.
type pulled struct {
	builder *Builder
	name    string
	ref     name.Reference
	image   v1.Image
	digest  v1.Hash
}

func (p *pulled) options(ctx context.Context) []remote.Option {
	by := remote.DefaultTransport
	if p.builder.insecure {
		by = unchecked()
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain()),
		remote.WithRetryBackoff(remote.Backoff{Duration: 300 * time.Millisecond, Factor: 3, Steps: 3}),
		remote.WithTransport(&resumer{next: by, stall: p.stall()}),
	}
}

func (p *pulled) stall() time.Duration {
	if p.builder.stall > 0 {
		return p.builder.stall
	}
	return stallTime
}

// key is the manifest's digest. It asks the registry, unless the reference has it.
func (p *pulled) key(ctx context.Context) (string, error) {
	if d, ok := p.ref.(name.Digest); ok {
		return d.DigestStr(), nil
	}
	if err := p.look(ctx); err != nil {
		return "", err
	}
	return p.digest.String(), nil
}

// look asks for the manifest, of an image for several machines for that of this one.
func (p *pulled) look(ctx context.Context) (err error) {
	if p.image != nil {
		return nil
	}
	p.builder.say("%s: asking %s", p.name, p.ref.Context().RegistryStr())
	defer func() { err = p.explain(ctx, err) }()
	d, err := remote.Get(p.ref, p.options(ctx)...)
	if err != nil {
		return err
	}
	if !d.MediaType.IsIndex() {
		if !d.MediaType.IsImage() {
			return fmt.Errorf("it is not an image of a container but %s", d.MediaType)
		}
		p.image, err = d.Image()
	} else {
		var index v1.ImageIndex
		if index, err = d.ImageIndex(); err == nil {
			p.image, err = forHere(index)
		}
	}
	if err == nil {
		p.digest, err = p.image.Digest()
	}
	return err
}

// forHere is the image of an index for this host's processor.
func forHere(index v1.ImageIndex) (v1.Image, error) {
	for range 4 { // an index may list others
		text, err := index.RawManifest()
		if err != nil {
			return nil, err
		}
		one, err := choose(text, "")
		if err != nil {
			return nil, err
		}
		if !one.MediaType.IsIndex() {
			return index.Image(one.Digest)
		}
		if index, err = index.ImageIndex(one.Digest); err != nil {
			return nil, err
		}
	}
	return nil, errLoop
}

var errLoop = errors.New("its indexes list each other; give the digest of one image")

func (p *pulled) find(ctx context.Context) (*found, func(), error) {
	if err := p.look(ctx); err != nil {
		return nil, nil, err
	}
	f, done, err := p.fetch(ctx)
	return f, done, p.explain(ctx, err)
}

// fetch begins to fetch the layers. Each can be opened when it is there.
func (p *pulled) fetch(ctx context.Context) (_ *found, done func(), err error) {
	f := &found{manifest: p.digest.String()}
	if f.config, err = p.image.RawConfigFile(); err != nil {
		return nil, nil, err
	}
	conf, err := p.image.ConfigFile()
	if err == nil {
		err = fits(conf.Architecture, conf.OS) // before layers are fetched
	}
	if err != nil {
		return nil, nil, err
	}
	layers, err := p.image.Layers()
	if err != nil {
		return nil, nil, err
	}
	c, err := openCache(p.builder.Cache)
	if err != nil {
		return nil, nil, err
	}
	// The layers' requests were made with the context of look, which is that of the caller.
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	var held []func()
	done = func() {
		cancel()
		running.Wait()
		for _, release := range held {
			release()
		}
	}
	var size int64
	files := make([]string, len(layers))
	for i, l := range layers {
		file, n, release, err := c.claim(l)
		if err != nil {
			done()
			return nil, nil, err
		}
		files[i], held = file, append(held, release)
		there, failed := make(chan struct{}), error(nil)
		if st, err := os.Stat(file); err == nil && st.Size() == n {
			c.touch(file)
			close(there)
		} else {
			size += n
			running.Go(func() {
				defer close(there)
				select {
				case turns <- struct{}{}:
					defer func() { <-turns }()
					failed = p.get(ctx, c, l, file)
				case <-ctx.Done():
					failed = ctx.Err()
				}
			})
		}
		f.layers = append(f.layers, func() (io.ReadCloser, error) {
			<-there
			if failed != nil {
				return nil, p.explain(ctx, failed)
			}
			return os.Open(file) //nolint:gosec // our own cache
		})
	}
	if size > 0 {
		p.builder.say("%s: fetching %d MiB", p.name, size>>20)
	}
	f.damaged = func(i int) error { return os.Remove(files[i]) }
	return f, done, nil
}

// claim keeps a layer's file, if it is there, in the cache until release is called.
func (c *cache) claim(l v1.Layer) (file string, size int64, release func(), err error) {
	h, err := l.Digest()
	if err != nil {
		return "", 0, nil, err
	}
	if size, err = l.Size(); err != nil {
		return "", 0, nil, err
	}
	release, err = c.share(layerLock(h.Hex))
	return c.layer(h.Hex), size, release, err
}

// get fetches a layer into the cache. The library compares its digest.
func (p *pulled) get(ctx context.Context, c *cache, l v1.Layer, file string) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as the rest of the cache
		return err
	}
	tmp, err := os.CreateTemp(c.dir, buildingPrefix+layerLock(filepath.Base(file))+"~") // of the lock that fetch has
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, tmp.Close()); err == nil {
			err = os.Rename(tmp.Name(), file)
		} else {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	r, err := l.Compressed()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.Close() }) // ends a read that waits
	defer stop()
	_, err = io.Copy(tmp, r)
	return errors.Join(err, ctx.Err(), r.Close())
}

// noTLS says whether a registry answered HTTP where it was asked for HTTPS.
func noTLS(err error) bool {
	return strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// badCertificate says whether nothing vouches for a registry.
func badCertificate(err error) bool {
	return strings.Contains(err.Error(), "failed to verify certificate") // as *tls.CertificateVerificationError has it
}

// ErrInsecure means that nothing vouches for the registry that answered.
var ErrInsecure = errors.New("the registry has no TLS, or a certificate that cannot be checked")

// errNoAnswer means that no registry answered.
var errNoAnswer = errors.New("cannot reach the registry")

// explain adds what to do to errors that users can correct.
func (p *pulled) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	at := p.ref.Context().RegistryStr()
	var t *transport.Error
	var failed *url.Error
	var broken *net.OpError
	switch {
	case errors.As(err, &t):
		switch t.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("the registry refuses the pull; log in with docker login %s or podman login %s, if the image exists: %w", at, at, err)
		case http.StatusNotFound:
			return fmt.Errorf("the registry %s has %w; check its name and tag: %w", at, ErrAbsent, err)
		case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return fmt.Errorf("the registry %s does not work at the moment; try again later, or give an archive of `docker save`: %w", at, err)
		case http.StatusTooManyRequests:
			return fmt.Errorf("the registry %s allows no more pulls for now; wait, or log in with docker login %s: %w", at, at, err)
		}
	case noTLS(err) || badCertificate(err):
		return fmt.Errorf("%w: %s; install its authority's certificate on this host, or give an archive of `docker save`: %w", ErrInsecure, at, err)
	case errors.As(err, &failed), errors.As(err, &broken), errors.Is(err, errStalled):
		return fmt.Errorf("%w %s; check its name and the network, or give an archive of `docker save`: %w", errNoAnswer, at, err)
	}
	return err
}
