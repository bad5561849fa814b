package agent

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/procstat"
)

// Processes that a command leaves behind, in any session or group, become children of the
// agent. The agent ends them with the command. Their children then become the agent's, and
// so on until all are gone. The agent kills and reaps only children, because their process
// ids cannot be reused before that.
//
// If several commands run, the agent cannot tell which one left an orphan. It spares the
// orphan while a command runs that began before it. Rejected: a variable in the environment
// (it moves the stack of the measured program, and a program may drop it), a process in
// between (one more start for each command), control groups (most sandboxes cannot make
// them).
//
// An orphan that forks and exits faster than the agent looks escapes here. The end of the
// sandbox, which kills by control group or namespace, ends it.

// reapEvery bounds how often the agent looks for orphans that ended by themselves.
const reapEvery = time.Second

// sweepWithin bounds a sweep: a process in an uninterruptible sleep outlives any signal.
const sweepWithin = 2 * time.Second

// adopt makes the agent the parent of orphans, and reaps those that end.
func (s *server) adopt() (stop func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil && os.Getpid() != 1 {
		return nil, fmt.Errorf("agent: cannot become the parent of processes that commands leave behind: %w", err)
	}
	// The client's end may close while a command writes. That must be an error of the
	// write, not a signal that ends the agent before it has ended its commands.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, unix.SIGPIPE)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
			case <-done:
				return
			}
			select { // one look covers many ends in a row
			case <-time.After(reapEvery):
			case <-done:
				return
			}
			s.mu.Lock()
			for _, pid := range s.orphans(true) {
				reap(pid)
			}
			s.mu.Unlock()
		}
	}()
	return func() { signal.Stop(ended); close(done) }, nil
}

// sweep ends orphans: all of them, or those that no running command can have left.
func (s *server) sweep(all bool) {
	wait := 50 * time.Microsecond
	for end := time.Now().Add(sweepWithin); ; {
		s.mu.Lock()
		found := s.orphans(all)
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			reap(pid)
		}
		s.mu.Unlock()
		if len(found) == 0 && (!all || !anyChild()) || time.Now().After(end) {
			return
		}
		time.Sleep(wait)
		wait = min(2*wait, 5*time.Millisecond)
	}
}

func reap(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }

// anyChild reports whether there is a child; commands count too.
func anyChild() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// orphans are the children that are not commands. Without all, they are only those that
// began before every running command. s.mu is held.
func (s *server) orphans(all bool) []int {
	if !anyChild() { // the usual case
		return nil
	}
	var commands []int
	for _, c := range s.running {
		if !c.reaped {
			commands = append(commands, c.Process.Pid)
		}
	}
	found := slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(commands, pid) })
	if all || len(found) == 0 || len(commands) == 0 {
		return found
	}
	var oldest uint64
	for i, pid := range commands {
		if p, err := procstat.Read("/proc", pid); err == nil && (i == 0 || p.Start < oldest) {
			oldest = p.Start
		}
	}
	return slices.DeleteFunc(found, func(pid int) bool {
		p, err := procstat.Read("/proc", pid)
		return err != nil || p.Start >= oldest
	})
}

// children are those of this process. Most kernels list them in a file for each thread,
// which is cheap even if there are many processes: proc_tid_children(5).
func children() (pids []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		b, ferr := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err = ferr; err != nil {
			break
		}
		for f := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if err == nil {
		return pids
	}
	pids = nil
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := os.Getpid()
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, err := procstat.Read("/proc", pid); err == nil && p.Parent == self {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
