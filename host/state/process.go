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
	"strings"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
)

// Marker begins the environment variable of every process that was started for a sandbox.
const Marker = cgroup.Marker + "="

// process is a process that may be tare's. start distinguishes it from a later process with
// the same number.
type process struct {
	pid    int
	parent int
	start  uint64 // clock ticks after boot
	comm   string
	ended  bool // a zombie: its parent has not waited for it, so there is nothing to remove
}

// processes ends the processes that are in tare's control groups or have the marker. It
// searches again after killing, because one may have forked meanwhile.
func (c *cleaner) processes(ctx context.Context) {
	const rounds = 5
	if h, err := cgroup.Detect(); err == nil && !c.dry && !c.own {
		h.Open(cgroup.Top).Thaw()
	}
	reported := map[process]bool{}
	for range rounds {
		ours, unread := find("/proc", c.own)
		fresh := 0
		for _, p := range ours {
			if reported[p] {
				continue
			}
			reported[p] = true
			fresh++
			c.item(ctx, KindProcess, fmt.Sprintf("%d (%s)", p.pid, p.comm), func(ctx context.Context) error { return p.kill(ctx) })
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
func find(proc string, own bool) (ours []process, unread int) {
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
		p, err := readProcess(proc, pid)
		if err != nil || p.ended {
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
	slices.SortFunc(ours, func(a, b process) int { return a.pid - b.pid })
	return ours, unread
}

// lineage lists this process and those that started it, up to the first.
func lineage() []int {
	var out []int
	for pid := os.Getpid(); pid > 0 && !slices.Contains(out, pid); {
		out = append(out, pid)
		p, err := readProcess("/proc", pid)
		if err != nil {
			break
		}
		pid = p.parent
	}
	return out
}

func readProcess(proc string, pid int) (process, error) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat")) //nolint:gosec // /proc
	if err != nil {
		return process{}, err
	}
	return parseStat(string(b))
}

// parseStat reads /proc/PID/stat (proc_pid_stat(5)). The name is in parentheses and may
// contain any character, including parentheses.
func parseStat(s string) (process, error) {
	open, shut := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 1 || shut < open {
		return process{}, errors.New("stat: no name in parentheses")
	}
	f := strings.Fields(s[shut+1:])
	const status, parent, threads, start = 0, 4 - 3, 20 - 3, 22 - 3 // fields are counted from 1; the state is the third
	if len(f) <= start {
		return process{}, fmt.Errorf("stat: %d fields after the name, want more than %d", len(f), start)
	}
	p := process{comm: s[open+1 : shut]}
	// A first thread that has ended is a zombie while others of its process go on.
	p.ended = f[status] == "X" || f[status] == "Z" && (f[threads] == "1" || f[threads] == "0")
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(s[:open]))
	p.parent, errs[1] = strconv.Atoi(f[parent])
	p.start, errs[2] = strconv.ParseUint(f[start], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return process{}, fmt.Errorf("stat: %w", err)
	}
	return p, nil
}

// kill ends the process and waits for its end. It opens the descriptor first and compares
// the start time then, so that a signal never reaches another process with the same number.
func (p process) kill(ctx context.Context) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("killing: %w%s", err, rootHint(err))
	}
	defer func() { _ = unix.Close(fd) }()
	now, err := readProcess("/proc", p.pid)
	if err != nil || now.start != p.start {
		return nil // ended meanwhile
	}
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
