// Package taskiter reads CPU time, run-queue wait and name of all threads of chosen processes
// with one system call: a BPF task iterator (Documentation/bpf/bpf_iterators.rst), for
// kernels from 5.8 on that describe their types (CONFIG_DEBUG_INFO_BTF).
//
// The data path: 1. a Loader looks up once where this kernel keeps the fields,
// assembles a program of some forty instructions and loads it: no compiler, no
// object file, any processor; 2. the caller puts processes into the Iter's set,
// a bit for each; 3. Scan makes the kernel call the program for every thread of the host,
// and reads the records that it wrote for those of the set; 4. parse parses them.
//
// The figures are the fields of /proc/PID/task/TID/schedstat. Process numbers are those of
// the initial PID namespace; Load reads the calling thread and returns an error if /proc has
// other numbers. Nothing is pinned: the program, its link and its map end with their
// descriptors, also if the process is killed.
package taskiter

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/collect/internal/ktype"
)

// Loader loads the program. It caches the kernel's types, about 4 MB, which take 60 ms of CPU
// to read, so each Load after the first takes 0.4 ms. The zero value is ready; it is safe for
// concurrent use.
type Loader struct {
	once    sync.Once
	types   *btf.Cache
	program asm.Instructions
	err     error
}

func (l *Loader) prepare() {
	l.types = btf.NewCache()
	spec, err := l.types.Kernel()
	if err != nil {
		l.err = explain(err)
		return
	}
	at, err := findLayout(spec)
	if err != nil {
		l.err = fmt.Errorf("the kernel's types: %w", err)
		return
	}
	l.program = program(at)
}

// setWords is the size of the set of processes. A process has the bit of its number modulo
// 65536, which one lookup in a fixed array finds. The reader separates processes that share
// a bit.
const setWords = 1024

// Iter is a loaded program and its set of processes. It is not safe for
// concurrent use.
type Iter struct {
	parts  *ebpf.Collection
	link   *link.Iter
	words  [setWords + 1]uint64 // the set and the salt
	stale  bool                 // words are not yet in the kernel
	one    map[int]int          // descriptors of links that walk one process
	narrow bool
	buf    []byte
}

// bufSize is twice what the kernel returns at once, with pages of 4 KiB.
const bufSize = 64 << 10

// Load loads the program, with an empty set, and tries it on the calling thread. The error
// tells the user why this host has no iterator.
func (l *Loader) Load() (_ *Iter, err error) {
	l.once.Do(l.prepare)
	if l.err != nil {
		return nil, l.err
	}
	it := &Iter{buf: make([]byte, bufSize)}
	it.Forget()
	defer func() {
		if err != nil {
			err = errors.Join(explain(err), it.Close())
		}
	}()
	it.parts, err = ebpf.NewCollectionWithOptions(&ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			setName:  {Name: "tare_pids", Type: ebpf.Array, KeySize: 4, ValueSize: atSalt + 8, MaxEntries: 1},
			seenName: {Name: "tare_seen", Type: ebpf.Array, KeySize: 4, ValueSize: slots * 8, MaxEntries: 1},
		},
		Programs: map[string]*ebpf.ProgramSpec{"tasks": {
			Name: "tare_tasks", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "task",
			// The kernel provides the helper bpf_seq_write only to programs under the GPL, so these
			// few instructions are under the GPL too.
			License: "Dual MIT/GPL", Instructions: l.program,
		}},
	}, ebpf.CollectionOptions{Cache: l.types})
	if err != nil {
		return nil, fmt.Errorf("load: %w", nameless(err))
	}
	if it.link, err = link.AttachIter(link.IterOptions{Program: it.parts.Programs["tasks"]}); err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	return it, it.try()
}

// nameless removes the name of the map or program from an error. Which map is made first is
// random, and the reason is compared between results.
func nameless(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

// explain adds the usual causes to an error.
func explain(err error) error {
	if told := ktype.Refused(err, btf.ErrNotSupported, fs.ErrNotExist); told != nil {
		return told
	}
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, btf.ErrNotFound) {
		return fmt.Errorf("the kernel has no BPF task iterator (Linux 5.8): %w", err)
	}
	return err
}

// Add puts a process into the set, and Clear empties it. The kernel sees the
// change at the next Scan.
func (it *Iter) Add(pid int) {
	word, bit := uint(pid)/64%setWords, uint64(1)<<(uint(pid)%64)
	if it.words[word]&bit == 0 {
		it.words[word] |= bit
		it.stale = true
	}
}

// Clear empties the set. Scan still knows which threads have not run.
func (it *Iter) Clear() {
	clear(it.words[:setWords])
	it.stale = true
}

// Forget makes the next Scan give full records of all threads. The salt is
// above every run time (2^56 ns are two years), so that no slot has it yet.
func (it *Iter) Forget() {
	it.words[setWords] = (it.words[setWords]>>56%255 + 1) << 56
	it.stale = true
}

// Scan appends a record for every thread of the set's processes, and perhaps of some others,
// in the order of thread numbers. After an error the records are incomplete, and the next
// Scan gives full records of all threads.
func (it *Iter) Scan(dst []Record) ([]Record, error) {
	if err := it.choose(); err != nil {
		return dst, err
	}
	return it.walk(dst, it.link.FD())
}

// choose passes the set to the kernel, if it has changed.
func (it *Iter) choose() error {
	if !it.stale {
		return nil
	}
	if err := it.parts.Maps[setName].Update(uint32(0), it.words[:], ebpf.UpdateAny); err != nil {
		return fmt.Errorf("BPF task iterator: choose processes: %w", err)
	}
	it.stale = false
	it.prune()
	return nil
}

func (it *Iter) walk(dst []Record, link int) (_ []Record, err error) {
	defer func() {
		if err != nil {
			it.Forget()
		}
	}()
	fd, err := create(link)
	if err != nil {
		return dst, fmt.Errorf("BPF task iterator: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // only read from
	for {
		n, err := unix.Read(fd, it.buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue // EAGAIN: a million threads in a row were not in the set
		case err != nil:
			return dst, fmt.Errorf("BPF task iterator: read: %w", err)
		case n == 0:
			return dst, nil
		}
		if dst, err = parse(dst, it.buf[:n]); err != nil {
			return dst, err
		}
	}
}

// create begins a walk: the BPF_ITER_CREATE of bpf(2), without the os.File that
// link.Iter.Open makes of it.
func create(link int) (int, error) {
	attr := struct{ link, flags uint32 }{link: uint32(link)}                                                          //nolint:gosec // a descriptor
	fd, _, e := unix.Syscall(unix.SYS_BPF, unix.BPF_ITER_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)) //nolint:gosec // the argument of bpf(2)
	runtime.KeepAlive(&attr)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}

// Close unloads the program. It is idempotent, and safe on nil.
func (it *Iter) Close() error {
	if it == nil {
		return nil
	}
	var err error
	for pid, fd := range it.one {
		err = errors.Join(err, unix.Close(fd))
		delete(it.one, pid)
	}
	if it.link != nil {
		err = errors.Join(err, it.link.Close())
		it.link = nil
	}
	if it.parts != nil {
		it.parts.Close()
		it.parts = nil
	}
	return err
}
