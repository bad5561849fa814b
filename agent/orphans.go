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
)

// What a command leaves behind, in whatever session or group, becomes a child of the agent.
// It is ended with the command: its children become the agent's in turn, and so on
// until nobody is left. Only children are killed and reaped: their numbers
// cannot be another's until then.
//
// Whose an orphan is nothing tells, if several commands run: it is spared while one runs
// that was there before it. Rejected: a variable in the environment (it moves the
// stack of what is measured, and a program may drop it), a process between (a
// start more for each command), control groups (none can be made in most sandboxes).
//
// An orphan that forks and ends faster than it is looked for gets away here; the
// end of the sandbox, which kills by control group or namespace, gets it.

// reapEvery bounds how often orphans that ended by themselves are looked for.
const reapEvery = time.Second

// sweepWithin bounds a sweep: a process in an uninterruptible sleep outlives any signal.
const sweepWithin = 2 * time.Second

// adopt makes the agent the parent of orphans, and takes away those that end.
func (s *server) adopt() (stop func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil && os.Getpid() != 1 {
		return nil, fmt.Errorf("agent: cannot become the parent of what commands leave behind: %w", err)
	}
	// The client's end may close while a command writes: that is an error of the
	// write, and no signal that ends the agent before it has ended its commands.
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
			select { // many ends in a row are one look
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

// sweep ends orphans: all, or those that no running command can have left.
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

// anyChild says whether there is one, commands among them.
func anyChild() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// orphans are the children that are no commands; without all, those that began before
// any command that runs. s.mu is held.
func (s *server) orphans(all bool) []int {
	if !anyChild() { // as a rule
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
		if p, ok := processOf(pid); ok && (i == 0 || p.began < oldest) {
			oldest = p.began
		}
	}
	return slices.DeleteFunc(found, func(pid int) bool {
		p, ok := processOf(pid)
		return !ok || p.began >= oldest
	})
}

// children are this process's. Most kernels have a file of them for each thread, which
// costs little where there are many processes: proc_tid_children(5).
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
			if p, ok := processOf(pid); ok && p.parent == self {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// process is what is needed of proc_pid_stat(5).
type process struct {
	parent int
	began  uint64 // ticks
}

func processOf(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseProcess(string(b))
}

// parseProcess reads /proc/PID/stat, as in
//
//	812 (sleep (1)) S 1 812 0 0 -1 4228364 131 0 0 0 0 0 0 0 20 0 1 0 3014 ...
func parseProcess(s string) (process, bool) {
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return process{}, false
	}
	parent, err := strconv.Atoi(f[1])
	began, err2 := strconv.ParseUint(f[19], 10, 64)
	if err != nil || err2 != nil {
		return process{}, false
	}
	return process{parent: parent, began: began}, true
}
