// Package calls counts the system calls that a trial's sandboxes make, by name.
//
// Only counting trials use it (package run), because it slows every call of the machine a
// little. In a sandbox with the host's kernel it counts the program's calls; in a sandbox
// with its own kernel, the calls of that kernel.
//
// The data path: 1. Open attaches the counter (collect/internal/callcount) and puts
// into it the processes of the scopes: those of the role harness, which is tare's
// agent, are followed but not counted; 2. the kernel adds all processes that they fork
// before these run, so that no search is needed afterwards; 3.
// Read gives one counter for each endpoint and name.
//
// It follows forks, not cgroups: the BPF helper that returns a task's cgroup knows only
// version 2. A process belongs to a sandbox if a process of that sandbox made it. This works
// with both versions, and for processes without their own cgroup.
package calls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tare/collect"
	"tare/collect/internal/callcount"
	"tare/collect/internal/metered"
	"tare/collect/internal/sysnames"
	"tare/host/cgroup"
	"tare/record"
	"tare/sandbox"
)

// Names of the series.
const (
	Word  = "calls"
	Calls = record.SystemCalls
	Lost  = record.SystemCallsLost
)

// Collector is the collector. It keeps what is needed to load the BPF programs.
type Collector struct{ loader *callcount.Loader }

// New makes the collector for this host.
func New() *Collector { return &Collector{&callcount.Loader{}} }

var _ collect.Collector = (*Collector)(nil)

// Name is the word in a study file.
func (*Collector) Name() string { return Word }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "system calls by name, counted by BPF; only in counting trials (Documentation/trace/events.rst, sys_enter)"
}

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	return []record.Response{
		{Name: Calls, Unit: record.Count, Better: record.Lower, Help: "system calls of one name and end since the collector was opened, without the harness's"},
		{Name: Lost, Unit: record.Count, Better: record.Lower, Help: "calls whose number has no name (of another architecture), and processes for whose calls there was no room"},
		{Name: record.CollectorCPU, Unit: record.Second, Better: record.Lower, Help: "CPU that reading took, up to the reading before, without the cost of counting in the program"},
	}
}

// Check tries to count, and returns why this host cannot.
func (c *Collector) Check() error {
	n, err := c.loader.Load()
	if err != nil {
		return fmt.Errorf("cannot count system calls: %w", err)
	}
	return n.Close()
}

// Open follows the scopes' processes. A cgroup that cannot be read is gone, with its
// processes.
func (c *Collector) Open(_ context.Context, scopes []sandbox.LocalScope) (_ collect.Probe, err error) {
	if len(scopes) > callcount.MaxEndpoints {
		return nil, fmt.Errorf("calls collector: the trial has %d sandboxes; the collector can count in %d", len(scopes), callcount.MaxEndpoints)
	}
	n, err := c.loader.Load()
	if err != nil {
		return nil, fmt.Errorf("calls collector: %w", err)
	}
	p := &probe{counter: n}
	p.Reader = metered.New(Word, p.take)
	for i := range scopes {
		e := endpoint{scope: &scopes[i], name: scopes[i].Endpoint, lost: record.MakeLabels(record.LabelEndpoint, scopes[i].Endpoint)}
		if e.name == "" {
			e.lost = ""
		}
		p.endpoints = append(p.endpoints, e)
	}
	if err := p.follow(); err != nil {
		return nil, errors.Join(fmt.Errorf("calls collector: %w", err), p.Close())
	}
	return p, nil
}

// endpoint is one scope.
type endpoint struct {
	scope  *sandbox.LocalScope
	name   string
	lost   record.Labels
	labels [len(callcount.Counts{}.Calls)]record.Labels // by number, once called
}

type probe struct {
	metered.Reader
	counter   *callcount.Counter
	endpoints []endpoint
}

// follow adds the existing processes, and repeats the search until it finds no more: a
// process may fork before it is added.
func (p *probe) follow() error {
	const rounds = 16 // so that a fork bomb cannot keep this loop running
	var h *cgroup.Hierarchy
	for range rounds {
		found := false
		for i := range p.endpoints {
			s := p.endpoints[i].scope
			pids := descendants(s.Pids)
			for _, cg := range s.Cgroups {
				if h == nil {
					var err error
					if h, err = cgroup.Detect(); err != nil {
						return fmt.Errorf("find cgroups: %w", err)
					}
				}
				inside, _ := h.Open(cg).Procs()
				pids = append(pids, inside...)
			}
			for _, pid := range pids {
				if p.counter.Follows(pid) {
					continue
				}
				found = true
				if err := p.counter.Add(pid, i, counts(s, pid)); err != nil {
					return err
				}
			}
		}
		if !found {
			break
		}
	}
	return nil
}

// counts reports whether a process is not the harness's.
func counts(s *sandbox.LocalScope, pid int) bool {
	if s.Roles == nil {
		return true
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	comm, _ := os.ReadFile(dir + "/comm")    //nolint:gosec // of a process; gone if it cannot be read
	args, _ := os.ReadFile(dir + "/cmdline") //nolint:gosec // likewise
	words := strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
	if len(args) == 0 {
		words = nil
	}
	return s.Roles.Of(sandbox.Thread{Pid: pid, Tid: pid, Comm: strings.TrimSpace(string(comm)), Args: words}) != record.RoleHarness
}

// descendants returns the live processes among pids, and their descendants.
func descendants(pids []int) []int {
	var out []int
	for queue := slices.Clone(pids); len(queue) > 0; queue = queue[1:] {
		dir := filepath.Join("/proc", strconv.Itoa(queue[0]), "task")
		tasks, err := os.ReadDir(dir)
		if err != nil || slices.Contains(out, queue[0]) {
			continue
		}
		out = append(out, queue[0])
		for _, t := range tasks {
			b, _ := os.ReadFile(filepath.Join(dir, t.Name(), "children")) //nolint:gosec // of a process; CONFIG_PROC_CHILDREN
			for w := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(w); err == nil {
					queue = append(queue, pid)
				}
			}
		}
	}
	return out
}

func (p *probe) take(dst []record.Sample) ([]record.Sample, error) {
	got, err := p.counter.Read()
	if err != nil {
		return dst, fmt.Errorf("calls collector: %w", err)
	}
	for i := range p.endpoints {
		e := &p.endpoints[i]
		for nr, n := range got[i].Calls {
			if n == 0 {
				continue
			}
			if e.labels[nr] == "" {
				e.labels[nr] = e.label(nr)
			}
			dst = append(dst, record.Sample{Name: Calls, Labels: e.labels[nr], Unit: record.Count, Kind: record.Counter, Value: float64(n)})
		}
		dst = append(dst, record.Sample{Name: Lost, Labels: e.lost, Unit: record.Count, Kind: record.Counter, Value: float64(got[i].Lost)})
	}
	return dst, nil
}

func (e *endpoint) label(nr int) record.Labels {
	if e.name == "" {
		return record.MakeLabels(record.LabelCall, sysnames.Name(nr))
	}
	return record.MakeLabels(record.LabelCall, sysnames.Name(nr), record.LabelEndpoint, e.name)
}

// Close implements collect.Probe.
func (p *probe) Close() error {
	p.Reader.Close()
	c := p.counter
	p.counter = nil
	return c.Close()
}
