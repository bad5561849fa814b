package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/rootfs"
	"tare/host/spawn"
)

// tagRoot is the tag of the share, and the serial of the disk, that is the root. Those of the
// volumes are the volumes' names, so no volume is called root.
const tagRoot = "root"

// virtiofsd is the daemon that this host has. There are two: QEMU's own in C, until
// QEMU 7.2, and its successor in Rust, with other arguments.
type virtiofsd struct {
	path string
	rust bool
}

// findVirtiofsd looks where distributions have it, which is not on PATH.
func findVirtiofsd(ctx context.Context) (virtiofsd, error) {
	for _, name := range []string{"/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd", "virtiofsd"} {
		path, ok := rootfs.Lookup(name)
		if !ok {
			continue
		}
		out, err := says(ctx, path, "--help")
		return virtiofsd{path: path, rust: strings.Contains(out, "--shared-dir")}, err
	}
	return virtiofsd{}, fmt.Errorf("this host has no virtiofsd, which rootfs = %s needs; apt-get install qemu-system-common (Debian 12) or virtiofsd (later), or set rootfs = %s", rootVirtiofs, rootBlock)
}

// args are the daemon's arguments. One thread and the cache mode are Kata's; the bound of
// open files is what this process may hand on, as raising it needs CAP_SYS_RESOURCE.
func (v virtiofsd) args(dir string) ([]string, error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, err
	}
	out := []string{"--fd=3", "--thread-pool-size=1", fmt.Sprintf("--rlimit-nofile=%d", min(files.Max, 1_000_000))}
	if v.rust {
		return append(out, "--log-level=warn", "--cache=auto", "--announce-submounts", "--shared-dir="+dir), nil
	}
	source := strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(dir)
	return append(out, "-o", "log_level=warn", "-o", "cache=auto", "-o", "announce_submounts", "-o", "source="+source), nil
}

// share is a directory that a virtiofsd serves to a machine.
type share struct {
	tag    string
	qemu   *os.File // QEMU's end of its socket; nil with a name
	socket string   // the socket's name, for who takes no open one
	proc   *spawn.Process
	cmd    *exec.Cmd
	said   spawn.Tail
	stderr *spawn.Sink
}

// opens makes a daemon's listening socket, and the end of it that is handed on: client is nil
// where the other side is to look for a name.
type opens func() (listener, client *os.File, name string, err error)

// handed opens one without a name. own is a directory of the sandbox's own, in which nothing
// stays.
func handed(own string) opens {
	return func() (listener, client *os.File, _ string, err error) {
		listener, client, err = connected(own)
		return listener, client, "", err
	}
}

// named opens one with a name in a directory for root alone.
func named(dir, name string) opens {
	return func() (listener, _ *os.File, _ string, err error) {
		listener, err = bound(dir, name)
		return listener, nil, name, err
	}
}

// serve starts the daemon for a directory. prepare, if not nil, puts mounts on it that
// only the daemon sees.
// The returned share is not nil if the process was started.
func (v virtiofsd) serve(tag, dir string, open opens, name string, opts spawn.Options, prepare func() error) (_ *share, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	args, err := v.args(dir)
	if err != nil {
		return nil, err
	}
	s := &share{tag: tag, cmd: exec.Command(v.path, args...)} //nolint:gosec // the host's own program
	listener, qemu, socket, err := open()
	if err != nil {
		return nil, err
	}
	defer listener.Close() //nolint:errcheck // the daemon has it
	s.qemu, s.socket = qemu, socket
	s.cmd.ExtraFiles = []*os.File{listener}
	s.cmd.Env = append(os.Environ(), spawn.Marker+"="+name)
	if s.stderr, err = spawn.NewSink(&s.said, nil); err != nil {
		return nil, errors.Join(err, s.handedOver())
	}
	s.cmd.Stdout, s.cmd.Stderr = s.stderr.Child, s.stderr.Child
	if prepare != nil {
		opts.Private, opts.Prepare = true, prepare
	}
	s.proc, err = spawn.Start(opts, s.cmd)
	s.stderr.Started()
	if err != nil {
		s.stderr.Close()
		return nil, errors.Join(err, s.handedOver())
	}
	return s, nil
}

// connected makes a listening socket and one that is connected to it already. Nobody else
// can connect: its name is in a directory for root alone, made in own, and both are gone
// when connected returns. The name goes through an open file, so that no path is too
// long (108 bytes, unix(7)).
func connected(own string) (listener, client *os.File, err error) {
	private, err := os.MkdirTemp(own, "fs-") // mode 0700
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	var open []*os.File
	defer func() {
		err = errors.Join(err, os.RemoveAll(private))
		if err == nil {
			return
		}
		for _, f := range open {
			_ = f.Close()
		}
		listener, client = nil, nil
	}()
	dir, err := os.Open(private) //nolint:gosec // made just now
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	defer dir.Close() //nolint:errcheck // nothing is written to it
	var fds [2]int
	for i := range fds {
		if fds[i], err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return nil, nil, fmt.Errorf("making a socket: %w", err)
		}
		open = append(open, os.NewFile(uintptr(fds[i]), "socket"))
	}
	addr := &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/s", dir.Fd())}
	for _, step := range []func() error{
		func() error { return unix.Bind(fds[0], addr) },
		func() error { return unix.Listen(fds[0], 1) },
		func() error { return unix.Connect(fds[1], addr) },
	} {
		if err := step(); err != nil {
			return nil, nil, fmt.Errorf("connecting a socket: %w", err)
		}
	}
	return open[0], open[1], nil
}

// explain adds what the daemon said if it has failed. It ends by itself with the
// machine, which is not a failure.
func (s *share) explain(err error) error {
	select {
	case <-s.proc.Done():
		if s.cmd.ProcessState.Success() {
			return err
		}
		s.stderr.Drain(time.Second)
		return fmt.Errorf("virtiofsd for %s has ended (%s)%s: %w", s.tag, s.cmd.ProcessState, spawn.Says(&s.said), err)
	default:
		return err
	}
}

// handedOver closes the end that is QEMU's.
func (s *share) handedOver() error {
	if s.qemu == nil {
		return nil
	}
	return ignoreClosed(s.qemu.Close())
}

// close ends the daemon. It is idempotent.
func (s *share) close(ctx context.Context) error {
	_ = s.handedOver()
	select {
	case <-s.proc.Done():
	default:
		_ = s.cmd.Process.Kill()
	}
	select {
	case <-s.proc.Done():
	case <-ctx.Done():
		return fmt.Errorf("virtiofsd, process %d, does not end: %w", s.proc.Pid, ctx.Err())
	}
	s.stderr.Close()
	return nil
}
