package main

import (
	"fmt"
	"sync"
	"time"

	"tare/analyse"
	"tare/plan"
	"tare/record"
	"tare/report/terminal"
	"tare/report/weigh"
	"tare/report/words"
	"tare/run"
	"tare/study"
)

// live shows what is known while trials run: a table that is drawn anew on a terminal, a line each
// ten seconds elsewhere, nothing beside JSON.
type live struct {
	out      *terminal.Writer
	terminal bool
	silent   bool
	study    *study.Study
	describe func(study.Workload) []record.Response
	skips    []record.Skip
	expected func(record.Cell) time.Duration
	atOnce   int // trials that are made at the same time
	trials   []record.Trial
	told     time.Time // when the last plain line was printed

	mu    sync.Mutex // of what follows: a clock redraws
	rows  []string
	until time.Time
	stop  chan struct{}
	done  sync.WaitGroup
}

func newLive(a *app, st *study.Study, cat study.Catalogue, skips []record.Skip, expected func(record.Cell) time.Duration, silent bool) *live {
	l := &live{out: a.stderr, silent: silent, study: st, describe: responsesOf(st, cat), skips: skips, expected: expected, told: time.Now(), stop: make(chan struct{})}
	if _, l.terminal = a.stderr.Terminal(); l.terminal && !silent {
		l.done.Go(l.tick)
	}
	return l
}

// tick redraws for the time that is left.
func (l *live) tick() {
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			l.draw()
		case <-l.stop:
			return
		}
	}
}

// observe is of run.Engine.
func (l *live) observe(ev run.Event) {
	if ev.Kind == run.TrialEnds {
		l.trials = append(l.trials, *ev.Trial)
	}
	if l.silent {
		return
	}
	left := ev.Plan.Remaining(l.expected).Across(l.atOnce)
	switch {
	case l.terminal:
		known := l.known()
		rows := weigh.Live(known)
		if why := weigh.GoesOn(known, l.study.Stop.Width); why != "" {
			rows = append(rows, why)
		}
		l.mu.Lock()
		l.rows, l.until = rows, time.Now().Add(left.MostTime)
		l.mu.Unlock()
		l.draw()
	case ev.Kind == run.TrialEnds && time.Since(l.told) > 10*time.Second && blockEnds(ev, left):
		l.told = time.Now()
		for _, r := range weigh.Live(l.known()) {
			fmt.Fprintln(l.out, r)
		}
		fmt.Fprintln(l.out, terminal.Message(fmt.Sprintf("block %d; at most %s left", ev.Trial.Block, words.Duration(left.MostTime))))
	}
}

// blockEnds reports whether the next trial is of another block.
func blockEnds(ev run.Event, left plan.Progress) bool {
	next, more := ev.Plan.Next()
	return !more || next.Block != ev.Trial.Block || left.AtMost == 0
}

func (l *live) known() []weigh.Row {
	return weigh.Of(analyse.Analyse(l.study, l.trials, l.skips, analyse.Describe(l.describe)))
}

func (l *live) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows) == 0 {
		return
	}
	last := "at most " + words.Duration(max(0, time.Until(l.until))) + " left; Ctrl-C ends it with what is known"
	l.out.Redraw(append(append([]string{}, l.rows...), last)...)
}

// close takes the table away: the result follows.
func (l *live) close() {
	close(l.stop)
	l.done.Wait()
	if l.terminal && !l.silent {
		l.out.Redraw()
	}
}
