package image

import (
	"context"
	"errors"
	"fmt"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// ErrPlatform means that an image is for other machines.
var ErrPlatform = errors.New("it is for other machines")

// ErrAbsent means that the registry answers, and does not have the image.
var ErrAbsent = errors.New("no such image")

// Asked is what a registry says of an image. Nothing of its layers is fetched.
type Asked struct {
	Pinned     string // the reference with the digest of what it stands for, for machines of any kind
	Entrypoint []string
	Command    []string
	Env        []string // NAME=VALUE
	Dir        string   // working directory
	User       string   // as the image has it: names or numbers, USER[:GROUP]; "": root
	Copies     []string // references, by digest, of the image's copies (PushOptions.Copies)
}

// Ask asks a reference's registry about the image for Linux on a processor. With insecure, the
// registry may be without TLS, or have a certificate that nothing vouches for.
func Ask(ctx context.Context, reference, arch string, insecure bool) (out Asked, err error) {
	src, err := (&Builder{insecure: insecure}).inRegistry(reference)
	if err != nil {
		return out, err
	}
	p := src.(*pulled) // inRegistry makes it
	defer func() { err = p.explain(ctx, err) }()
	d, err := remote.Get(p.ref, append(p.options(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))...)
	if err != nil {
		return out, err
	}
	img, err := d.Image()
	if err != nil {
		return out, err
	}
	conf, err := img.ConfigFile()
	if err != nil {
		return out, err
	}
	if conf.Architecture != "" && conf.Architecture != arch {
		return out, fmt.Errorf("%w: for %s/%s, not linux/%s; give an image that is built for that", ErrPlatform, conf.OS, conf.Architecture, arch)
	}
	c := conf.Config
	out = Asked{Pinned: p.ref.Context().Digest(d.Digest.String()).String(), Entrypoint: c.Entrypoint, Command: c.Cmd, Env: c.Env, User: c.User}
	if c.WorkingDir != "" {
		out.Dir = path.Join("/", c.WorkingDir)
	}
	if d.MediaType.IsIndex() {
		out.Copies, err = copies(d, p.ref.Context(), arch)
	}
	return out, err
}
