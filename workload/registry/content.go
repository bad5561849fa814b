package registry

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// content makes images of random bytes. Images with different numbers have no layer in common, and
// images with the same number are the same in every process.
type content struct {
	layers int
	size   int64 // of a layer, in bytes
	base   func() []byte
}

func newContent(layers int, size int64) *content {
	return &content{layers: layers, size: size, base: sync.OnceValue(func() []byte { // a client that pulls needs none
		b := make([]byte, size)
		r := rand.NewChaCha8([32]byte{1})
		_, _ = r.Read(b) // it never fails
		return b
	})}
}

// image is the image of a number. To make it takes the time of its digests.
func (c *content) image(number uint64) (v1.Image, error) {
	var add []mutate.Addendum
	for l := range c.layers {
		b := append([]byte(nil), c.base()...)
		var mark [16]byte
		binary.LittleEndian.PutUint64(mark[:], number)
		binary.LittleEndian.PutUint64(mark[8:], uint64(l))
		copy(b, mark[:])
		add = append(add, mutate.Addendum{Layer: static.NewLayer(b, types.OCIUncompressedLayer)})
	}
	return mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), add...)
}

// bytes are those of an image's layers.
func (c *content) bytes() int64 { return int64(c.layers) * c.size }
