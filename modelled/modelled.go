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
	"tare/site"
	"tare/study"
)

// Site is the model as a site. Takes says how long real trials of a study take: so long
// its trials say they took, so that a budget of time is met as it would be.
type Site struct {
	Takes func(site.Request) (func(record.Cell) time.Duration, error)
}

// About is of site.Site.
func (Site) About() site.About {
	return site.About{Flag: "--on model", Suffix: "-modelled", Modelled: true, Cannot: "the model does not know",
		Nothing: "the model knows no cell of the study; docs/model.md says what it knows"}
}

// Preview is of site.Site.
func (s Site) Preview(ctx context.Context, r site.Request) (site.Preview, error) {
	p, err := s.Open(ctx, r)
	if err != nil {
		return site.Preview{}, err
	}
	return p.Preview(), nil
}

// Open is of site.Site. It holds nothing of this host.
func (s Site) Open(_ context.Context, r site.Request) (site.Session, error) {
	takes, err := s.Takes(r)
	if err != nil {
		return nil, err
	}
	p, err := New(r.Study, r.Catalogue, takes)
	if err != nil {
		return nil, err
	}
	p.preview.Pace = p.pace()
	return p, nil
}

// Player models the trials of one study, as a site.Session. Its methods may be called by
// one goroutine at a time.
type Player struct {
	study     *study.Study
	catalogue study.Catalogue
	takes     func(record.Cell) time.Duration
	now       func() time.Time
	preview   site.Preview

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

// New makes a player, whose trials say that they took what takes says.
func New(st *study.Study, cat study.Catalogue, takes func(record.Cell) time.Duration) (*Player, error) {
	p := &Player{study: st, catalogue: cat, takes: takes, now: time.Now, places: make(chan struct{}, runtime.GOMAXPROCS(0))}
	var err error
	p.preview.Skips, err = p.skips()
	return p, err
}

// Nodes is of site.Session: the one machine of the model.
func (*Player) Nodes() []record.Node {
	h := Host()
	return []record.Node{{Name: h.Hostname, Host: h}}
}

// Preview is of site.Session.
func (p *Player) Preview() site.Preview { return p.preview }

// Expected is of site.Session.
func (p *Player) Expected(c record.Cell) time.Duration { return p.takes(c) }

// Close is of site.Session.
func (*Player) Close() {}

// Trials models the trials that the plan asks for. It is of site.Session.
func (p *Player) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	out := make([]record.Made, len(nexts))
	for i, n := range nexts {
		out[i].Trial, out[i].Evidence = p.trial(ctx, n)
	}
	return out
}

func (p *Player) trial(ctx context.Context, next plan.Next) (*record.Trial, record.Evidence) {
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
