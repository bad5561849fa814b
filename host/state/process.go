package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
	"tare/internal/procstat"
)

// Marker begins the environment variable of every process that was started for a sandbox.
const Marker = cgroup.Marker + "="

// processes ends the processes that are in tare's control groups or have the marker. It
// searches again after killing, because one may have forked meanwhile.
func (c *cleaner) processes(ctx context.Context) {
	const rounds = 5
	if h, err := cgroup.Detect(); err == nil && !c.dry && !c.own {
		h.Open(cgroup.Top).Thaw()
	}
	reported := map[procstat.Process]bool{}
	for range rounds {
		ours, unread := find("/proc", c.own)
		fresh := 0
		for _, p := range ours {
			if reported[p] {
				continue
			}
			reported[p] = true
			fresh++
			c.item(ctx, KindProcess, fmt.Sprintf("%d (%s)", p.PID, p.Name), func(ctx context.Context) error { return kill(ctx, p) })
		}
		if c.dry || fresh == 0 {
			if unread > 0 && !c.own && os.Geteuid() != 0 {
				c.miss(fmt.Errorf("cannot inspect %d processes of other users; run as root", unread))
			}
			return
		}
	}
}

// find lists tare's processes in the order of their numbers, without this process and those
// that started it. unread counts the processes whose environment it may not read. Those of
// an ordinary user are found by the marker alone, since the control groups are root's; and by
// that user alone, since root does not see whether their run is alive.
func find(proc string, own bool) (ours []procstat.Process, unread int) {
	member := map[int]bool{}
	if h, err := cgroup.Detect(); err == nil && !own {
		for _, h := range h.Everywhere() {
			pids, _ := h.Open(cgroup.Top).Procs() // read errors are reported with the groups
			for _, pid := range pids {
				member[pid] = true
			}
		}
	}
	self := lineage()
	entries, _ := os.ReadDir(proc)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || slices.Contains(self, pid) {
			continue
		}
		p, err := procstat.Read(proc, pid)
		if err != nil || p.Ended {
			continue
		}
		env, err := os.ReadFile(filepath.Join(proc, e.Name(), "environ")) //nolint:gosec // /proc
		if errors.Is(err, fs.ErrPermission) {
			unread++
		}
		at, err := e.Info()
		if member[pid] || err == nil && uidOf(at) == os.Geteuid() && cgroup.Marked(env, "") {
			ours = append(ours, p)
		}
	}
	slices.SortFunc(ours, func(a, b procstat.Process) int { return a.PID - b.PID })
	return ours, unread
}

// lineage lists this process and those that started it, up to the first.
func lineage() []int {
	var out []int
	for pid := os.Getpid(); pid > 0 && !slices.Contains(out, pid); {
		out = append(out, pid)
		p, err := procstat.Read("/proc", pid)
		if err != nil {
			break
		}
		pid = p.Parent
	}
	return out
}

// kill ends the process and waits for its end.
func kill(ctx context.Context, p procstat.Process) error {
	fd, err := p.Open()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("killing: %w%s", err, rootHint(err))
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing: %w%s", err, rootHint(err))
	}
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20) //nolint:gosec // a descriptor fits
		if ready > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for its end: %w", err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it does not end after SIGKILL: %w; it hangs in the kernel, or is frozen (see its cgroup)", ctx.Err())
		}
	}
}
