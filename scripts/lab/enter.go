package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tare/host/network"
)

// enter reads an entry, enters what it names and becomes its command. It runs on a thread
// that stays locked: namespaces belong to threads, and execve keeps those of its caller.
func enter(in *os.File) error {
	runtime.LockOSThread()
	e, rest, err := readEntry(in)
	if err != nil {
		return err
	}
	for _, file := range e.Groups {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			return fmt.Errorf("cannot enter a control group: %w", err)
		}
	}
	if e.Record != "" {
		r, err := newRecord(strings.TrimSuffix(filepath.Base(e.Record), ".json"))
		if err != nil {
			return err
		}
		if err := r.save(e.Record); err != nil {
			return err
		}
	}
	if err := e.namespaces(); err != nil {
		return err
	}
	if err := unix.Dup3(int(rest.Fd()), 0, 0); err != nil {
		return err
	}
	if e.Record != "" {
		// The lock was held until here, so that down waits until the record is there.
		unix.CloseOnExec(lockFD)
	}
	return fmt.Errorf("cannot start %s: %w", e.Command[0], unix.Exec(e.Command[0], e.Command, e.Env))
}

// Descriptors that a daemon inherits.
const (
	lockFD     = 3
	listenerFD = 4 // the first; others follow
)

// namespaces enters the network namespace and those of mounts and control groups, in this order:
// the files of the first are seen from the host's mounts.
func (e entry) namespaces() error {
	set := func(file string, kind int) error {
		f, err := os.Open(file) //nolint:gosec // setns checks that it is a namespace
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := unix.Setns(int(f.Fd()), kind); err != nil {
			return fmt.Errorf("cannot enter the namespace %s: %w; run as root", file, err)
		}
		return nil
	}
	if e.Net != "" {
		if err := set(e.Net, unix.CLONE_NEWNET); err != nil {
			return err
		}
	}
	if e.Node != nil {
		return e.Node.make()
	}
	if e.Like == 0 {
		return nil
	}
	// A thread shares its root and working folder with the others until now; setns refuses that.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	like := filepath.Join("/proc", strconv.Itoa(e.Like), "ns")
	if err := set(filepath.Join(like, "cgroup"), unix.CLONE_NEWCGROUP); err != nil {
		return err
	}
	return set(filepath.Join(like, "mnt"), unix.CLONE_NEWNS)
}

// readEntry reads the JSON at the beginning of standard input. What follows it is the
// command's own standard input.
func readEntry(in *os.File) (entry, *os.File, error) {
	var e entry
	all, err := io.ReadAll(in)
	if err != nil {
		return e, nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(all)))
	if err := d.Decode(&e); err != nil {
		return e, nil, fmt.Errorf("enter is for this program itself: %w", err)
	}
	if len(e.Command) == 0 {
		return e, nil, errors.New("enter is for this program itself: no command")
	}
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return e, nil, err
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err := f.Write(all[d.InputOffset():]); err != nil {
		return e, nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return e, f, err
}

// forward passes on what connects to the listeners that it inherited, on the host's loopback, to
// addresses in the network namespace of the control plane, one for each listener. It ends with the first that ends.
func forward(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	ended := make(chan error, len(args))
	for i, to := range args[1:] {
		listener, err := net.FileListener(os.NewFile(uintptr(listenerFD+i), "listener"))
		if err != nil {
			return fmt.Errorf("forward is for this program itself: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		go func() { ended <- accept(listener, args[0], to) }()
	}
	return <-ended
}

// accept passes on what connects to one listener.
func accept(listener net.Listener, namespace, to string) error {
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = c.Close() }()
			if err := pass(c, namespace, to); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

// pass carries one connection, until both ends have ended it.
func pass(c net.Conn, namespace, address string) error {
	var to net.Conn
	err := network.Enter(namespace, func() (err error) {
		to, err = net.Dial("tcp", address) //nolint:gosec // the one that up gave
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, to}, {to, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // either end may break it off
			if t, ok := way[1].(*net.TCPConn); ok {
				_ = t.CloseWrite()
			}
		})
	}
	both.Wait()
	return nil
}
