// Package tinyelf makes the smallest static programs that a sandbox can run: one reports
// that it runs and ends, the other waits forever. So the workloads startup and density
// measure the sandbox, not the start of a language runtime in it (Go's costs about 1 ms and
// 2 MiB).
//
// The data path: 1. the machine code of one architecture is listed below; 2. it gets an ELF
// header and one loadable segment; 3. rootfs writes it into the tree as /tare-hello and
// /tare-pause.
//
// The layout is that of elf(5): a 64-byte file header, one 56-byte program
// header, and the code, all in one page that is mapped readable and executable.
// There are no sections: neither the kernel nor gVisor's loader reads them.
package tinyelf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
)

const (
	fileHeader    = 64
	programHeader = 56
	base          = 0x400000 // where every static executable has traditionally been linked
)

// Hello returns the program that writes "x\n" to standard output and exits with
// 0, for the architecture that this binary was built for.
func Hello() ([]byte, error) { return HelloFor(runtime.GOARCH) }

// Pause returns the program that writes "x\n" to standard output and sleeps until a signal
// ends it. The first process of a PID namespace ends only by a SIGKILL from outside:
// pid_namespaces(7).
func Pause() ([]byte, error) { return PauseFor(runtime.GOARCH) }

// HelloFor is Hello for a GOARCH.
func HelloFor(arch string) ([]byte, error) {
	switch arch {
	case "amd64": // system call numbers of arch/x86/entry/syscalls/syscall_64.tbl
		return wrap(amd64, []byte{
			0xb8, 1, 0, 0, 0, // mov eax, 1 (write)
			0xbf, 1, 0, 0, 0, // mov edi, 1 (standard output)
			0x48, 0x8d, 0x35, 16, 0, 0, 0, // lea rsi, [rip+16] (the text)
			0xba, 2, 0, 0, 0, // mov edx, 2 (its length)
			0x0f, 0x05, // syscall
			0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
			0x31, 0xff, // xor edi, edi
			0x0f, 0x05, // syscall
			'x', '\n',
		}), nil
	case "arm64": // system call numbers of include/uapi/asm-generic/unistd.h
		return wrap(arm64, append(words(
			0xd2800020, // mov x0, #1 (standard output)
			0x100000e1, // adr x1, +28 (the text)
			0xd2800042, // mov x2, #2 (its length)
			0xd2800808, // mov x8, #64 (write)
			0xd4000001, // svc #0
			0xd2800000, // mov x0, #0
			0xd2800ba8, // mov x8, #93 (exit)
			0xd4000001, // svc #0
		), 'x', '\n')), nil
	}
	return nil, unsupported(arch)
}

// PauseFor is Pause for a GOARCH.
func PauseFor(arch string) ([]byte, error) {
	switch arch {
	case "amd64":
		return wrap(amd64, []byte{
			0xb8, 1, 0, 0, 0, // mov eax, 1 (write)
			0xbf, 1, 0, 0, 0, // mov edi, 1 (standard output)
			0x48, 0x8d, 0x35, 16, 0, 0, 0, // lea rsi, [rip+16] (the text)
			0xba, 2, 0, 0, 0, // mov edx, 2 (its length)
			0x0f, 0x05, // syscall
			0xb8, 34, 0, 0, 0, // mov eax, 34 (pause)
			0x0f, 0x05, // syscall
			0xeb, 0xf7, // jmp 9 back: a handled signal, a stop and continue end the call
			'x', '\n',
		}), nil
	case "arm64": // has no pause; ppoll of nothing, without a time limit
		return wrap(arm64, append(words(
			0xd2800020, // mov x0, #1 (standard output)
			0x10000181, // adr x1, +48 (the text)
			0xd2800042, // mov x2, #2 (its length)
			0xd2800808, // mov x8, #64 (write)
			0xd4000001, // svc #0
			0xd2800000, // mov x0, #0
			0xd2800001, // mov x1, #0
			0xd2800002, // mov x2, #0
			0xd2800003, // mov x3, #0
			0xd2800004, // mov x4, #0
			0xd2800928, // mov x8, #73 (ppoll)
			0xd4000001, // svc #0
			0x17fffff9, // b 7 back
		), 'x', '\n')), nil
	}
	return nil, unsupported(arch)
}

func unsupported(arch string) error {
	return fmt.Errorf("tinyelf: no machine code for %s; build tare for amd64 or arm64", arch)
}

func words(ws ...uint32) []byte {
	var b []byte
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// The machine numbers e_machine of elf(5).
const (
	amd64 = 62
	arm64 = 183
)

func wrap(machine uint16, code []byte) []byte {
	size := uint64(fileHeader + programHeader + len(code))
	var b bytes.Buffer
	put := func(vs ...any) {
		for _, v := range vs {
			_ = binary.Write(&b, binary.LittleEndian, v) // a bytes.Buffer does not fail
		}
	}
	put([16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1})    // 64 bits, little-endian, version 1
	put(uint16(2), machine, uint32(1))             // executable
	put(uint64(base + fileHeader + programHeader)) // entry
	put(uint64(fileHeader), uint64(0))             // program headers, section headers
	put(uint32(0), uint16(fileHeader), uint16(programHeader), uint16(1))
	put(uint16(0), uint16(0), uint16(0))
	put(uint32(1), uint32(5)) // PT_LOAD, readable and executable
	put(uint64(0), uint64(base), uint64(base), size, size)
	put(uint64(0x10000)) // arm64 kernels may have pages of 64 KiB
	b.Write(code)
	return b.Bytes()
}
