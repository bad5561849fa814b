// Package modelled plays the cells of a study with package model in the place of
// sandboxes, workloads and a host: a rehearsal.
//
// The data path: 1. Skips names the cells that the model does not know; 2. package
// run asks for a trial, and config.go turns its cell into a model.Config with a seed
// from the study's seed, the block and the cell; 3. the other cells of the block are
// modelled meanwhile, one on each processor, for the plan asks for them next; 4. the
// result becomes a trial like any other, marked by the fact ROLE.accelerator, by what
// it says of itself in facts model.*, and by the host that Host describes.
//
// The same study gives the same figures on any machine. docs/model.md says what is
// approximated, and how each sandbox and workload is mapped.
package modelled

import (
	"context"
	"hash/fnv"
	"runtime"
	"strconv"
	"sync"
	"time"

	"tare/model"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// Player models the trials of one study. Its methods may be called by one goroutine
// at a time.
type Player struct {
	study     *study.Study
	catalogue study.Catalogue
	takes     func(record.Cell) time.Duration
	now       func() time.Time

	places chan struct{} // one for each trial that is modelled at once
	mu     sync.Mutex
	ahead  map[string]*job // of the block under way, by cell
	block  [2]int          // stratum and block that ahead is of
}

// job is one trial being modelled.
type job struct {
	done chan struct{}
	part part
	err  error
}

// New makes a player. takes says how long a real trial of a cell takes: so long its
// trials say they took, so that a budget of time is met as it would be.
func New(st *study.Study, cat study.Catalogue, takes func(record.Cell) time.Duration) *Player {
	return &Player{study: st, catalogue: cat, takes: takes, now: time.Now, places: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Trial models the trial that the plan asks for. It is as run.Engine.Trial: it always
// returns a trial.
func (p *Player) Trial(ctx context.Context, next plan.Next) (*record.Trial, record.Evidence) {
	began := p.now()
	j := p.job(next)
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-j.done:
		err = j.err
		p.forget(next)
	}
	if err != nil {
		return &record.Trial{Seq: next.Seq, Block: next.Block, Attempt: next.Attempt, Cell: next.Cell, Status: record.Failed, Start: began,
			Failure: &record.Failure{Phase: model.PhaseRun, Kind: "other", Reason: err.Error()}}, record.Evidence{}
	}
	t, evidence := j.part.trial(next)
	t.Start, t.Duration = began, p.takes(next.Cell)
	return t, evidence
}

// job returns the trial's, begun with those of the rest of its block.
func (p *Player) job(next plan.Next) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := [2]int{next.Stratum, next.Block}; p.ahead == nil || p.block != at {
		p.ahead, p.block = map[string]*job{}, at
	}
	if j := p.ahead[next.Cell.Key()]; j != nil {
		return j
	}
	j := p.begin(next.Cell, next.Block)
	if next.Stratum >= 0 && !next.Counting && !next.Sentinel {
		for _, c := range p.study.Strata[next.Stratum].Cells {
			if p.ahead[c.Key()] == nil {
				p.begin(c, next.Block)
			}
		}
	}
	return j
}

// begin starts to model a trial as soon as there is a place.
func (p *Player) begin(cell record.Cell, block int) *job {
	j := &job{done: make(chan struct{})}
	p.ahead[cell.Key()] = j
	go func() {
		p.places <- struct{}{}
		defer func() { <-p.places; close(j.done) }()
		j.part, j.err = p.play(cell, block)
	}()
	return j
}

// forget lets a result go that was returned. A cell that is asked for again in the
// same block, because the last trial could not be kept, is modelled again.
func (p *Player) forget(next plan.Next) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ahead, next.Cell.Key())
}

// seed is that of a cell in a block.
func (p *Player) seed(cell record.Cell, block int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatUint(p.study.Seed, 10) + " " + strconv.Itoa(block) + " " + cell.Key())) // it never fails
	return h.Sum64()
}

// Host describes the machine that the model stands for, as a real one is described.
func Host() record.Host {
	cores := model.Default().Host.Cores
	return record.Host{
		Hostname: "model", OS: "none: a model, docs/model.md", CPUModel: "modelled processors, all alike", Arch: runtime.GOARCH,
		Cores: cores, Threads: cores, KVM: "modelled", Virtualization: "none",
		Warnings: []record.Warning{{Code: "modelled", Text: "no machine was measured: all figures are a model's (tare run --on model)"}},
	}
}
