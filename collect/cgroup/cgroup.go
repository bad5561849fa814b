// Package cgroup is the collector of what the kernel accounts to a sandbox's
// control groups: CPU, throttling, memory, tasks, pressure, disk traffic.
//
// The data path: 1. Open groups the scopes by endpoint and leaves out cgroups inside
// another; 2. for every figure it opens the first file that exists, of version 1 or 2;
// 3. each Read takes every file once, by one pread, and parses its numbers without
// allocating; 4. figures of several cgroups of one endpoint are added up, and the counts of a
// removed cgroup stay in the sum.
//
// Version 2: Documentation/admin-guide/cgroup-v2.rst ("CPU Interface Files" and
// on); version 1: Documentation/admin-guide/cgroup-v1/cpuacct.rst, memory.rst,
// blkio-controller.rst, Documentation/scheduler/sched-bwc.rst and
// Documentation/accounting/psi.rst. An example of version 2's cpu.stat:
//
//	usage_usec 200277423
//	user_usec 155765539
//	system_usec 44511883
//
// A group's CPU includes threads that are too short-lived for the collector proc, but does
// not distinguish roles. Disk figures begin with the first line of a device, because a
// kernel that does not count also has a file without such lines.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"tare/collect"
	"tare/collect/internal/groups"
	"tare/collect/internal/metered"
	"tare/host/cgroup"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Paths finds cgroups in the file system. host/cgroup's Hierarchy implements it.
type Paths interface {
	// Path is the directory of a cgroup in a controller's hierarchy, "" for the
	// unified one.
	Path(controller, rel string) (string, bool)
}

// Collector is the collector; it keeps no state.
type Collector struct {
	paths Paths // nil: the host's, found when needed
	held  int   // descriptors; 0: by RLIMIT_NOFILE
}

// New makes the collector for this host.
func New() *Collector { return &Collector{} }

var _ collect.Collector = (*Collector)(nil)

// Name is the word in a study file.
func (*Collector) Name() string { return "cgroup" }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "CPU, throttling, memory, tasks, pressure and disk traffic of each sandbox's cgroups (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/)"
}

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	var out []record.Response
	for _, f := range figures() {
		out = append(out, record.Response{Name: f.name, Unit: f.unit, Better: f.better, Help: f.help})
	}
	return append(out, metered.Series())
}

// Check returns why this host lacks the source.
func (c *Collector) Check() error {
	_, err := c.find()
	return err
}

func (c *Collector) find() (Paths, error) {
	if c.paths != nil {
		return c.paths, nil
	}
	h, err := cgroup.Detect()
	if err != nil {
		return nil, fmt.Errorf("cgroup collector: %w; mount a cgroup file system, or leave the collector cgroup out of the study", err)
	}
	if h.Version == cgroup.None {
		return nil, errors.New("cgroup collector: without root a sandbox has no control group of its own; run tare with sudo")
	}
	return h, nil
}

// Open opens the files of the scopes' cgroups. It leaves out files that this kernel lacks,
// and their series. An end without any cgroup is an error.
func (c *Collector) Open(_ context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	paths, err := c.find()
	if err != nil {
		return nil, err
	}
	budget := held.DefaultBudget()
	if c.held > 0 {
		budget = held.NewBudget(c.held)
	}
	p := &probe{buf: make([]byte, 4096)}
	p.Reader = metered.New("cgroup", p.take)
	for _, e := range endpoints(scopes) {
		if len(e.outer) == 0 {
			continue
		}
		before := len(p.files)
		if err := p.add(paths, budget, e); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if len(p.files) == before {
			err := fmt.Errorf("cgroup collector: nothing to read in %s; was the sandbox stopped already?", strings.Join(e.outer, ", "))
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// endpoint is all cgroups of the sandboxes of one role.
type endpoint struct {
	labels  record.Labels
	outer   []string // the outermost
	limited []string // those that carry limits
}

func endpoints(scopes []sandbox.LocalScope) []endpoint {
	var out []endpoint
	for _, s := range scopes {
		l := record.Labels("")
		if s.Endpoint != "" {
			l = record.MakeLabels(record.LabelEndpoint, s.Endpoint)
		}
		i := slices.IndexFunc(out, func(e endpoint) bool { return e.labels == l })
		if i < 0 {
			i = len(out)
			out = append(out, endpoint{labels: l})
		}
		out[i].outer = append(out[i].outer, s.Cgroups...)
		if s.Limited != "" {
			out[i].limited = append(out[i].limited, path.Clean("/" + s.Limited)[1:])
		}
	}
	for i := range out {
		out[i].outer = groups.Outermost(out[i].outer)
		slices.Sort(out[i].limited)
		out[i].limited = slices.Compact(out[i].limited)
	}
	return out
}
