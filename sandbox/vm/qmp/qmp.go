// Package qmp is a client of QEMU's machine protocol: JSON objects, one a line,
// over a stream socket. https://www.qemu.org/docs/master/interop/qmp-spec.html
//
// The data path: 1. Connect reads the greeting and leaves negotiation mode; 2. Run
// sends a command with a number of its own and waits for the answer that bears it;
// 3. one goroutine reads, hands answers to who waits and events to the caller's
// function; 4. when the stream ends, everybody who waits is told.
//
// It is our own because the Go modules for it are archived, and because what a
// sandbox needs is this little. Everything read is bounded.
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxLine bounds one message, in bytes. The largest that is asked for, the list of
// hot-pluggable processors, has about 150 for each.
const maxLine = 1 << 20

// Version is QEMU's.
type Version struct {
	Major, Minor, Micro int
	Package             string // of the distribution, such as "Debian 1:7.2+dfsg-7"; may be empty
}

// String is as QEMU prints it: "7.2.22 (Debian 1:7.2+dfsg-7)".
func (v Version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro)
	if v.Package != "" {
		s += " (" + v.Package + ")"
	}
	return s
}

// Event is something that QEMU tells unasked: SHUTDOWN, VSERPORT_CHANGE.
type Event struct {
	Name string
	Data json.RawMessage
}

// Error is QEMU's refusal of a command; find it with errors.As.
type Error struct {
	Command string
	Class   string `json:"class"`
	Desc    string `json:"desc"`
}

// Error tells the command and what QEMU said.
func (e *Error) Error() string { return fmt.Sprintf("QEMU refuses %s: %s", e.Command, e.Desc) }

// Client talks to one QEMU. It is safe for concurrent use.
type Client struct {
	conn    net.Conn
	version Version
	onEvent func(Event)

	write chan struct{} // full while somebody writes: a wait for it ends with the waiter's context
	mu    sync.Mutex
	next  uint64
	waits map[uint64]chan message
	err   error
	gone  chan struct{}
}

// message is anything that QEMU sends.
type message struct {
	Greeting *struct {
		Version struct {
			QEMU    struct{ Major, Minor, Micro int } `json:"qemu"`
			Package string                            `json:"package"`
		} `json:"version"`
	} `json:"QMP"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	Event  string          `json:"event"`
	Data   json.RawMessage `json:"data"`
	ID     *uint64         `json:"id"`
}

// Connect waits for QEMU's greeting on conn, which is the client's from now on, also
// when it fails. events is called for each event, on the reading goroutine, so
// it must not wait for an answer; nil for none.
func Connect(ctx context.Context, conn net.Conn, events func(Event)) (*Client, error) {
	c := &Client{conn: conn, onEvent: events, write: make(chan struct{}, 1), waits: map[uint64]chan message{}, gone: make(chan struct{})}
	greeted := make(chan error, 1)
	go func() {
		s := bufio.NewScanner(conn)
		s.Buffer(make([]byte, 0, 4<<10), maxLine)
		err := c.greeting(s)
		greeted <- err
		if err == nil {
			err = c.read(s)
		}
		c.fail(err)
	}()
	var err error
	select {
	case err = <-greeted:
	case <-ctx.Done():
		err = fmt.Errorf("QEMU does not send its greeting on the control socket: %w", ctx.Err())
	}
	if err == nil {
		err = c.Run(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// greeting reads the first line.
func (c *Client) greeting(s *bufio.Scanner) error {
	m, err := next(s)
	if err != nil {
		return fmt.Errorf("QEMU did not send its greeting on the control socket: %w", err)
	}
	if m.Greeting == nil {
		return errors.New("QEMU's control socket did not begin with a greeting")
	}
	v := m.Greeting.Version
	c.version = Version{Major: v.QEMU.Major, Minor: v.QEMU.Minor, Micro: v.QEMU.Micro, Package: strings.TrimSpace(v.Package)}
	return nil
}

// next reads a message, passing over empty lines.
func next(s *bufio.Scanner) (message, error) {
	for s.Scan() {
		line := s.Bytes()
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return m, fmt.Errorf("a line of QEMU's control socket is not a message: %w: %.100q", err, line)
		}
		return m, nil
	}
	if err := s.Err(); err != nil {
		return message{}, err
	}
	return message{}, io.EOF
}

func (c *Client) read(s *bufio.Scanner) error {
	for {
		m, err := next(s)
		switch {
		case err != nil:
			return err
		case m.Event != "":
			if c.onEvent != nil {
				c.onEvent(Event{Name: m.Event, Data: m.Data})
			}
		case m.ID != nil:
			c.mu.Lock()
			ch := c.waits[*m.ID]
			delete(c.waits, *m.ID)
			c.mu.Unlock()
			if ch != nil {
				ch <- m
			}
		case m.Error != nil:
			// An error without a number answers what QEMU could not read.
			return fmt.Errorf("QEMU could not read a command: %s", m.Error.Desc)
		}
	}
}

// errGone is what the end of the stream means.
var errGone = errors.New("QEMU has closed its control socket")

// closed reports whether a read or a write failed because one side had closed the stream.
func closed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

func (c *Client) fail(err error) {
	if errors.Is(err, io.EOF) || closed(err) {
		err = errGone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	close(c.gone)
}

// Version is what the greeting said.
func (c *Client) Version() Version { return c.version }

// Gone is closed when the stream has ended.
func (c *Client) Gone() <-chan struct{} { return c.gone }

// Close ends the stream. It is idempotent.
func (c *Client) Close() error {
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Run runs a command and waits for its answer, which is put into result unless
// that is nil. A refusal is an *Error.
func (c *Client) Run(ctx context.Context, command string, arguments, result any) error {
	return c.run(ctx, command, arguments, result, nil)
}

// SendFile gives QEMU an open file, under a name that a later command uses (`migrate`
// with "fd:NAME"). The connection must be a unix socket.
func (c *Client) SendFile(ctx context.Context, name string, f *os.File) error {
	return c.run(ctx, "getfd", map[string]string{"fdname": name}, nil, f)
}

func (c *Client) run(ctx context.Context, command string, arguments, result any, f *os.File) error {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waits[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waits, id)
		c.mu.Unlock()
	}()
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        uint64 `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return fmt.Errorf("qmp: %s: %w", command, err)
	}
	if err := c.send(ctx, append(line, '\n'), f); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("telling QEMU %s: %w", command, err)
		}
		select { // why it is closed says more than that it is
		case <-c.gone:
			return fmt.Errorf("%s: %w", command, c.ended())
		default:
		}
		if closed(err) { // the reader has not noticed it yet
			err = errGone
		}
		return fmt.Errorf("telling QEMU %s: %w", command, err)
	}
	select {
	case m := <-answer:
		return m.into(command, result)
	case <-c.gone:
		select {
		case m := <-answer: // it came just before
			return m.into(command, result)
		default:
			return fmt.Errorf("%s: %w", command, c.ended())
		}
	case <-ctx.Done():
		return fmt.Errorf("QEMU does not answer %s: %w", command, ctx.Err())
	}
}

func (c *Client) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// send writes a line. QEMU that does not read lets the socket become full: then the
// context's end ends the stream, as half a line may have gone.
func (c *Client) send(ctx context.Context, line []byte, f *os.File) error {
	select {
	case c.write <- struct{}{}:
		defer func() { <-c.write }()
	case <-ctx.Done():
		return ctx.Err()
	}
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(late)
		_ = c.conn.SetWriteDeadline(time.Now())
	})
	err := c.put(line, f)
	if stop() {
		return err
	}
	<-late
	if err != nil {
		return errors.Join(fmt.Errorf("it does not listen: %w", ctx.Err()), c.Close())
	}
	return c.conn.SetWriteDeadline(time.Time{}) // it was written just before
}

func (c *Client) put(line []byte, f *os.File) error {
	if f == nil {
		_, err := c.conn.Write(line)
		return err
	}
	u, ok := c.conn.(*net.UnixConn)
	if !ok {
		return errors.New("file descriptors can only be sent over unix sockets")
	}
	_, _, err := u.WriteMsgUnix(line, unix.UnixRights(int(f.Fd())), nil)
	return err
}

func (m message) into(command string, result any) error {
	if m.Error != nil {
		m.Error.Command = command
		return m.Error
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Return, result); err != nil {
		return fmt.Errorf("QEMU's answer to %s: %w", command, err)
	}
	return nil
}
