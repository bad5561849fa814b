package proc

import (
	"bytes"
	"slices"

	"tare/collect/internal/taskiter"
	"tare/internal/held"
)

// follow makes the iterator report the threads of a process from the next scan on.
func (p *probe) follow(pid, scope int, c *cover) {
	pr := p.procs[pid]
	if pr != nil && pr.other {
		p.forget(pid, pr)
		pr = nil
	}
	if pr == nil {
		pr = &process{scope: scope, cover: c, dir: p.path(pid)}
		pr.tasks = pr.dir + "/task"
		p.procs[pid] = pr
		p.changed = true
	} else if p.full && pr.version > 0 {
		p.reread(pr)
	}
	pr.gen = p.gen
}

// reread checks whether the process has another command line. Then its threads are
// classified again.
func (p *probe) reread(pr *process) {
	if args := p.args(pr.dir); len(args) > 0 && !slices.Equal(pr.args, args) {
		pr.args = args
		pr.version++
		p.renewed = true
	}
}

// tolerated is how many scans in a row may fail, for lack of a descriptor or memory. The last
// values stay meanwhile.
const tolerated = 10

// scan updates all threads by one walk through all threads of the host, or by a walk through
// each process if the host has many more threads.
func (p *probe) scan() error {
	if p.changed {
		p.tasks.Clear()
		for pid := range p.procs {
			p.tasks.Add(pid)
		}
		p.changed = false
	}
	p.scans++
	// A walk of one process costs as much as visiting some six threads.
	narrow := p.tasks.Narrow() && 6*len(p.procs)+len(p.order) < p.crowd
	var err error
	p.records = p.records[:0]
	if narrow {
		for pid := range p.procs {
			if p.records, err = p.tasks.ScanProcess(p.records, pid); err != nil {
				break
			}
		}
		if err == nil && p.merge(p.records) {
			p.failures = 0
			return nil
		}
	}
	// Walk all threads, also to make sure if some were missing.
	if p.records, err = p.tasks.Scan(p.records[:0]); err != nil {
		if p.failures++; p.failures > tolerated {
			return err
		}
		return nil
	}
	p.failures = 0
	if !p.merge(p.records) {
		p.retireUnseen()
	}
	return nil
}

// merge takes the records of one walk. It returns false if known threads were missing.
func (p *probe) merge(records []taskiter.Record) bool {
	p.walks++
	pid, pr := 0, (*process)(nil)
	for i := range records {
		r := &records[i]
		if r.Pid != pid || !r.Same {
			pid, pr = r.Pid, p.processOf(r)
		}
		if pr != nil {
			p.place(pr, r)
		}
	}
	if p.renewed {
		p.renew()
	}
	for _, pr := range p.procs {
		if len(pr.threads) > 0 && (pr.walk != p.walks || pr.met < len(pr.threads)) {
			return false
		}
	}
	return true
}

// place finds the thread of a record among those of its process, usually right after the
// last one, and updates it.
func (p *probe) place(pr *process, r *taskiter.Record) {
	if pr.walk != p.walks {
		pr.walk, pr.next, pr.met = p.walks, 0, 0
	}
	at, there := pr.next, pr.next < len(pr.tids) && pr.tids[pr.next] == r.Tid
	if !there {
		at, there = slices.BinarySearch(pr.tids, r.Tid)
	}
	switch {
	case there && pr.seen[at] == p.walks:
		return // a second record of the same thread
	case there && r.Same:
	case there && pr.threads[at].start == r.Start:
		p.update(pr.threads[at], r)
	case there: // another thread has this number now
		p.retire(pr.threads[at])
		p.compact()
		pr.threads[at] = p.adopt(r, pr)
	case r.Same:
		p.tasks.Forget() // the kernel remembers a thread that this probe does not
		return
	case len(p.order) >= maxThreads:
		return
	default:
		pr.tids = slices.Insert(pr.tids, at, r.Tid)
		pr.seen = slices.Insert(pr.seen, at, 0)
		pr.threads = slices.Insert(pr.threads, at, p.adopt(r, pr))
	}
	pr.seen[at] = p.walks
	pr.next = at + 1
	pr.met++
}

// retireUnseen retires the threads that the last walk did not visit.
func (p *probe) retireUnseen() {
	for _, pr := range p.procs {
		if pr.walk == p.walks && pr.met == len(pr.threads) {
			continue
		}
		kept := 0
		for i, t := range pr.threads {
			if pr.seen[i] != p.walks {
				p.retire(t)
				continue
			}
			pr.threads[kept], pr.tids[kept], pr.seen[kept] = t, pr.tids[i], pr.seen[i]
			kept++
		}
		clear(pr.threads[kept:])
		pr.threads, pr.tids, pr.seen = pr.threads[:kept], pr.tids[:kept], pr.seen[:kept]
	}
	p.compact()
}

// renew classifies the threads of processes with another command line again.
func (p *probe) renew() {
	p.renewed = false
	for _, t := range p.order {
		if t.version == t.process.version {
			continue
		}
		if t.scan != p.scans { // it has not run since the last scan
			t.prevRun, t.prevWait = t.run, t.wait
		}
		p.name(t)
	}
}

// processOf returns the process of a record; nil if no scope has it.
func (p *probe) processOf(r *taskiter.Record) *process {
	pr := p.procs[r.Pid]
	switch {
	case pr == nil, pr.other:
		return nil
	case r.Same:
	case pr.begun == 0:
		pr.begun = r.Begun
	case pr.begun != r.Begun:
		pr.other = true // the next search finds out whether it belongs to a scope
		return nil
	}
	return pr
}

// update takes the figures of a known thread. A new name of a process's first thread shows
// exec.
func (p *probe) update(t *thread, r *taskiter.Record) {
	if t.scan != p.scans { // a second walk belongs to the same reading
		t.prevRun, t.prevWait = t.run, t.wait
		t.scan = p.scans
	}
	t.advance(r.Run, r.Wait)
	p.note(t)
	if t.raw == r.Comm {
		return
	}
	t.raw = r.Comm
	if r.Tid == r.Pid {
		p.reread(t.process)
	}
	p.name(t)
}

// adopt adds a thread. It counts from the thread's beginning, which was after the last scan.
func (p *probe) adopt(r *taskiter.Record, pr *process) *thread {
	if pr.version == 0 {
		// Read the arguments after the scan: if it calls exec in between, the next scan sees
		// its name change.
		pr.args = p.args(pr.dir)
		pr.version = 1
	}
	t := &thread{
		id: threadID{r.Pid, r.Tid}, scope: pr.scope, cover: pr.cover, process: pr,
		run: r.Run, wait: r.Wait, start: r.Start, raw: r.Comm, scan: p.scans,
	}
	p.note(t)
	p.name(t)
	pr.live++
	p.order = append(p.order, t)
	return t
}

func (p *probe) name(t *thread) {
	t.version = t.process.version
	p.classify(t, taskiter.Name(&t.raw), t.process.args)
}

// crowd returns the number of threads on the host: the second number of the fourth word of
// /proc/loadavg, "0.20 0.18 0.12 1/80 11206" (proc_loadavg(5)).
func crowd(b []byte) int {
	_, after, _ := bytes.Cut(b, []byte("/"))
	n, _, _ := held.Uint(after)
	return int(min(n, 1<<22))
}
