package bundle

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"tare/param"
)

// stoppable is a reader that ends with a context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// bounded is a reader that returns an error if the stream is too long.
type bounded struct {
	r             io.Reader
	left, allowed int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.r.Read(one[:]); n == 0 && err != nil {
			return 0, err
		}
		return 0, tooLarge(b.allowed)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// remembering keeps the error of a source, to distinguish it from an error of the
// destination.
type remembering struct {
	r   io.Reader
	err error
}

func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// broken explains an error of the decompressor or of the tar reader.
func broken(err error) error {
	var path *os.PathError
	switch {
	case errors.Is(err, ErrRefused), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &path):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse("there is data after its end, or it is incomplete; copy it again")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return refuse("it needs more than %s of memory to decompress", param.AboutSize(maxWindow))
	}
	return refuse("it is damaged: %w", err)
}

func tooLarge(allowed int64) error {
	return refuse("it unpacks to more than %s, for its size or at all; if you know who made it, `tare bundle --unpack` takes --limit", param.AboutSize(allowed))
}
