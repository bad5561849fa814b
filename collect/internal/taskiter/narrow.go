package taskiter

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Narrow reports whether ScanProcess works here: from Linux 6.1 on.
func (it *Iter) Narrow() bool { return it.narrow }

// ScanProcess appends a record for every thread of one process of the set. It is for hosts
// with many more threads. The kernel's walk ends early if its current thread ends just then,
// so a missing thread may still exist; only Scan is complete.
func (it *Iter) ScanProcess(dst []Record, pid int) ([]Record, error) {
	if err := it.choose(); err != nil {
		return dst, err
	}
	fd, ok := it.one[pid]
	if !ok {
		var err error
		if fd, err = it.linkTo(pid); err != nil {
			it.Forget() // the caller may not have used the records of other processes
			return dst, fmt.Errorf("BPF task iterator: walk process %d: %w", pid, err)
		}
		if it.one == nil {
			it.one = map[int]int{}
		}
		it.one[pid] = fd
	}
	return it.walk(dst, fd)
}

// linkTo makes a link that walks one process: BPF_LINK_CREATE of bpf(2) with
// bpf_iter_link_info.task.pid, which link.AttachIter does not know.
func (it *Iter) linkTo(pid int) (int, error) {
	info := struct{ tid, pid, pidFD uint32 }{pid: uint32(pid)} //nolint:gosec // a process number
	attr := struct {
		prog, target, attach, flags uint32
		info                        unsafe.Pointer // a pointer to Go, so that it stays where it is
		_                           [8 - unsafe.Sizeof(uintptr(0))]byte
		size                        uint32
		_                           [36]byte
	}{
		prog:   uint32(it.parts.Programs["tasks"].FD()), //nolint:gosec // a descriptor
		attach: unix.BPF_TRACE_ITER,
		info:   unsafe.Pointer(&info), //nolint:gosec // an argument of bpf(2)
		size:   uint32(unsafe.Sizeof(info)),
	}
	fd, _, e := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)) //nolint:gosec // likewise
	runtime.KeepAlive(&attr)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}

// prune closes the links to processes that have left the set.
func (it *Iter) prune() {
	for pid, fd := range it.one {
		if it.words[uint(pid)/64%setWords]>>(uint(pid)%64)&1 == 0 {
			_ = unix.Close(fd) // nothing was written
			delete(it.one, pid)
		}
	}
}
