package oci

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
)

// oomWatch counts kills for memory in a version 1 control group that may be
// gone when one asks: when the kernel kills gVisor's sentry or the container's
// first process, the runtime removes the group, and its counter with it.
//
// Documentation/admin-guide/cgroup-v1/memory.rst, "OOM Control": an eventfd
// registered on memory.oom_control is signalled on each kill, and once when the
// group is removed. A signal while the group is still there is a kill.
//
// With version 2 the counter of the parent has everything, and a nil *oomWatch,
// which counts nothing, will do.
type oomWatch struct {
	events *os.File
	kills  atomic.Int64
	done   chan struct{} // closed when there is nothing more to hear
}

// watchOOM returns nil where the group has no such file.
func watchOOM(h *cgroup.Hierarchy, rel string) *oomWatch {
	dir, ok := h.Path("memory", rel)
	if !ok {
		return nil
	}
	control, err := os.Open(filepath.Join(dir, "memory.oom_control")) //nolint:gosec // a cgroup file
	if err != nil {
		return nil
	}
	defer control.Close() //nolint:errcheck // the registration stays
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &oomWatch{events: os.NewFile(uintptr(fd), "eventfd"), done: make(chan struct{})}
	line := fmt.Sprintf("%d %d", fd, control.Fd())
	if err := os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(line), 0); err != nil {
		_ = w.events.Close()
		return nil
	}
	go w.follow(dir)
	return w
}

func (w *oomWatch) follow(dir string) {
	defer close(w.done)
	for {
		n, err := w.read()
		if err != nil {
			return
		}
		if _, err := os.Stat(dir); err == nil {
			w.kills.Add(n)
			continue
		}
		// It is gone, and the signal of that is among those read or still to come: the
		// kernel sends it a little later.
		_ = w.events.SetReadDeadline(time.Now().Add(removalLate))
		more, err := w.read()
		if err != nil {
			more = 0
		}
		w.kills.Add(n + more - 1)
		return
	}
}

// removalLate is how long after a group's removal its signal may come.
const removalLate = 100 * time.Millisecond

func (w *oomWatch) read() (int64, error) {
	buf := make([]byte, 8)
	if _, err := w.events.Read(buf); err != nil {
		return 0, err
	}
	return int64(binary.NativeEndian.Uint64(buf)), nil //nolint:gosec // a small count
}

func (w *oomWatch) count() int64 {
	if w == nil {
		return 0
	}
	return w.kills.Load()
}

// more reports whether there were kills beyond so many. It is asked when
// something has just ended by force, and waits for what follow has not read yet.
func (w *oomWatch) more(than int64) bool {
	if w == nil {
		return false
	}
	end := time.NewTimer(2 * removalLate)
	defer end.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for w.count() <= than {
		select {
		case <-w.done:
			return w.count() > than
		case <-end.C:
			return w.count() > than
		case <-tick.C:
		}
	}
	return true
}

// close ends the watch. It is idempotent.
func (w *oomWatch) close() {
	if w != nil {
		_ = w.events.Close()
	}
}

// launchWatch watches for an out-of-memory kill in a container that runs one command. The
// runtime makes the container's group at some time of the launch; inotify(7) tells when,
// so that nothing runs beside a launch that is timed.
type launchWatch struct {
	c      *container
	dir    string        // the container's group
	made   *os.File      // tells of groups that are made beside it
	done   chan struct{} // closed when the group was found, or is not looked for any more
	watch  *oomWatch
	before uint64
}

// watchLaunch is to be called before the runtime is; the zero limit needs no watch.
func (c *container) watchLaunch() *launchWatch {
	if c.spec.MemoryLimit == 0 {
		return nil
	}
	l := &launchWatch{c: c, done: make(chan struct{})}
	l.before, _ = c.group.OOMKills()
	var ok bool
	if l.dir, ok = c.hierarchy.Path("memory", c.cgroup()); ok {
		l.made = watchMade(filepath.Dir(l.dir))
	}
	if l.made == nil { // then the counter of tare/NAME has to do
		close(l.done)
		return l
	}
	go l.find()
	return l
}

// watchMade returns a file that can be read when a directory was made in dir, or
// nil where that cannot be told.
func watchMade(dir string) *os.File {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "inotify")
}

func (l *launchWatch) find() {
	defer close(l.done)
	events := make([]byte, 4<<10)
	for _, err := os.Stat(l.dir); err != nil; _, err = os.Stat(l.dir) {
		if _, err := l.made.Read(events); err != nil {
			return
		}
	}
	l.watch = watchOOM(l.c.hierarchy, l.c.cgroup())
}

// soFar tells whether the kernel has killed for memory in the container, while its
// group is still there.
func (l *launchWatch) soFar() bool {
	if l == nil {
		return false
	}
	kills, err := l.c.hierarchy.Open(l.c.cgroup()).OOMKills()
	return err == nil && kills > 0
}

// killed ends the watch and tells whether the kernel has killed for memory. It
// is asked before the group tare/NAME is removed; unless late signals may be
// waited for, only what is known already counts.
func (l *launchWatch) killed(wait bool) bool {
	if l == nil {
		return false
	}
	if l.made != nil {
		_ = l.made.Close()
	}
	<-l.done
	defer l.watch.close()
	if now, err := l.c.group.OOMKills(); err == nil && now > l.before {
		return true
	}
	if !wait {
		return l.watch.count() > 0
	}
	return l.watch.more(0)
}
