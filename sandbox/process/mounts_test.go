package process

import (
	"net"
	"os"
	"runtime"
	"testing"
)

// TestLoopback: a process without a network reaches itself at 127.0.0.1, as in a container.
func TestLoopback(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		err := enterNetwork("")
		if err == nil {
			var l net.Listener
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
				defer l.Close()
				_, err = net.Dial("tcp", l.Addr().String())
			}
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
