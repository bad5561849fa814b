package oci

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"tare/internal/cgroup"
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
	w := &oomWatch{events: os.NewFile(uintptr(fd), "eventfd")}
	line := fmt.Sprintf("%d %d", fd, control.Fd())
	if err := os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(line), 0); err != nil {
		_ = w.events.Close()
		return nil
	}
	go w.follow(dir)
	return w
}

func (w *oomWatch) follow(dir string) {
	buf := make([]byte, 8)
	for {
		if _, err := w.events.Read(buf); err != nil {
			return
		}
		n := int64(binary.NativeEndian.Uint64(buf)) //nolint:gosec // a small count
		_, err := os.Stat(dir)
		if err != nil {
			n-- // the removal
		}
		w.kills.Add(n)
		if err != nil {
			return
		}
	}
}

func (w *oomWatch) count() int64 {
	if w == nil {
		return 0
	}
	return w.kills.Load()
}

// close ends the watch. It is idempotent.
func (w *oomWatch) close() {
	if w != nil {
		_ = w.events.Close()
	}
}
