package vm

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/u-root/u-root/pkg/cpio"
)

// archive is an initramfs of one program.
func archive(t *testing.T, init string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := cpio.Newc.Writer(&b)
	for n, r := range []cpio.Record{
		cpio.Directory("dev", 0o755), cpio.CharDev("dev/console", 0o600, 5, 1), cpio.StaticFile("init", init, 0o755),
	} {
		r.Ino, r.NLink = uint64(n+1), 1
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := cpio.WriteTrailer(w); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hangs is a program that says something on the console and then sleeps for ever:
// elf(5), a header and one segment that is the whole file.
func hangs() string {
	const word, base, headers = "still here\n", 0x400000, 64 + 56
	code := append([]byte{
		0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, // eax = 1 (write), edi = 1
		0x48, 0x8d, 0x35, 16, 0, 0, 0, // rsi = rip + 16, behind the code
		0xba, byte(len(word)), 0, 0, 0, 0x0f, 0x05, // edx = its length; syscall
		0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7, // eax = 34 (pause); syscall; again
	}, word...)
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	for _, v := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base),
		uint64(headers + len(code)), uint64(headers + len(code)), uint64(4096),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes all
	}
	b.Write(code)
	return b.String()
}
