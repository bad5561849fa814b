package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/u-root/u-root/pkg/cpio"

	"tare/internal/tinyelf"
)

// writeBare writes the initramfs that holds the least that a kernel can start as /init: a program
// of two system calls that prints a line and then sleeps.
func writeBare(file string) (err error) {
	program, err := tinyelf.Pause()
	if err != nil {
		return err
	}
	f, err := os.Create(file) //nolint:gosec // in our own directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := cpio.Newc.Writer(f)
	for i, r := range []cpio.Record{
		cpio.Directory("dev", 0o755), cpio.CharDev("dev/console", 0o600, 5, 1), cpio.StaticFile("init", string(program), 0o755),
	} {
		r.Ino, r.NLink = uint64(i+1), 1
		if err := w.WriteRecord(r); err != nil {
			return err
		}
	}
	return cpio.WriteTrailer(w)
}

// bareBoot starts QEMU with nothing but a console and returns how long it took until
// the init spoke, in seconds.
func bareBoot(ctx context.Context, qemu string, args []string) (_ float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	args = append(strings.Fields("-nodefaults -no-user-config -display none -no-reboot -chardev stdio,id=console,signal=off -serial chardev:console"), args...)
	cmd := exec.CommandContext(ctx, qemu, args...) //nolint:gosec // the QEMU of this host
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var console []byte
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(buf)
		if console = append(console, buf[:n]...); bytes.Contains(append([]byte("\n"), console...), []byte("\nx\r")) {
			return time.Since(begun).Seconds(), nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("it ended")
			}
			return 0, fmt.Errorf("a machine with a bare init: %w: %s%s", err, tail(said.Bytes()), tail(console))
		}
	}
}
