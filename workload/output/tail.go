package output

import (
	"bytes"
	"strings"
	"sync"
)

// tailSize is what a Tail keeps, in bytes, of a program that has no reason to
// print much.
const tailSize = 64 << 10

// Tail keeps the last bytes of what a driver's child prints, so that none can fill
// the driver's memory. The zero value keeps 64 KiB. It is safe for concurrent use.
type Tail struct {
	Most int // bytes that are kept; 0: 64 KiB. Up to twice as many are held

	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *Tail) most() int {
	if t.Most > 0 {
		return t.Most
	}
	return tailSize
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := t.most()
	t.buf = append(t.buf, p[max(0, len(p)-most):]...)
	t.cut = t.cut || len(p) > most || len(t.buf) > most
	// Not at each write, which would copy all of it for every byte more.
	if over := len(t.buf) - most; over > most {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-t.most()):])
}

// Whole returns everything that was printed, or ErrTooLong if that is not kept.
func (t *Tail) Whole() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return nil, ErrTooLong
	}
	return bytes.Clone(t.buf), nil
}

// Said quotes the end of what a program printed on standard error, its last two
// lines and at most 300 bytes, in one line.
func Said(text string) string {
	const most, last = 300, 2
	lines := strings.Split(strings.TrimSpace(text), "\n")
	s := strings.Join(lines[max(0, len(lines)-last):], "; ")
	if s == "" {
		return "it printed nothing on standard error"
	}
	return strings.ToValidUTF8(s[max(0, len(s)-most):], "")
}
