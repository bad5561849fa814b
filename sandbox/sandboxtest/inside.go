package sandboxtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
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
func whoami() error {
	groups, err := os.Getgroups()
	dir, derr := os.Getwd()
	out, oerr := os.OpenFile("/dev/stdout", os.O_WRONLY, 0)
	status, serr := os.ReadFile("/proc/self/status")
	if err := errors.Join(err, derr, oerr, serr); err != nil {
		return err
	}
	_, caps, _ := strings.Cut(string(status), "CapEff:")
	caps, _, _ = strings.Cut(caps, "\n")
	_, err = fmt.Fprintln(out, os.Getuid(), os.Getgid(), groups, dir, os.Getenv("GIVEN"), strings.Trim(caps, " \t0") == "")
	return err
}

// spin uses one core for a time, and prints the CPU time that it was given, in
// milliseconds.
func spin(text string, stdout io.Writer) error {
	d, err := time.ParseDuration(text)
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
	var u unix.Rusage
	if err := errors.Join(err, unix.Getrusage(unix.RUSAGE_SELF, &u)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, (u.Utime.Nano()+u.Stime.Nano())/1e6)
	return err
}

// eat touches as many MiB of memory, and prints how many it got.
func eat(mebibytes string, stdout io.Writer) error {
	n, err := strconv.Atoi(mebibytes)
	if err != nil {
		return err
	}
	var kept [][]byte
	for range n {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
	_, err = fmt.Fprintln(stdout, len(kept))
	return err
}

// leave starts a process that ignores SIGTERM, in its own session and without its parent's
// output, and prints its process id.
func leave(stdout io.Writer) error {
	cmd := exec.Command("/tare", "internal", "try", "stubborn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, cmd.Process.Pid)
	return err
}

// ready listens, and says so.
func ready(addr string, stdout io.Writer) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		_, _ = fmt.Fprintln(stdout, "ready")
	}
	return l, err
}

// listen answers one connection with a line.
func listen(addr string, stdout io.Writer) error {
	l, err := ready(addr, stdout)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the process ends
	c, err := l.Accept()
	if err == nil {
		_, err = io.WriteString(c, "hello from the other sandbox\n")
		_ = c.Close()
	}
	return err
}

// dial prints what a listener says.
func dial(addr string, stdout io.Writer) error {
	c, err := net.DialTimeout("tcp", addr, time.Minute) //nolint:gosec // the test names its other sandbox
	if err == nil {
		_, err = io.Copy(stdout, io.LimitReader(c, 1<<10))
		_ = c.Close()
	}
	return err
}

// alone connects to itself on the loopback address.
func alone() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the process ends
	c, err := net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// count answers each connection with how many there were.
func count(addr string, stdout io.Writer) error {
	l, err := ready(addr, stdout)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(c, n)
		_ = c.Close()
	}
}
