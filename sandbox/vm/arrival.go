package vm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"tare/agent/guest"
)

// arrival is the stream to a guest that has yet to connect. Reading and writing wait
// for it.
type arrival struct {
	l    *net.UnixListener
	once sync.Once

	mu     sync.Mutex
	conn   net.Conn
	err    error
	closed bool
}

// awaitGuest listens where cloud-hypervisor looks for the agent's port, in a directory for
// root alone.
func awaitGuest(dir string) (*arrival, error) {
	f, err := bound(dir, fmt.Sprintf("%s_%d", vsockFile, guest.VsockPort))
	if err != nil {
		return nil, err
	}
	l, err := net.FileListener(f) // of a copy
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	u := l.(*net.UnixListener) //nolint:forcetypeassert // it was made so
	u.SetUnlinkOnClose(false)  // its name is another process's; the directory goes whole
	return &arrival{l: u}, nil
}

// bound makes a listening socket with a name in a directory, however long that one's path
// is (108 bytes, unix(7)).
func bound(dir, name string) (*os.File, error) {
	d, err := os.Open(dir) //nolint:gosec // the machine's own
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	defer d.Close() //nolint:errcheck // nothing is written to it
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name)})
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a socket: %w", err), f.Close())
	}
	return f, nil
}

func (a *arrival) get() (net.Conn, error) {
	a.once.Do(func() {
		conn, err := a.l.Accept()
		_ = a.l.Close() // nobody else is to come
		a.mu.Lock()
		defer a.mu.Unlock()
		if err != nil {
			err = fmt.Errorf("the guest has not connected: %w", err)
		} else if a.closed {
			_ = conn.Close()
		}
		a.conn, a.err = conn, err
	})
	return a.conn, a.err
}

// Read waits for the guest and reads what it sends.
func (a *arrival) Read(p []byte) (int, error) {
	conn, err := a.get()
	if err != nil {
		return 0, err
	}
	return conn.Read(p)
}

// Write waits for the guest and sends to it.
func (a *arrival) Write(p []byte) (int, error) {
	conn, err := a.get()
	if err != nil {
		return 0, err
	}
	return conn.Write(p)
}

// leave ends the wait for a guest that can come no more. One that is here says its last
// words.
func (a *arrival) leave() { _ = a.l.Close() }

// Close ends the stream and the wait for it. It is idempotent.
func (a *arrival) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	err := ignoreClosed(a.l.Close())
	if a.conn != nil {
		err = errors.Join(err, a.conn.Close())
	}
	return err
}
