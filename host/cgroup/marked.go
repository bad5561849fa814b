package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Marker is the environment variable with a sandbox's name that each of its processes starts
// with.
const Marker = "TARE_SANDBOX"

// Marked reports whether an environ file (proc_pid_environ(5)) has the marker of a sandbox, or
// of any if the name is "". Text within another variable does not count.
func Marked(env []byte, name string) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if of, ok := bytes.CutPrefix(v, []byte(Marker+"=")); ok && len(of) > 0 && (name == "" || string(of) == name) {
			return true
		}
	}
	return false
}

// marked lists the processes of a group where there are no trees, in rising order: those with
// the marker of its sandbox, and their descendants.
func (g *Group) marked() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("cgroup: processes of %s: %w", g.rel, err)
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && g.marks(pid) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out, nil
}

// marks reports whether a process, or one that it descends from, has the marker of the group's
// sandbox: gVisor empties the environment of the processes that run the sandbox's code. The
// path is tare/NAME/.... A process that has ended, or is not this user's, has none.
func (g *Group) marks(pid int) bool {
	_, below, _ := strings.Cut(g.rel, "/")
	name, _, _ := strings.Cut(below, "/")
	for pid > 1 && pid != os.Getpid() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return false
		}
		if Marked(env, name) {
			return true
		}
		pid = parent(pid)
	}
	return false
}

// parent reads the parent's number from /proc/PID/stat: "PID (COMM) STATE PPID ...", where COMM
// may hold spaces and parentheses. It is 0 of a process that has ended.
func parent(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 || string(f[0]) == "Z" {
		return 0
	}
	n, _ := strconv.Atoi(string(f[1]))
	return n
}
