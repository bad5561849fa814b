package vm

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
	"unicode"

	"tare/internal/spawn"
)

// console keeps the last that a guest wrote to its serial port. It is read all the
// time: a full socket would halt the guest's processor that writes.
type console struct {
	conn net.Conn
	tail spawn.Tail
	done chan struct{}
}

func listen(conn net.Conn) *console {
	c := &console{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		buf := make([]byte, 4<<10)
		for {
			n, err := conn.Read(buf)
			_, _ = c.tail.Write(buf[:n])
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
	lines := lastLines(c.tail.String())
	switch {
	case len(lines) == 0 && booting:
		return fmt.Errorf("%w; its console is empty", err)
	case len(lines) == 0:
		return err
	}
	for _, l := range lines {
		if _, panicked, ok := strings.Cut(l, "Kernel panic - not syncing: "); ok {
			panicked, _, _ = strings.Cut(panicked, " ]---")
			err = fmt.Errorf("the guest's kernel panicked (%s): %w", panicked, err)
			break
		}
	}
	return fmt.Errorf("%w; its console ends with: %s", err, strings.Join(lines, " | "))
}

// What an error tells of a console, in lines and in bytes a line.
const (
	mostLines = 12
	mostWidth = 200
)

// escapes are what terminals take for commands: ECMA-48, "CSI" and what else begins
// with an escape.
var escapes = regexp.MustCompile("\x1b(\\[[0-9;?]*[ -/]*[@-~]|[@-Z\\\\-_])") //nolint:gochecknoglobals // a constant

// lastLines makes the end of what a guest wrote fit for a message: a few lines of
// printable characters. A guest can write anything.
func lastLines(text string) []string {
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
	return out[max(0, len(out)-mostLines):]
}
