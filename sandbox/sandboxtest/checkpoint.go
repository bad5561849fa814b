package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/sandbox"
)

// checkpoint: a sandbox that is saved and restored remembers, answers at the same
// address, and leaves nothing; nor does one that never gets ready again.
func (s *suite) checkpoint(t *testing.T) {
	k, ok := s.kind.(sandbox.Checkpointer)
	if !ok {
		t.Skip("this kind cannot save a sandbox")
	}
	if err := k.CheckCheckpoint(t.Context()); err != nil {
		t.Skip(err)
	}
	bridge, err := network.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	}()
	// tried saves and restores one command, with arguments in the place of a program that counts.
	tried := func(ctx context.Context, ready func(context.Context, netip.AddrPort) error, args ...string) (sandbox.Saved, error) {
		spec := s.spec(t)
		spec.Upper = upper(t)
		if spec.Network, err = bridge.Attach(spec.Name); err != nil {
			t.Fatal(err)
		}
		addr := netip.AddrPortFrom(spec.Network.Addr.Addr(), 5201)
		if len(args) == 0 {
			args = []string{"/tare", "internal", "try", "count", addr.String()}
		}
		got, err := k.Checkpoint(ctx, spec, sandbox.Command{Args: args}, func(ctx context.Context) error { return ready(ctx, addr) })
		if err := bridge.Detach(spec.Name); err != nil {
			t.Error(err)
		}
		return got, err
	}
	never := func(ctx context.Context, _ netip.AddrPort) error {
		<-ctx.Done()
		return ctx.Err()
	}

	var heard []string
	got, err := tried(t.Context(), func(ctx context.Context, addr netip.AddrPort) error {
		line, err := ask(ctx, bridge, addr)
		heard = append(heard, line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Its memory came back: it goes on counting. An answer may have been lost when the
	// connection came in too early, and then it was asked again.
	if len(heard) != 2 || counted(heard[0]) < 1 || counted(heard[1]) <= counted(heard[0]) {
		t.Errorf("it answered %q", heard)
	}
	if got.Cold <= 0 || got.Save <= 0 || got.Restore <= 0 || got.Bytes < 100<<10 {
		t.Errorf("%+v", got)
	}
	t.Logf("%+v", got)

	enough, times := errors.New("no answer is good enough"), 0
	_, err = tried(t.Context(), func(ctx context.Context, addr netip.AddrPort) error {
		if times++; times == 2 {
			return enough
		}
		_, err := ask(ctx, bridge, addr)
		return err
	})
	if !errors.Is(err, enough) || !strings.Contains(err.Error(), "restore") {
		t.Errorf("one that is never ready again gives %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err = tried(ctx, never); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that is not ready in time gives %v", err)
	}
	if _, err = tried(t.Context(), never, "/no-such-program"); err == nil || !strings.Contains(err.Error(), "ended before it was ready") {
		t.Errorf("one that ends gives %v", err)
	}
}

// ask connects from the bridge until there is an answer, and returns it.
func ask(ctx context.Context, bridge *network.Bridge, addr netip.AddrPort) (string, error) {
	for ctx.Err() == nil {
		if line, err := askOnce(bridge, addr); err == nil {
			return line, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "", fmt.Errorf("%s does not answer: %w", addr, ctx.Err())
}

func askOnce(bridge *network.Bridge, addr netip.AddrPort) (string, error) {
	fd, err := bridge.Socket()
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() //nolint:errcheck // read only
	wait := func(events int16) error {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 500) //nolint:gosec // a descriptor is small
		if err == nil && n == 0 {
			err = os.ErrDeadlineExceeded
		}
		return err
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()})
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return "", err
	}
	if err := wait(unix.POLLOUT); err != nil {
		return "", err
	}
	if err := wait(unix.POLLIN); err != nil {
		return "", err
	}
	b := make([]byte, 64)
	n, err := unix.Read(fd, b)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return string(b[:max(n, 0)]), err
}

// counted is the number that was answered, 0 if it is none.
func counted(answer string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(answer, "\n"))
	return n
}
