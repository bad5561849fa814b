package proc

import (
	"tare/collect/internal/groups"
	"tare/host/cgroup"
	"tare/internal/held"
	"tare/record"
)

// usage is the CPU time of one cgroup and its descendants.
type usage struct {
	file *held.File
	unit uint64 // ns
	key  string // of the line; "" when the file is a number alone
	last uint64 // ns
}

// read updates the figure; a removed cgroup keeps its last figure.
func (u *usage) read(buf *[]byte) bool {
	b, err := u.file.Read(buf)
	if err != nil {
		return false
	}
	n, ok := uint64(0), false
	if u.key == "" {
		n, _, ok = held.Uint(b)
	} else {
		n, ok = held.Value(b, u.key)
	}
	if ok {
		u.last = max(u.last, n*u.unit)
	}
	return ok
}

// cover compares one endpoint's cgroups with the threads found in them.
type cover struct {
	labels  record.Labels
	usages  []*usage
	base    uint64 // ns charged when the probe was opened
	charged uint64 // ns since then
	seen    uint64 // ns of threads, including ended ones
	shown   uint64 // the remainder in the last sample
}

// openCovers opens the figure of every scope's cgroups: cpuacct.usage of version 1
// (Documentation/admin-guide/cgroup-v1/cpuacct.rst), also on hybrid hosts, or cpu.stat of
// version 2. A scope without either has no cover, and its end no remainder.
func (p *probe) openCovers(paths func(controller, rel string) (string, bool)) {
	p.covers = make([]*cover, len(p.scopes))
	byEndpoint := map[string]*cover{}
	rels := map[string][]string{}
	for i, s := range p.scopes {
		if len(s.Cgroups) == 0 {
			continue
		}
		if byEndpoint[s.Endpoint] == nil {
			byEndpoint[s.Endpoint] = &cover{labels: labels(sumKey{record.RoleUnattributed, s.Endpoint})}
			p.coverOrder = append(p.coverOrder, byEndpoint[s.Endpoint])
		}
		p.covers[i] = byEndpoint[s.Endpoint]
		rels[s.Endpoint] = append(rels[s.Endpoint], s.Cgroups...)
	}
	for endpoint, c := range byEndpoint {
		for _, rel := range groups.Outermost(rels[endpoint]) {
			if u := p.openUsage(paths, rel); u != nil {
				c.usages = append(c.usages, u)
				c.base += u.last
			}
		}
	}
}

func (p *probe) openUsage(paths func(controller, rel string) (string, bool), rel string) *usage {
	for _, src := range []struct {
		controller, file, key string
		unit                  uint64
	}{{"cpuacct", "cpuacct.usage", "", 1}, {"", "cpu.stat", "usage_usec", 1000}} {
		dir, ok := paths(src.controller, rel)
		if !ok {
			continue
		}
		f, err := held.Open(dir+"/"+src.file, p.budget)
		if err != nil {
			continue
		}
		u := &usage{file: f, unit: src.unit, key: src.key}
		if u.read(&p.buf) {
			return u
		}
		_ = f.Close() // only read from
	}
	return nil
}

// charge reads the cgroups. It must run before the threads are read: what threads use in
// between then makes the remainder smaller, never larger, and the next reading corrects it.
func (p *probe) charge() {
	for _, c := range p.coverOrder {
		sum := uint64(0)
		for _, u := range c.usages {
			u.read(&p.buf)
			sum += u.last
		}
		c.charged = sum - c.base
	}
}

// appendRemainders appends one sample for each endpoint that has cgroups. A
// remainder never falls.
func (p *probe) appendRemainders(dst []record.Sample) []record.Sample {
	for _, c := range p.coverOrder {
		if len(c.usages) == 0 {
			continue
		}
		if c.charged > c.seen {
			c.shown = max(c.shown, c.charged-c.seen)
		}
		dst = append(dst, counter(CPUTime, c.labels, c.shown))
	}
	return dst
}

// members lists the processes of a cgroup in the tree that its CPU time is read
// from: one walk instead of one for every controller.
func members(h *cgroup.Hierarchy) func(rel string) ([]int, error) {
	var w walker
	return func(rel string) ([]int, error) {
		w.pids = w.pids[:0]
		for _, controller := range []string{"cpuacct", ""} {
			if dir, ok := h.Path(controller, rel); ok && w.walk(dir, 0) && len(w.pids) > 0 {
				return w.pids, nil
			}
		}
		return h.Open(rel).Procs() // it is only in the trees of other controllers, or empty
	}
}

// walker reads cgroup.procs of a directory and of those below it.
type walker struct {
	pids []int
	buf  []byte
}

// maxDepth is deeper than any sandbox nests cgroups.
const maxDepth = 16

func (w *walker) walk(dir string, depth int) bool {
	f, err := held.Open(dir+"/cgroup.procs", held.NewBudget(1))
	if err != nil {
		return false
	}
	b, err := f.Read(&w.buf)
	_ = f.Close() // only read from
	if err != nil {
		return false
	}
	for len(b) > 0 {
		var line []byte
		line, b = held.Line(b)
		w.pids = appendPids(w.pids, line)
	}
	if depth == maxDepth {
		return true
	}
	for _, below := range subdirectories(dir) {
		w.walk(dir+"/"+below, depth+1)
	}
	return true
}
