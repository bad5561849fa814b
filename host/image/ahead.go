package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"sync"
)

// ahead reads and digests a stream in a goroutine of its own, some blocks ahead of its user, so
// that to decompress and to write take two processors.
type ahead struct {
	blocks chan []byte // full, in order
	spare  chan []byte
	stop   context.CancelFunc
	ended  sync.WaitGroup
	now    []byte // the rest of
	block  []byte // the block that the user reads
	err    error  // why there are no more, once blocks is closed
	hash   hash.Hash
}

const (
	aheadBlocks = 8
	aheadBlock  = 256 << 10
)

func readAhead(ctx context.Context, r io.Reader) *ahead {
	ctx, stop := context.WithCancel(ctx)
	a := &ahead{blocks: make(chan []byte, aheadBlocks), spare: make(chan []byte, aheadBlocks), stop: stop, hash: sha256.New()}
	for range aheadBlocks {
		a.spare <- make([]byte, aheadBlock)
	}
	a.ended.Go(func() {
		defer close(a.blocks)
		for {
			var b []byte
			select {
			case b = <-a.spare:
			case <-ctx.Done():
			}
			if a.err = ctx.Err(); a.err != nil {
				return
			}
			n, err := 0, error(nil)
			for b = b[:cap(b)]; n < len(b) && err == nil; { // not io.ReadFull, which hides a stream that was cut
				var m int
				m, err = r.Read(b[n:])
				n += m
			}
			_, _ = a.hash.Write(b[:n]) // never fails
			if n > 0 {
				a.blocks <- b[:n] // there is room for all
			}
			if a.err = err; err != nil {
				return
			}
		}
	})
	return a
}

// Read is of io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.now) == 0 {
		if a.block != nil {
			a.spare <- a.block // there is room for all
		}
		b, ok := <-a.blocks
		if a.block, a.now = b, b; !ok {
			return 0, a.err
		}
	}
	n := copy(p, a.now)
	a.now = a.now[n:]
	return n, nil
}

// sum is the SHA-256 of the stream, once it was read to its end.
func (a *ahead) sum() string { return hex.EncodeToString(a.hash.Sum(nil)) }

// Close ends the goroutine. It waits for a pending read.
func (a *ahead) Close() error {
	a.stop()
	a.ended.Wait()
	return nil
}
