package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// resumer is a transport for pulls. A request ends when nothing has come for a while, and a body
// that breaks off goes on with a request for the rest: RFC 9110, section 14.
type resumer struct {
	next  http.RoundTripper
	stall time.Duration
}

var errStalled = errors.New("the registry has stalled")

// RoundTrip is of http.RoundTripper.
func (t *resumer) RoundTrip(req *http.Request) (*http.Response, error) {
	b := &body{transport: t, request: req}
	resp, err := b.ask()
	if err != nil {
		return nil, err
	}
	b.size, resp.Body = resp.ContentLength, b
	return resp, nil
}

// body is the body of an answer.
type body struct {
	transport *resumer
	request   *http.Request
	part      io.ReadCloser
	ctx       context.Context         //nolint:containedctx // of the request for the part,
	cancel    context.CancelCauseFunc // which ends it
	timer     *time.Timer
	at, size  int64 // size -1: not known
	failed    int   // times, since the last byte
}

// ask sends the request, or one for what has not come yet.
func (b *body) ask() (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(b.request.Context())
	req := b.request.Clone(ctx)
	if b.at > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", b.at, b.size-1))
	}
	b.ctx, b.cancel, b.timer = ctx, cancel, time.AfterFunc(b.transport.stall, func() {
		cancel(fmt.Errorf("%w: nothing came for %s", errStalled, b.transport.stall))
	})
	resp, err := b.transport.next.RoundTrip(req) //nolint:bodyclose // part, which Close closes
	if err != nil {
		err = b.why(err)
		b.end()
		return nil, err
	}
	b.part = resp.Body
	return resp, nil
}

// why prefers the reason that a request was given up for.
func (b *body) why(err error) error {
	if cause := context.Cause(b.ctx); cause != nil {
		return cause
	}
	return err
}

func (b *body) end() {
	b.timer.Stop()
	if b.part != nil {
		_ = b.part.Close()
	}
	b.cancel(nil)
}

// Read is of io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for {
		n, err := b.part.Read(p)
		if n > 0 {
			b.at, b.failed = b.at+int64(n), 0
			b.timer.Reset(b.transport.stall)
		}
		switch {
		case err == nil || errors.Is(err, io.EOF):
			return n, err
		case n > 0:
			return n, nil // the error comes again
		}
		if err := b.resume(b.why(err)); err != nil {
			return 0, err
		}
	}
}

// resume asks for the rest, if that can help.
func (b *body) resume(broken error) error {
	for b.failed++; b.failed <= resumes && b.size > b.at && b.request.Context().Err() == nil; b.failed++ {
		b.end()
		wait := time.NewTimer(time.Duration(b.failed) * 100 * time.Millisecond)
		select {
		case <-wait.C:
		case <-b.request.Context().Done():
			wait.Stop()
			return b.request.Context().Err()
		}
		resp, err := b.ask()
		if err != nil {
			broken = err
			continue
		}
		whole := b.at == 0 && resp.StatusCode == http.StatusOK
		rest := resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", b.at))
		if whole || rest {
			return nil
		}
		return fmt.Errorf("cannot fetch the rest (%s): %w", resp.Status, broken)
	}
	return broken
}

// Close is of io.Closer.
func (b *body) Close() error {
	b.end()
	return nil
}
