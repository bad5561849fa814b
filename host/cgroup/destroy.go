package cgroup

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
	"time"

	"golang.org/x/sys/unix"
)

// Destroy kills every process in the group and below, and removes the groups,
// the deepest first, in every tree; then the parents that are empty, "tare"
// included. It tries until ctx ends; then the error names the processes that are left. It
// is idempotent: a group that does not exist is not an error. It refuses if this process is in
// the group.
func (g *Group) Destroy(ctx context.Context) error {
	if g.rel != Top {
		if err := checkRel(g.rel); err != nil {
			return err
		}
	}
	pause := time.Millisecond
	for first := true; ; first = false {
		pids, err := g.Procs()
		if err != nil {
			return err
		}
		if slices.Contains(pids, os.Getpid()) {
			return fmt.Errorf("cgroup: this process is in %s itself; move it out before destroying the group", g.rel)
		}
		if len(pids) > 0 {
			g.kill(pids, first)
		}
		err = g.remove()
		if err == nil {
			g.h.pruneParents(g.rel)
			return nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("cgroup: removing %s: %w; %s", g.rel, err, refusal(err))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cgroup: removing %s: %w (%w)%s", g.rel, err, ctx.Err(), describe(pids))
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// kill ends the processes: with cgroup.kill if it exists; else one by one, after it has
// forbidden new ones and thawed the frozen ones, which do not see signals on version 1.
func (g *Group) kill(pids []int, first bool) {
	for _, t := range g.h.trees {
		if t.v2 {
			// Linux 5.14: kills the whole subtree, forks included, frozen or not.
			_ = g.h.write(filepath.Join(g.h.dir(t, g.rel), "cgroup.kill"), "1")
		}
	}
	if first {
		g.each("pids.max", "0")
	}
	g.Thaw()
	for _, pid := range pids {
		g.killOne(pid)
	}
}

// Thaw lets the frozen groups below run again (version 1). A process in a
// frozen one does not see a signal, not even SIGKILL. On version 2 it does.
func (g *Group) Thaw() { g.each("freezer.state", "THAWED") }

// each writes a control file in all groups below that have it. It ignores errors: the
// caller checks which processes are left.
func (g *Group) each(file, value string) {
	for _, t := range g.h.trees {
		_ = g.h.walk(t, g.rel, func(dir string) error {
			_ = g.h.write(filepath.Join(dir, file), value)
			return nil
		})
	}
}

// killOne sends SIGKILL through a descriptor, after checking that the process
// which the descriptor holds is in the group: its number may have gone to
// another since it was read.
func (g *Group) killOne(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) && g.holds(pid) { // before Linux 5.3
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if g.holds(pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// holds reads from /proc whether a process is in this group or below. The path there
// begins at this process's cgroup namespace, or at the real root, so rel may follow a
// prefix.
func (g *Group) holds(pid int) bool {
	if g.h.Version == None {
		return g.marks(pid)
	}
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && strings.Contains(f[2]+"/", "/"+g.rel+"/") {
			return true
		}
	}
	return false
}

// remove removes the directories, children first. It tries all and returns the first error.
func (g *Group) remove() error {
	if g.h.Version == None {
		if left, err := g.marked(); err != nil || len(left) > 0 {
			return errors.Join(err, unix.EBUSY)
		}
		return nil
	}
	var failed error
	for _, t := range g.h.trees {
		var dirs []string
		if err := g.h.walk(t, g.rel, func(dir string) error { dirs = append(dirs, dir); return nil }); err != nil {
			return err
		}
		for _, dir := range slices.Backward(dirs) {
			if err := ignoreGone(g.h.rmdir(dir)); err != nil && failed == nil {
				failed = &fs.PathError{Op: "rmdir", Path: dir, Err: err}
			}
		}
	}
	return failed
}

// describe says which processes are left and what state they are in: one in D
// waits for the kernel and cannot be killed until that ends.
func describe(pids []int) string {
	var b strings.Builder
	for i, pid := range pids {
		if i == 5 {
			fmt.Fprintf(&b, " and %d more", len(pids)-i)
			break
		}
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		head, tail, _ := strings.Cut(string(stat), ") ")
		_, comm, _ := strings.Cut(head, "(")
		state, _, _ := strings.Cut(tail, " ")
		fmt.Fprintf(&b, "; process %d (%s) is in state %s", pid, comm, state)
	}
	return b.String()
}
