package sandboxtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel tells the running kernel apart from others: by its version, and by the start of the
// machine, where it says (gVisor does not).
func kernel() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return fmt.Sprintf("%s %s %s", unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]), strings.TrimSpace(string(boot))), nil
}

// whoami writes to /dev/stdout: user, group, further groups, directory, $GIVEN and effective
// capabilities.
func whoami(stderr io.Writer) int {
	groups, err := os.Getgroups()
	dir, derr := os.Getwd()
	out, oerr := os.OpenFile("/dev/stdout", os.O_WRONLY, 0)
	status, serr := os.ReadFile("/proc/self/status")
	if err := errors.Join(err, derr, oerr, serr); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	_, caps, _ := strings.Cut(string(status), "CapEff:")
	caps, _, _ = strings.Cut(caps, "\n")
	_, _ = fmt.Fprintln(out, os.Getuid(), os.Getgid(), groups, dir, os.Getenv("GIVEN"), strings.Trim(caps, " \t0") == "")
	return 0
}

// spin uses one core for d, and prints the CPU time that it was given, in
// milliseconds.
func spin(d time.Duration, stdout io.Writer) int {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 1
	}
	_, _ = fmt.Fprintln(stdout, (u.Utime.Nano()+u.Stime.Nano())/1e6)
	return 0
}

// leave starts a process that ignores SIGTERM, in its own session and without its parent's
// output, and prints its process id.
func leave(stdout, stderr io.Writer) int {
	cmd := exec.Command("/tare", "internal", "try", "stubborn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	_, _ = fmt.Fprintln(stdout, cmd.Process.Pid)
	return 0
}

// listen answers one connection with a line.
func listen(addr string, stdout, stderr io.Writer) int {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	defer l.Close() //nolint:errcheck // the process ends
	_, _ = fmt.Fprintln(stdout, "ready")
	c, err := l.Accept()
	if err == nil {
		_, err = io.WriteString(c, "hello from the other sandbox\n")
		_ = c.Close()
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// dial prints what a listener says.
func dial(addr string, stdout, stderr io.Writer) int {
	c, err := net.DialTimeout("tcp", addr, time.Minute) //nolint:gosec // the test names its other sandbox
	if err == nil {
		_, err = io.Copy(stdout, io.LimitReader(c, 1<<10))
		_ = c.Close()
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// alone connects to itself on the loopback address.
func alone(stderr io.Writer) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		defer l.Close() //nolint:errcheck // the process ends
		var c net.Conn
		if c, err = net.DialTimeout("tcp", l.Addr().String(), 5*time.Second); err == nil {
			err = c.Close()
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// count answers each connection with how many there were.
func count(addr string, stdout, stderr io.Writer) int {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	_, _ = fmt.Fprintln(stdout, "ready")
	for n := 1; ; n++ {
		c, err := l.Accept()
		if err != nil {
			_, _ = fmt.Fprintln(stderr, err)
			return 1
		}
		_, _ = fmt.Fprintln(c, n)
		_ = c.Close()
	}
}
