package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"tare/collect"
	collectall "tare/collect/all"
	"tare/collect/host"
	"tare/host/freemem"
	"tare/host/network"
	"tare/host/state"
	"tare/record"
	"tare/run"
	"tare/study"
)

// runPrefix begins the name of a run on the host, and so of its directories.
const runPrefix = "t"

// runID is the name of the run that a process makes.
func runID(pid int) string { return runPrefix + strconv.FormatInt(int64(pid), 36) }

// harness is an engine with what it stands on, made and taken away together.
type harness struct {
	engine *run.Engine
	host   record.Host
	skips  []record.Skip
	closes []func() error

	modelled bool          // the engine's trials are a model's
	pace     time.Duration // of one, about
}

// setUp prepares the host for a study: root file system, network, directories;
// and asks every sandbox whether it works here, of which t tells. The caller holds the host.
func (a *app) setUp(ctx context.Context, st *study.Study, cat study.Catalogue, d dirs, t *tries) (_ *harness, err error) {
	h := &harness{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if os.Geteuid() == 0 {
		_, release, err := a.place(ctx)
		if err != nil {
			a.say("%v", err)
		}
		h.closes = append(h.closes, release)
	}
	id := runID(os.Getpid())
	stateDir, remove, err := state.MakeRun(d.run, id)
	if err != nil {
		return nil, err
	}
	h.closes = append(h.closes, remove)
	dataDir, remove, err := state.MakeData(d.notes, d.data, id)
	if err != nil {
		return nil, err
	}
	h.closes = append(h.closes, remove)
	checks, remove, err := makeChecks(d, id)
	if err != nil {
		return nil, err
	}
	h.closes = append(h.closes, remove)
	h.engine = &run.Engine{
		ID: id, Study: st, Catalogue: cat, Workloads: workloads(),
		Dirs:      run.Dirs{State: stateDir, Data: dataDir},
		Available: freemem.Read,
		Trying:    t.begin,
		Counting:  collectall.Counting(), // the engine asks it what this host lacks
	}
	machines, err := guestFiles(a.say)
	if err != nil {
		return nil, err
	}
	if h.engine.Kinds, _, err = kindsFrom(checks, st.Sandboxes, machines); err != nil {
		return nil, err
	}
	if err := h.openMemory(id); err != nil {
		return nil, err
	}
	if err := h.openImages(ctx, a); err != nil {
		return nil, err
	}
	needs, err := h.engine.Needs()
	if err != nil {
		return nil, err
	}
	tree, err := root(ctx, d, needs)
	if err != nil {
		return nil, err
	}
	h.engine.Dirs.Root = tree.Path
	if h.skips, err = h.engine.Skips(ctx, tree.Missing, runtime.NumCPU()); err != nil {
		return nil, err
	}
	h.openCollectors(st, a)
	if err := h.openNetwork(ctx); err != nil {
		return nil, err
	}
	h.host = proven(host.Describe(ctx, "/", host.Tools()), filepath.Join(hostDirs().cache, "vm"), thisBoot())
	return h, nil
}

// openCollectors leaves out, with a word, those whose source this host lacks.
func (h *harness) openCollectors(st *study.Study, a *app) {
	var usable []collect.Collector
	for _, c := range collectors(st.Collect.Names) {
		if err := c.Check(); err != nil {
			a.say("without the collector %s: %v", c.Name(), err)
			continue
		}
		usable = append(usable, c)
	}
	h.engine.Collectors = usable
}

// openNetwork makes the bridge if a workload has two ends or is asked from outside.
func (h *harness) openNetwork(ctx context.Context) error {
	wanted, err := h.engine.NeedsNetwork()
	if err != nil || !wanted || os.Geteuid() != 0 {
		return err
	}
	bridge, err := network.Open(ctx)
	if err != nil {
		return fmt.Errorf("cannot make the bridge that sandboxes share: %w", err)
	}
	h.engine.Network = bridge
	h.closes = append(h.closes, bridge.Close)
	return nil
}

// close takes away what setUp made, last things first. What stays is found by
// `tare clean` and by the next run.
func (h *harness) close() {
	for i := len(h.closes) - 1; i >= 0; i-- {
		_ = h.closes[i]()
	}
	h.closes = nil
}
