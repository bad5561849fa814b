package proc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"tare/collect/internal/held"
	"tare/sandbox"
)

// Bounds that keep a fork bomb in a sandbox from taking the harness with it.
const (
	maxThreads = 16384
	maxArgs    = 4096 // bytes of a command line that roles are told from
)

// self is the scope index of this program.
const self = -1

// find lists all threads of the scopes, takes up the new ones, and retires
// those that have gone. A process belongs to the first scope that names it;
// cgroups come before pids, because they are exact.
func (p *probe) find() {
	p.lastFind = p.o.Now()
	p.gen++
	claimed := map[int]bool{}
	if p.o.Self > 0 {
		claimed[p.o.Self] = true
		p.findThreads(p.o.Self, self)
	}
	for i, s := range p.scopes {
		for _, cg := range s.Cgroups {
			// A cgroup that cannot be read has gone, and its threads with it.
			pids, _ := p.o.Members(cg)
			for _, pid := range pids {
				if !claimed[pid] {
					claimed[pid] = true
					p.findThreads(pid, i)
				}
			}
		}
	}
	for i, s := range p.scopes {
		queue := slices.Clone(s.Pids)
		for len(queue) > 0 && len(claimed) < maxThreads {
			pid := queue[0]
			queue = queue[1:]
			if claimed[pid] {
				continue
			}
			claimed[pid] = true
			p.findThreads(pid, i)
			queue = p.children(queue, pid)
		}
	}
	p.sweep()
	clear(p.parents)
}

// findThreads takes up the threads of one process.
func (p *probe) findThreads(pid, scope int) {
	dir := p.o.Root + "/" + strconv.Itoa(pid)
	comm, args := p.comm(dir), p.args(dir)
	pr := p.procs[pid]
	changed := false
	switch {
	case pr == nil:
		pr = &process{comm: comm, args: args}
		p.procs[pid] = pr
	case comm != "" && pr.comm != comm || len(args) > 0 && !slices.Equal(pr.args, args):
		// It has called exec: its threads may play other roles from now on.
		pr.comm, pr.args, changed = comm, args, true
	}
	pr.gen = p.gen
	for _, name := range list(dir + "/task") {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		id := threadID{pid, tid}
		t := p.threads[id]
		if t == nil {
			if t = p.newThread(id, scope, dir+"/task/"+name, pr.args); t == nil {
				continue
			}
		} else if changed || !t.settled {
			// Names are often set a moment after the thread began.
			t.settled = true
			p.classify(t, dir+"/task/"+name, pr.args)
		}
		t.gen = p.gen
	}
}

func (p *probe) newThread(id threadID, scope int, dir string, args []string) *thread {
	if len(p.order) >= maxThreads {
		return nil
	}
	f, err := held.Open(dir+"/schedstat", p.budget)
	if err != nil {
		return nil // ended meanwhile; or no descriptor free, then the next search tries again
	}
	t := &thread{id: id, scope: scope, file: f}
	p.classify(t, dir, args)
	p.threads[id] = t
	p.order = append(p.order, t)
	return t
}

// classify tells the thread's role and puts it into the sum of that role. What
// it used in another role before stays there.
func (p *probe) classify(t *thread, dir string, args []string) {
	comm := p.comm(dir)
	if comm == "" && t.sum != nil {
		return // ended meanwhile
	}
	role, end := sandbox.Harness, ""
	if t.scope != self {
		s := &p.scopes[t.scope]
		role, end = sandbox.Workload, s.End
		if s.Roles != nil {
			role = s.Roles(sandbox.Thread{Pid: t.id.pid, Tid: t.id.tid, Comm: comm, Args: args})
		}
	}
	if t.sum != nil && t.comm == comm && t.role == role {
		return
	}
	p.unlist(t)
	if to := p.sumOf(sumKey{role, end}); to != t.sum {
		if t.sum != nil {
			t.sum.keep(t)
			t.fromRun, t.fromWait = t.run, t.wait
		}
		t.sum = to
	}
	t.comm, t.role, t.end = comm, role, end
}

// sweep retires threads that the last search did not see.
func (p *probe) sweep() {
	for _, t := range p.order {
		if t.gen != p.gen {
			p.retire(t)
		}
	}
	p.compact()
	for pid, pr := range p.procs {
		if pr.gen != p.gen {
			delete(p.procs, pid)
		}
	}
}

func (p *probe) comm(dir string) string {
	b := p.slurp(dir + "/comm")
	// A thread may call itself anything but zero bytes; labels are UTF-8.
	return strings.ToValidUTF8(string(bytes.TrimSuffix(b, []byte("\n"))), "?")
}

func (p *probe) args(dir string) []string {
	return splitArgs(p.slurp(dir + "/cmdline"))
}

// splitArgs reads /proc/PID/cmdline: words that end in a zero byte.
func splitArgs(b []byte) []string {
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	parts := bytes.Split(b, []byte{0})
	out := make([]string, len(parts))
	for i := range parts {
		out[i] = string(parts[i])
	}
	return out
}

// slurp reads at most maxArgs bytes of a file; nil if it cannot be read.
func (p *probe) slurp(path string) []byte {
	f, err := os.Open(path) //nolint:gosec // under the injected root
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	if len(p.text) < maxArgs {
		p.text = make([]byte, maxArgs)
	}
	n, err := io.ReadFull(f, p.text[:maxArgs])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return p.text[:n]
}

// children appends the children of a process to dst.
// /proc/PID/task/TID/children (proc_pid_task(5), CONFIG_PROC_CHILDREN) lists
// those that this thread made; without it the parents of all processes are read
// once a search.
func (p *probe) children(dst []int, pid int) []int {
	dir := p.o.Root + "/" + strconv.Itoa(pid) + "/task"
	found := false
	for _, tid := range list(dir) {
		f, err := os.Open(dir + "/" + tid + "/children") //nolint:gosec // under the injected root
		if err != nil {
			continue
		}
		found = true
		b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
		_ = f.Close() // only read from
		dst = appendPids(dst, b)
	}
	if found {
		return dst
	}
	if len(p.parents) == 0 {
		p.readParents()
	}
	return append(dst, p.parents[pid]...)
}

func (p *probe) readParents() {
	if p.parents == nil {
		p.parents = map[int][]int{}
	}
	for _, name := range list(p.o.Root) {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if ppid, ok := parseParent(p.slurp(p.o.Root + "/" + name + "/stat")); ok {
			p.parents[ppid] = append(p.parents[ppid], pid)
		}
	}
}

// appendPids reads numbers with spaces between them, and stops at anything else.
func appendPids(dst []int, b []byte) []int {
	for {
		n, rest, ok := held.Uint(b)
		if !ok || n == 0 || n > 1<<22 { // PID_MAX_LIMIT
			return dst
		}
		dst = append(dst, int(n))
		b = rest
	}
}

// parseParent takes the parent from /proc/PID/stat: "PID (COMM) STATE PPID ...",
// where COMM may itself have spaces and parentheses.
func parseParent(b []byte) (int, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+4 > len(b) {
		return 0, false
	}
	n, _, ok := held.Uint(b[i+3:])
	if !ok || n > 1<<22 {
		return 0, false
	}
	return int(n), true
}

// list gives the names in a directory, nil when it has gone. Readdirnames, not
// ReadDir: the latter sorts and makes an entry for each.
func list(dir string) []string {
	f, err := os.Open(dir) //nolint:gosec // under the injected root
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	names, _ := f.Readdirnames(-1)
	return names
}
