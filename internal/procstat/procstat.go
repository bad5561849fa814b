// Package procstat reads /proc/PID/stat (proc_pid_stat(5)), as in
//
//	812 (sleep (1)) S 1 812 0 0 -1 4228364 131 0 0 0 0 0 0 0 20 0 1 0 3014 ...
package procstat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is what is read of a process. Start distinguishes it from a later one with the same
// number; it outlives execve.
type Process struct {
	PID    int
	Parent int
	Start  uint64 // clock ticks after boot
	Name   string // of the program, cut
	Ended  bool   // a zombie: its parent has not waited for it, so there is nothing to remove
}

// Read reads a process of the proc file system at root: /proc.
func Read(root string, pid int) (Process, error) {
	b, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "stat")) //nolint:gosec // /proc
	if err != nil {
		return Process{}, err
	}
	return Parse(string(b))
}

// Parse reads the file's text. The name is in parentheses and may contain any character,
// including parentheses.
func Parse(s string) (Process, error) {
	open, shut := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 1 || shut < open {
		return Process{}, errors.New("stat: no name in parentheses")
	}
	f := strings.Fields(s[shut+1:])
	const status, parent, threads, start = 0, 4 - 3, 20 - 3, 22 - 3 // fields are counted from 1; the state is the third
	if len(f) <= start {
		return Process{}, fmt.Errorf("stat: %d fields after the name, want more than %d", len(f), start)
	}
	p := Process{Name: s[open+1 : shut]}
	// A first thread that has ended is a zombie while others of its process go on.
	p.Ended = f[status] == "X" || f[status] == "Z" && (f[threads] == "1" || f[threads] == "0")
	var errs [3]error
	p.PID, errs[0] = strconv.Atoi(strings.TrimSpace(s[:open]))
	p.Parent, errs[1] = strconv.Atoi(f[parent])
	p.Start, errs[2] = strconv.ParseUint(f[start], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return Process{}, fmt.Errorf("stat: %w", err)
	}
	return p, nil
}

// Open returns a pidfd of the process, by which a signal never reaches a later process with the same
// number. The error is os.ErrProcessDone if the process is gone.
func (p Process) Open() (fd int, err error) {
	fd, err = unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, os.ErrProcessDone
	}
	if err != nil {
		return -1, err
	}
	if now, err := Read("/proc", p.PID); err != nil || now.Start != p.Start {
		_ = unix.Close(fd)
		return -1, os.ErrProcessDone
	}
	return fd, nil
}
