package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/procstat"
)

// record is one process. The number alone does not name it, for numbers are used again; the
// start time does, and it outlives execve.
type record struct {
	Name  string
	PID   int
	Start uint64 // clock ticks since the boot: field 22 of proc_pid_stat(5)
	Boot  string // the host's boot, for ticks begin again
}

// newRecord is the record of this process.
func newRecord(name string) (record, error) {
	p, err := procstat.Read("/proc", os.Getpid())
	if err != nil {
		return record{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return record{name, p.PID, p.Start, strings.TrimSpace(string(boot))}, err
}

// save writes the record: whole or not at all.
func (r record) save(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// alive says whether that very process still runs. A zombie does not run.
func (r record) alive() bool {
	fd, err := r.open()
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	// A pidfd can be read when its process has ended.
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
	return err == nil && n == 0
}

// open returns a pidfd of the process. It is an error if another process has the number.
func (r record) open() (int, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return -1, err
	}
	if strings.TrimSpace(string(boot)) != r.Boot {
		return -1, os.ErrProcessDone
	}
	return procstat.Process{PID: r.PID, Start: r.Start}.Open()
}

// kill kills the process, if it still runs.
func (r record) kill() error {
	fd, err := r.open()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot kill %s, process %d: %w", r.Name, r.PID, err)
	}
	return nil
}
