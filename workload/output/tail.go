package output

import (
	"bytes"
	"strings"
	"sync"
)

// tailSize is how many bytes a Tail keeps by default, for programs that print little.
const tailSize = 64 << 10

// Tail keeps the last bytes that a driver's child prints, so that the child cannot fill the
// driver's memory. The zero value keeps 64 KiB. It is safe for concurrent use.
type Tail struct {
	Most int // bytes to keep; 0: 64 KiB. It holds up to twice as many

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
	// Not at each write, which would copy everything for every byte.
	if over := len(t.buf) - most; over > most {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns the kept bytes.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-t.most()):])
}

// Whole returns everything that was printed, or ErrTooLong if some of it is lost.
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
