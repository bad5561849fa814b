// Package callcount counts the system calls of chosen processes and of all their
// descendants, even short-lived ones. It uses three BPF programs of a few instructions at raw
// tracepoints of the kernel (Documentation/trace/tracepoints.rst, Documentation/bpf/). It
// assembles them for the running kernel, without a compiler or object file.
//
// The data path: 1. a Loader looks up once where the kernel keeps a task's process
// number; 2. Load loads the programs and attaches them; 3. Add puts a process into
// the map of followed processes; from then on sched_process_fork adds its children before
// they run, and sched_process_exit removes ended processes; 4. sys_enter adds one for the
// end and the number of each call; 5. Read sums over the processors.
//
// Every system call of the machine is a little slower while this is attached. Nothing is
// pinned: everything ends with its descriptors, also if the process is killed.
package callcount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/collect/internal/ktype"
)

// Loader loads the programs. It caches the kernel's types. The zero value is ready; it is
// safe for concurrent use.
type Loader struct {
	once sync.Once
	at   layout
	err  error
}

func (l *Loader) prepare() {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		l.err = explain(err)
		return
	}
	l.at, l.err = findLayout(spec)
}

// Counter is the loaded programs and their maps. It is not safe for concurrent
// use.
type Counter struct {
	parts *ebpf.Collection
	links []link.Link
	buf   [][MaxEndpoints * slots]uint64 // by processor
}

// Load loads and attaches the programs, tries them on this process, and follows no process
// yet. The error tells the user why this host cannot count calls.
func (l *Loader) Load() (_ *Counter, err error) {
	l.once.Do(l.prepare)
	if l.err != nil {
		return nil, l.err
	}
	c := &Counter{}
	defer func() {
		if err != nil {
			err = errors.Join(explain(err), c.Close())
		}
	}()
	if c.parts, err = ebpf.NewCollection(spec(l.at)); err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // without the name of what was loaded first, which is random
		}
		return nil, fmt.Errorf("load: %w", err)
	}
	for _, name := range []string{"sched_process_exit", "sched_process_fork", "sys_enter"} {
		at, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: c.parts.Programs[name]})
		if err != nil {
			return nil, fmt.Errorf("attach to the tracepoint %s: %w", name, err)
		}
		c.links = append(c.links, at)
	}
	return c, c.try()
}

// try counts a known number of calls of this process.
func (c *Counter) try() error {
	const made, endpoint = 100, MaxEndpoints - 1
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.Add(os.Getpid(), endpoint, true); err != nil {
		return err
	}
	for range made {
		_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	if err := c.parts.Maps[endpointsName].Delete(uint32(os.Getpid())); err != nil { //nolint:gosec // a process number
		return errors.New("BPF sees different process IDs: this process is in its own PID namespace, such as a container's")
	}
	got, err := c.Read()
	if err != nil {
		return err
	}
	if n := got[endpoint].Calls[unix.SYS_GETPPID]; n == 0 {
		return errors.New("BPF sees different process IDs: this process is in its own PID namespace, such as a container's")
	} else if n < made {
		return fmt.Errorf("BPF counted %d of %d calls of getppid", n, made)
	}
	return c.clear()
}

// clear removes all processes, such as one forked during try, and resets the counts.
func (c *Counter) clear() error {
	var pid, v uint32
	var pids []uint32
	for it := c.parts.Maps[endpointsName].Iterate(); it.Next(&pid, &v); {
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		_ = c.parts.Maps[endpointsName].Delete(pid) // it may have ended
	}
	clear(c.buf)
	if err := c.parts.Maps[countsName].Update(uint32(0), c.buf, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("clear the counts: %w", err)
	}
	return nil
}

// explain adds the usual causes to an error.
func explain(err error) error {
	if told := ktype.Refused(err, btf.ErrNotSupported); told != nil {
		return told
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("the kernel has no tracepoint of system calls that BPF can use (CONFIG_FTRACE_SYSCALLS, Linux 4.17; CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	return err
}

// Add follows a process of an endpoint, which is below MaxEndpoints. Its own calls count only if
// counts is set. The calls of children that it makes from now on always count.
func (c *Counter) Add(pid, endpoint int, counts bool) error {
	if endpoint < 0 || endpoint >= MaxEndpoints {
		return fmt.Errorf("end %d is out of range: there is room for %d ends", endpoint, MaxEndpoints)
	}
	v := uint32(2 * endpoint)
	if counts {
		v |= 1
	}
	if err := c.parts.Maps[endpointsName].Update(uint32(pid), v, ebpf.UpdateAny); err != nil { //nolint:gosec // a process number
		return fmt.Errorf("follow process %d: %w", pid, err)
	}
	return nil
}

// Follows reports whether a process is followed already.
func (c *Counter) Follows(pid int) bool {
	var v uint32
	return c.parts.Maps[endpointsName].Lookup(uint32(pid), &v) == nil //nolint:gosec // a process number
}

// Counts are the calls of one endpoint since Load.
type Counts struct {
	Calls [slots - 2]uint64 // by number
	Lost  uint64            // calls whose number is beyond the table, and processes for which the map had no room
}

// Read returns the counts of all ends.
func (c *Counter) Read() (*[MaxEndpoints]Counts, error) {
	if c == nil || c.parts == nil {
		return nil, os.ErrClosed
	}
	if err := c.parts.Maps[countsName].Lookup(uint32(0), &c.buf); err != nil {
		return nil, fmt.Errorf("read the counts: %w", err)
	}
	out := new([MaxEndpoints]Counts)
	for i := range c.buf {
		for endpoint := range out {
			words := c.buf[i][endpoint*slots : (endpoint+1)*slots]
			for nr := range out[endpoint].Calls {
				out[endpoint].Calls[nr] += words[nr]
			}
			out[endpoint].Lost += words[lostFork] + words[lostCall]
		}
	}
	return out, nil
}

// Close unloads the programs. It is idempotent, and safe on nil.
func (c *Counter) Close() error {
	if c == nil {
		return nil
	}
	var err error
	for _, l := range c.links {
		err = errors.Join(err, l.Close())
	}
	c.links = nil
	if c.parts != nil {
		c.parts.Close()
		c.parts = nil
	}
	return err
}
