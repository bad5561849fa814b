package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/u-root/u-root/pkg/cpio"
)

// bareInit is the least that a kernel can start as /init: a program of two system
// calls that says bareWord on the console and then sleeps.
func bareInit() []byte {
	code := []byte{
		0xb8, 1, 0, 0, 0, // mov eax, 1 (write)
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0x48, 0x8d, 0x35, 16, 0, 0, 0, // lea rsi, [rip+16]: the word behind the code
		0xba, byte(len(bareWord)), 0, 0, 0, // mov edx, its length
		0x0f, 0x05, // syscall
		0xb8, 34, 0, 0, 0, // mov eax, 34 (pause)
		0x0f, 0x05, // syscall
	}
	code = append(append(code, 0xeb, 0xf7), bareWord...) // jmp to the pause
	// elf(5): a header of 64 bytes, one segment that is the whole file.
	const base, headers = 0x400000, 64 + 56
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	for _, v := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0), // EXEC, x86-64
		uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), // LOAD, read and execute
		uint64(headers + len(code)), uint64(headers + len(code)), uint64(4096),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes all
	}
	b.Write(code)
	return b.Bytes()
}

// bareWord is what the init says.
const bareWord = "tare: bare init\n"

// writeBare writes the initramfs that holds nothing else.
func writeBare(file string) (err error) {
	f, err := os.Create(file) //nolint:gosec // in our own directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := cpio.Newc.Writer(f)
	for i, r := range []cpio.Record{
		cpio.Directory("dev", 0o755), cpio.CharDev("dev/console", 0o600, 5, 1), cpio.StaticFile("init", string(bareInit()), 0o755),
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
		if console = append(console, buf[:n]...); bytes.Contains(console, []byte(bareWord[:len(bareWord)-1])) {
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
