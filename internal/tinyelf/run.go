package tinyelf

import (
	"runtime"
	"slices"
)

// RunReport is the length of what the program of Run writes, in bytes: two times of clock_gettime(2)
// with CLOCK_MONOTONIC (before fork and after wait4), and the status and the rusage of wait4(2),
// which begin at these offsets. RunError bytes come before it, an errno as a negative number, if the
// program could not be started.
const (
	RunReport = 192
	RunStatus = 32
	RunUsage  = 48
	RunError  = 8
)

// Run returns the program that runs its arguments as a program (a path and its arguments), waits
// for its end, writes a report of RunReport bytes to file descriptor 3, and exits with 0. It is the
// parent of a program that is to be measured: a process has the peak memory of the one that it was
// forked from, and that of this one is a few pages.
func Run() ([]byte, error) { return RunFor(runtime.GOARCH) }

// RunFor is Run for a GOARCH.
func RunFor(arch string) ([]byte, error) {
	switch arch {
	case "amd64":
		return wrap(amd64, runAMD64()), nil
	case "arm64":
		return wrap(arm64, runARM64()), nil
	}
	return nil, unsupported(arch)
}

func runAMD64() []byte {
	return []byte{
		0x49, 0x89, 0xe4, // mov r12, rsp (argc, the arguments, the environment)
		0x48, 0x81, 0xec, 0, 1, 0, 0, // sub rsp, 256 (the report)
		0xbf, 1, 0, 0, 0, // mov edi, 1 (CLOCK_MONOTONIC)
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xb8, 228, 0, 0, 0, // mov eax, 228 (clock_gettime)
		0x0f, 0x05, // syscall
		0xb8, 57, 0, 0, 0, // mov eax, 57 (fork)
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x74, 0x4f, // je child
		0x78, 0x7d, // js fail
		0x41, 0x89, 0xc5, // mov r13d, eax
		0x44, 0x89, 0xef, // again: mov edi, r13d
		0x48, 0x8d, 0x74, 0x24, 32, // lea rsi, [rsp+32] (the status)
		0x31, 0xd2, // xor edx, edx
		0x4c, 0x8d, 0x54, 0x24, 48, // lea r10, [rsp+48] (the rusage)
		0xb8, 61, 0, 0, 0, // mov eax, 61 (wait4)
		0x0f, 0x05, // syscall
		0x48, 0x83, 0xf8, 0xfc, // cmp rax, -4 (EINTR)
		0x74, 0xe4, // je again
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0x48, 0x8d, 0x74, 0x24, 16, // lea rsi, [rsp+16]
		0xb8, 228, 0, 0, 0, // mov eax, 228 (clock_gettime)
		0x0f, 0x05, // syscall
		0xbf, 3, 0, 0, 0, // mov edi, 3
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xba, 192, 0, 0, 0, // mov edx, 192
		0xb8, 1, 0, 0, 0, // mov eax, 1 (write)
		0x0f, 0x05, // syscall
		0x31, 0xff, // xor edi, edi
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x0f, 0x05, // syscall
		0xbf, 3, 0, 0, 0, // child: mov edi, 3
		0xbe, 2, 0, 0, 0, // mov esi, 2 (F_SETFD)
		0xba, 1, 0, 0, 0, // mov edx, 1 (FD_CLOEXEC)
		0xb8, 72, 0, 0, 0, // mov eax, 72 (fcntl)
		0x0f, 0x05, // syscall
		0x49, 0x8b, 0x7c, 0x24, 16, // mov rdi, [r12+16] (the first argument)
		0x49, 0x8d, 0x74, 0x24, 16, // lea rsi, [r12+16]
		0x49, 0x8b, 0x14, 0x24, // mov rdx, [r12] (argc)
		0x49, 0x8d, 0x54, 0xd4, 16, // lea rdx, [r12+rdx*8+16] (the environment)
		0xb8, 59, 0, 0, 0, // mov eax, 59 (execve)
		0x0f, 0x05, // syscall
		0x48, 0x89, 0x04, 0x24, // fail: mov [rsp], rax
		0xbf, 3, 0, 0, 0, // mov edi, 3
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xba, 8, 0, 0, 0, // mov edx, 8
		0xb8, 1, 0, 0, 0, // mov eax, 1 (write)
		0x0f, 0x05, // syscall
		0xbf, 127, 0, 0, 0, // mov edi, 127
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x0f, 0x05, // syscall
	}
}

// runARM64 was made by Go's assembler.
func runARM64() []byte {
	return slices.Concat(words(
		0x910003f3, // mov x19, sp
		0xd10403ff, // sub sp, sp, #256
		0xb24003e0, // mov x0, #1 (CLOCK_MONOTONIC)
		0x910003e1, // mov x1, sp
		0xd2800e28, // mov x8, #113 (clock_gettime)
		0xd4000001, // svc #0
		0xd2800220, // mov x0, #17 (SIGCHLD)
		0xaa1f03e1, // mov x1, #0
		0xaa1f03e2, // mov x2, #0
		0xaa1f03e3, // mov x3, #0
		0xaa1f03e4, // mov x4, #0
		0xd2801b88, // mov x8, #220 (clone)
		0xd4000001, // svc #0
		0xf100001f, // cmp x0, #0
		0x540002e0, // b.eq child
		0x5400042b, // b.lt fail
		0xaa0003f4, // mov x20, x0
		0xaa1403e0, // again: mov x0, x20
		0x910083e1, // add x1, sp, #32 (the status)
		0xaa1f03e2, // mov x2, #0
		0x9100c3e3, // add x3, sp, #48 (the rusage)
		0xd2802088, // mov x8, #260 (wait4)
		0xd4000001, // svc #0
		0xb100101f, // cmn x0, #4 (EINTR)
		0x54ffff20, // b.eq again
		0xb24003e0, // mov x0, #1
		0x910043e1, // add x1, sp, #16
		0xd2800e28, // mov x8, #113 (clock_gettime)
		0xd4000001, // svc #0
	), report(
		0xb27a07e2, // mov x2, #192
		0xaa1f03e0, // mov x0, #0
	), words(
		0xb24007e0, // child: mov x0, #3
		0xb27f03e1, // mov x1, #2 (F_SETFD)
		0xb24003e2, // mov x2, #1 (FD_CLOEXEC)
		0xd2800328, // mov x8, #25 (fcntl)
		0xd4000001, // svc #0
		0xf9400a60, // ldr x0, [x19, #16] (the first argument)
		0x91004261, // add x1, x19, #16
		0xf9400262, // ldr x2, [x19] (argc)
		0x8b020c22, // add x2, x1, x2, lsl #3 (the environment)
		0xd2801ba8, // mov x8, #221 (execve)
		0xd4000001, // svc #0
		0xf90003e0, // fail: str x0, [sp]
	), report(
		0xb27d03e2, // mov x2, #8
		0xb2401be0, // mov x0, #127
	))
}

// report is the code for arm64 that writes what lies on the stack to descriptor 3 and exits. length
// moves the length to x2, code the exit code to x0.
func report(length, code uint32) []byte {
	return words(
		0xb24007e0, // mov x0, #3
		0x910003e1, // mov x1, sp
		length,
		0xb27a03e8, // mov x8, #64 (write)
		0xd4000001, // svc #0
		code,
		0xd2800ba8, // mov x8, #93 (exit)
		0xd4000001, // svc #0
	)
}
