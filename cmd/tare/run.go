package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"tare/plan"
	"tare/report/words"
	"tare/run"
	"tare/store"
	"tare/study"
)

type runFlags struct {
	results string
	sets    []string
	data    string
	fresh   bool
	wait    bool
	json    bool
	on      string
}

func (a *app) runVerb() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run STUDY",
		Short: "Run a study, or go on with one that was interrupted",
		Long: `Run the trials of a study, interleaved, until its stopping rule or budget is
met, then print the report. STUDY is a study file, or a results folder whose
study goes on.

Every finished trial is kept at once. Ctrl-C ends the running trial, cleans up
and keeps the rest: the same command goes on from there. A second Ctrl-C is
obeyed at once; then ` + "`tare clean`" + ` removes what is left.

With --on model it is a rehearsal: a model plays host, sandboxes and workload, so
that the plan, the progress and the report can be seen before machines are taken
for hours. It needs no root, no network and no sandbox. What it says is marked as
modelled everywhere, and kept apart: in results/NAME-modelled.`,
		Example: `  tare run studies/first.yaml
  tare run studies/first.yaml --set sandbox=process,runc --set budget.time=1m
  tare run results/first           go on where it stopped
  tare run studies/kata-network.yaml --on model`,
		Args: exactly(1, "one study file or results folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runStudy(cmd.Context(), args[0], f)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.results, "results", "o", "", "results folder (default results/NAME of the study, with --on model results/NAME-modelled)")
	fl.StringVar(&f.on, "on", "", onHelp)
	fl.StringArrayVar(&f.sets, "set", nil, "override the study: factor=level,... (repeatable)")
	fl.StringVar(&f.data, "data", "", "directory on the disk to be measured (default "+hostDirs().data+")")
	fl.BoolVar(&f.fresh, "fresh", false, "start again in a new folder instead of going on")
	fl.BoolVar(&f.wait, "wait", false, waitHelp)
	fl.BoolVar(&f.json, "json", false, "print progress as JSON lines, the report as the last of them")
	return cmd
}

func (a *app) runStudy(ctx context.Context, arg string, f runFlags) error {
	if err := checkOn(f.on); err != nil {
		return err
	}
	st, cat, dir, err := a.open(arg, f)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	if f.on == onModel {
		return a.rehearse(ctx, st, cat, dir, arg, f)
	}

	d, err := ownDirs()
	if err != nil {
		return err
	}
	if f.data != "" {
		if d.data, err = filepath.Abs(f.data); err != nil {
			return err
		}
	}
	lock, err := a.hold(ctx, d, "study "+st.Name, f.wait)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	a.sweep(ctx, d)
	defer a.sweepAfter(ctx, d)

	t := a.newTries(ctx, f.json)
	h, err := a.setUp(ctx, st, cat, d, t)
	if err == nil {
		defer h.close()
	}
	if err := t.interrupted(err); err != nil {
		return err
	}
	if possible(st, h.skips) == 0 {
		a.printSkips(h.skips)
		return coded(exitHost, "this host can run no cell of the study; `tare doctor` says what is missing")
	}
	return a.keepAndMeasure(ctx, st, h, dir, arg, f)
}

// keepAndMeasure runs the trials that are still wanted into a results folder.
func (a *app) keepAndMeasure(ctx context.Context, st *study.Study, h *harness, dir, arg string, f runFlags) error {
	db, err := openStore(dir, arg, st, h)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	a.tellAside(db)
	if err := db.SetSkips(context.WithoutCancel(ctx), h.skips); err != nil {
		return err
	}
	h.engine.Store = db
	return a.measure(ctx, st, h, db, f)
}

// measure runs the trials that are still wanted and prints the report.
func (a *app) measure(ctx context.Context, st *study.Study, h *harness, db *store.Store, f runFlags) error {
	p := plan.New(st, h.skips)
	done, err := db.Trials()
	if err != nil {
		return err
	}
	for i := range done {
		p.Done(&done[i])
	}
	a.announce(st, h, p, db.Dir(), len(done))
	prog := newProgress(a.stderr, f.json, len(done), once(h.engine.Expected))
	if f.json {
		prog.out = a.stdout
	}
	if h.modelled {
		prog.rehearses(h.pace)
	}
	h.engine.Observe = prog.observe
	runErr := h.engine.Run(ctx, p)
	prog.finish()
	if runErr != nil && !errors.Is(runErr, run.ErrInterrupted) {
		return runErr
	}
	if err := a.finishReport(context.WithoutCancel(ctx), db, f.json); err != nil {
		return err
	}
	if runErr != nil {
		return coded(exitInterrupted, "interrupted; go on with `%s`", goOn(db.Dir(), h.modelled))
	}
	trials, err := db.Trials()
	if err != nil {
		return err
	}
	if n := failedForGood(st, p, trials); n > 0 {
		return coded(exitTrials, "%s failed for good; the report says why", words.Count(n, "cell"))
	}
	if onlyBaselines(st, h.skips) && !h.modelled {
		return coded(exitHost, "nothing but the baseline could run on this host, so that nothing is compared; `tare doctor` says what is missing")
	}
	return nil
}
