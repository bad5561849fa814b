package proc

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Bounds that protect the harness from a fork bomb in a sandbox.
const (
	maxThreads = 16384
	maxArgs    = 4096 // bytes of a command line that are read to find roles
)

// self is the scope index of this program.
const self = -1

// Bounds of the cost of searches. A search that costs at most cheap is made at every
// reading. A more expensive one is made so rarely that it uses at most share of a processor,
// but at least every Options.Rescan.
const (
	cheap = 500 * time.Microsecond
	share = 0.005
)

// due reports whether this reading searches.
func (p *probe) due() bool {
	if p.cost <= cheap {
		return true
	}
	pause := time.Duration(float64(p.cost) / share)
	return p.o.Now()-p.lastFind >= min(pause, p.o.Rescan)
}

// search calls find and records its cost, smoothed: one expensive search, such as the first
// one of a starting workload, does not count in full.
func (p *probe) search() {
	before := p.o.Spent()
	p.find()
	p.cost += (p.o.Spent() - before - p.cost) / 4
}

// find lists the processes of the scopes, adds new ones and, when reading files, new threads,
// and retires those that have ended. A process belongs to the first scope that names it.
// Cgroups come before pids, because they are exact.
func (p *probe) find() {
	p.lastFind = p.o.Now()
	if p.full = p.gen == 0 || p.lastFind-p.rounds >= p.o.Rescan; p.full {
		p.rounds = p.lastFind
	}
	p.gen++
	clear(p.claimed)
	if p.o.Self > 0 {
		p.claimed[p.o.Self] = true
		p.take(p.o.Self, self, nil)
	}
	for i, s := range p.scopes {
		for _, cg := range s.Cgroups {
			// A cgroup that cannot be read is gone, with its threads.
			pids, _ := p.o.Members(cg)
			for _, pid := range pids {
				if !p.claimed[pid] {
					p.claimed[pid] = true
					p.take(pid, i, p.covers[i])
				}
			}
		}
	}
	for i, s := range p.scopes {
		for _, pid := range s.Alone {
			if !p.claimed[pid] {
				p.claimed[pid] = true
				p.take(pid, i, nil)
			}
		}
		queue := slices.Clone(s.Pids)
		for len(queue) > 0 && len(p.claimed) < maxThreads {
			pid := queue[0]
			queue = queue[1:]
			if p.claimed[pid] {
				continue
			}
			p.claimed[pid] = true
			p.take(pid, i, nil)
			queue = p.children(queue, pid)
		}
	}
	p.sweep()
	clear(p.parents)
}

// take adds one process: its threads now, or at the next scan.
func (p *probe) take(pid, scope int, c *cover) {
	if p.tasks != nil {
		p.follow(pid, scope, c)
	} else {
		p.findThreads(pid, scope, c)
	}
}

// findThreads adds the threads of one process.
func (p *probe) findThreads(pid, scope int, c *cover) {
	pr, changed := p.lookAt(pid)
	if pr == nil {
		return
	}
	pr.gen = p.gen
	if !p.full && !changed && !pr.unsettled && links(pr.tasks) == pr.live {
		return // the reading just made has retired the ended threads
	}
	pr.unsettled, pr.listed = false, p.gen
	for _, name := range list(pr.tasks) {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		id := threadID{pid, tid}
		t := p.threads[id]
		if t == nil {
			if t = p.newThread(id, scope, c, pr); t == nil {
				continue
			}
			pr.unsettled = true
		} else if p.full || changed || !t.settled {
			// A thread often gets its name a moment after its start.
			t.settled = true
			p.classify(t, p.comm(pr.tasks+"/"+name), pr.args)
		}
		t.gen = p.gen
	}
}

func (p *probe) path(pid int) string { return p.o.Root + "/" + strconv.Itoa(pid) }

// lookAt finds out whether a process is new or has called exec, after which its threads may
// have other roles. A new name shows exec at every search, the command line at full searches.
func (p *probe) lookAt(pid int) (pr *process, changed bool) {
	pr = p.procs[pid]
	if pr != nil {
		if b, err := pr.name.Read(&p.buf); err == nil {
			comm := bytes.TrimSuffix(b, []byte("\n"))
			if !p.full && string(comm) == pr.comm {
				return pr, false
			}
			args := p.args(pr.dir)
			changed = string(comm) != pr.comm || len(args) > 0 && !slices.Equal(pr.args, args)
			pr.comm = string(comm)
			if changed && len(args) > 0 {
				pr.args = args
			}
			return pr, changed
		}
		p.forget(pid, pr) // it has ended; another process may have its number
	}
	pr = &process{dir: p.path(pid)}
	pr.tasks = pr.dir + "/task"
	var err error
	if pr.name, err = held.Open(pr.dir+"/comm", p.budget); err != nil {
		return nil, false // ended meanwhile
	}
	if b, err := pr.name.Read(&p.buf); err == nil {
		pr.comm = string(bytes.TrimSuffix(b, []byte("\n")))
	}
	pr.args = p.args(pr.dir)
	p.procs[pid] = pr
	return pr, false
}

// forget removes a process. sweep retires its threads, or forget itself with the iterator.
func (p *probe) forget(pid int, pr *process) {
	if len(pr.threads) > 0 {
		for _, t := range pr.threads {
			p.retire(t)
		}
		p.compact()
	}
	_ = pr.name.Close() // only read from
	delete(p.procs, pid)
	p.changed = true
}

// newThread adds a thread. It counts from the thread's beginning, which was after the last
// search.
func (p *probe) newThread(id threadID, scope int, c *cover, pr *process) *thread {
	if len(p.order) >= maxThreads {
		return nil
	}
	dir := pr.tasks + "/" + strconv.Itoa(id.tid)
	f, err := held.Open(dir+"/schedstat", p.budget)
	if err != nil {
		return nil // it has ended, or no descriptor is free; then the next search tries again
	}
	t := &thread{id: id, scope: scope, file: f, cover: c, process: pr}
	if !p.refresh(t) {
		_ = f.Close() // ended meanwhile
		return nil
	}
	p.classify(t, p.comm(dir), pr.args)
	pr.live++
	p.threads[id] = t
	p.order = append(p.order, t)
	return t
}

// classify finds the thread's role and adds the thread to the sum of that role. What it used
// in an earlier role stays there.
func (p *probe) classify(t *thread, comm string, args []string) {
	if comm == "" && t.sum != nil {
		return // ended meanwhile
	}
	role, endpoint := record.RoleHarness, ""
	if t.scope != self {
		s := &p.scopes[t.scope]
		role, endpoint = s.Roles.Of(sandbox.Thread{Pid: t.id.pid, Tid: t.id.tid, Comm: comm, Args: args}), s.Endpoint
	}
	if t.sum != nil && t.comm == comm && t.role == role {
		return
	}
	p.unlist(t)
	switch from, to := t.sum, p.sumOf(sumKey{role, endpoint}); {
	case from == nil:
		t.sum = to
		t.count(t.run, t.wait)
		to.live++
	case to != from:
		// Usage since the last reading counts for the new role: most threads that change do so
		// right after their start, by exec.
		run, wait := t.run-t.prevRun, t.wait-t.prevWait
		from.run, to.run = from.run-run, to.run+run
		from.wait, to.wait = from.wait-wait, to.wait+wait
		from.live, to.live = from.live-1, to.live+1
		t.sum = to
	}
	t.comm, t.role, t.endpoint = comm, role, endpoint
}

// sweep retires threads that the last search did not see.
func (p *probe) sweep() {
	if p.tasks == nil {
		for _, t := range p.order {
			// If the threads of a process were not listed, the process counts for all of them.
			if t.gen != p.gen && (t.process.gen != p.gen || t.process.listed == p.gen) {
				p.retire(t)
			}
		}
		p.compact()
	}
	for pid, pr := range p.procs {
		if pr.gen != p.gen {
			p.forget(pid, pr)
		}
	}
	if p.full && p.tasks != nil {
		p.crowd = crowd(p.slurp(p.o.Root + "/loadavg"))
	}
}

func (p *probe) comm(dir string) string {
	b := p.slurp(dir + "/comm")
	// A thread may have any name without zero bytes; labels are UTF-8.
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
	if len(p.text) < maxArgs {
		p.text = make([]byte, maxArgs)
	}
	b, err := held.Head(path, p.text[:maxArgs])
	if err != nil {
		return nil
	}
	return b
}

// children appends the children of a process to dst.
// /proc/PID/task/TID/children (proc_pid_task(5), CONFIG_PROC_CHILDREN) lists those that this
// thread made. Without it, the parents of all processes are read once a search.
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
