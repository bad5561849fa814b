package guest

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// reapEvery bounds how often the processes are looked through: many ends of
// commands in a row are one look.
const reapEvery = time.Second

// reap takes away what orphans leave when they end: they became children of the
// first process. The agent waits for its own commands, and their exit status must
// not be taken from it; a process of its own for the agent would cost the program's
// start twice, which is long without hardware virtualization. What tells them
// apart is that the agent starts each command as the leader of a process group
// in its own session; an orphan that is one too stays a zombie, which costs
// nothing but its number.
func reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	own, err := unix.Getsid(0) // 0: the kernel's first process has none
	if err != nil {
		return
	}
	for range ended {
		time.Sleep(reapEvery)
		entries, err := os.ReadDir("/proc")
		if err != nil {
			continue
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
			if err != nil {
				continue
			}
			if p, ok := parseStat(string(b)); ok && p.orphan(os.Getpid(), own) {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
	}
}

// process is what reap needs of proc_pid_stat(5).
type process struct {
	pid, parent, group, session int
	state                       byte
}

// orphan says whether it has ended, is a child of the process of that number and
// session, and was not started by it.
func (p process) orphan(parent, session int) bool {
	command := p.pid == p.group && p.session == session
	return p.state == 'Z' && p.parent == parent && !command
}

// parseStat reads the first fields of /proc/PID/stat, as in
//
//	812 (sleep (1)) Z 1 812 0 0 -1 4228364 ...
func parseStat(s string) (process, bool) {
	open, shut := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 0 || shut < open {
		return process{}, false
	}
	f := strings.Fields(s[shut+1:])
	if len(f) < 4 || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{state: f[0][0]}
	for _, n := range []struct {
		to   *int
		text string
	}{{&p.pid, strings.TrimSpace(s[:open])}, {&p.parent, f[1]}, {&p.group, f[2]}, {&p.session, f[3]}} {
		v, err := strconv.Atoi(n.text)
		if err != nil {
			return process{}, false
		}
		*n.to = v
	}
	return p, true
}
