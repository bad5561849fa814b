package vm

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"tare/host/spawn"
)

// console keeps the last that a guest wrote to its serial port. It is read all the
// time: a full socket would halt the guest's processor that writes.
type console struct {
	conn  io.ReadCloser
	tail  spawn.Tail
	panic finder // what follows a panic may be longer than the tail
	done  chan struct{}
}

func listen(conn io.ReadCloser) *console {
	c := &console{conn: conn, panic: finder{word: panicked}, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		buf := make([]byte, 4<<10)
		for {
			n, err := conn.Read(buf)
			_, _ = c.tail.Write(buf[:n])
			c.panic.write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return c
}

// drain waits until all that was written has been read.
func (c *console) drain(most time.Duration) {
	select {
	case <-c.done:
	case <-time.After(most):
	}
}

func (c *console) close() {
	_ = c.conn.Close()
	<-c.done
}

// explain adds the console's end to an error, and first what it means. On the console
// of a guest that is well there is nothing.
func (c *console) explain(err error, booting bool) error {
	lines := printable(c.tail.String())
	switch {
	case len(lines) == 0 && booting:
		return fmt.Errorf("%w; its console is empty", err)
	case len(lines) == 0:
		return err
	}
	if reason := c.panic.rest(); reason != "" {
		return fmt.Errorf("the guest's kernel panicked (%s): %w; its console: %s", reason, err, strings.Join(around(lines, panicked), " | "))
	}
	return fmt.Errorf("%w; its console ends with: %s", err, strings.Join(lines[max(0, len(lines)-mostLines):], " | "))
}

// panicked is what a kernel's last words begin with: panic() of kernel/panic.c.
const panicked = "Kernel panic - not syncing: "

// around are the lines from a little before the first one with the word, for what
// comes after it is registers in the end; the last lines if there is none.
func around(lines []string, word string) []string {
	const before = 3
	from := len(lines) - mostLines
	for n, l := range lines {
		if strings.Contains(l, word) {
			from = n - before
			break
		}
	}
	from = max(0, from)
	return lines[from:min(len(lines), from+mostLines)]
}

// finder keeps the rest of the first line that has a word. It is safe for concurrent use.
type finder struct {
	word string

	mu    sync.Mutex
	line  []byte
	found string
}

func (f *finder) write(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range b {
		if f.found != "" {
			return
		}
		if c != '\n' && len(f.line) < 1<<10 {
			f.line = append(f.line, c)
			continue
		}
		if _, rest, ok := strings.Cut(string(f.line), f.word); ok {
			if l := printable(rest); len(l) > 0 {
				f.found = l[0]
			}
		}
		f.line = f.line[:0]
	}
}

func (f *finder) rest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found
}

// What an error tells of a console, in lines and in bytes a line.
const (
	mostLines = 12
	mostWidth = 200
)

// escapes are what terminals take for commands: ECMA-48, "CSI" and what else begins
// with an escape.
var escapes = regexp.MustCompile("\x1b(\\[[0-9;?]*[ -/]*[@-~]|[@-Z\\\\-_])")

// printable makes what a guest wrote fit for a message: lines of printable
// characters. A guest can write anything.
func printable(text string) []string {
	text = escapes.ReplaceAllString(strings.ToValidUTF8(text, "?"), "")
	var out []string
	for _, l := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		l = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, l))
		if l == "" {
			continue
		}
		if len(l) > mostWidth {
			l = strings.ToValidUTF8(l[:mostWidth], "") + "..."
		}
		out = append(out, l)
	}
	return out
}
