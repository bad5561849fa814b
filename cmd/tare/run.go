package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tare/imports"
	"tare/internal/state"
	"tare/plan"
	"tare/record"
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

	d := hostDirs()
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

	h, err := a.setUp(ctx, st, cat, d)
	if err == nil {
		defer h.close()
	}
	if err := interrupted(ctx, err); err != nil {
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

// open finds the study and the results folder. A results folder goes on with
// the study that was copied into it.
func (a *app) open(arg string, f runFlags) (*study.Study, study.Catalogue, string, error) {
	if store.Exists(arg) {
		st, cat, err := a.storedStudy(arg)
		if err == nil {
			err = refuseImported(st.Source, arg)
		}
		if err == nil {
			err = refuseOtherKind(arg, f.on == onModel)
		}
		if err == nil && len(f.sets) > 0 {
			err = coded(exitUsage, "--set would change the study of %s; run the study file with --fresh", arg)
		}
		return st, cat, arg, err
	}
	st, cat, err := readStudy(arg, f.sets)
	if err != nil {
		return nil, cat, "", err
	}
	dir := f.results
	if dir == "" {
		dir = filepath.Join("results", st.Name)
		if f.on == onModel {
			dir += modelledSuffix
		}
	}
	if f.fresh {
		dir = freeName(dir)
	}
	return st, cat, dir, nil
}

// storedStudy reads the study that was copied into a results folder.
func (a *app) storedStudy(dir string) (*study.Study, study.Catalogue, error) {
	cat, err := catalogue()
	if err != nil {
		return nil, cat, err
	}
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		return nil, cat, err
	}
	defer func() { _ = db.Close() }()
	meta, err := db.Meta()
	if err != nil {
		return nil, cat, err
	}
	if im, ok := imports.Of(meta.StudySource); ok {
		cat = im.Study()
	}
	cat.CheckOptions = nil // what was run before a combination was refused stays readable
	st, err := study.Parse(meta.StudyFile, meta.StudySource, cat, meta.Overrides)
	return st, cat, err
}

func freeName(dir string) string {
	name := dir
	for i := 2; store.Exists(name); i++ {
		name = fmt.Sprintf("%s-%d", dir, i)
	}
	return name
}

// openStore opens the folder for writing: a new one, or one of the same study.
func openStore(dir, file string, st *study.Study, h *harness) (*store.Store, error) {
	now := time.Now()
	db, err := store.Create(dir, store.Meta{
		StudySource: st.Source, StudyFile: file, Overrides: st.Overrides, Seed: st.Seed,
		Host: h.host, TareVersion: versionText(), Started: now, Modelled: h.modelled,
	})
	if !errors.Is(err, fs.ErrExist) {
		return db, err
	}
	if db, err = store.Open(dir); err != nil {
		return nil, err
	}
	meta, err := db.Meta()
	if err == nil {
		err = refuseImported(meta.StudySource, dir)
	}
	if err == nil {
		err = otherKind(meta, dir, h.modelled)
	}
	if err == nil && (string(meta.StudySource) != string(st.Source) || !slices.Equal(meta.Overrides, st.Overrides)) {
		err = coded(exitUsage, "%s holds results of another version of this study; "+
			"`%s` goes on with that one, --fresh or --results starts a new folder", dir, goOn(dir, h.modelled))
	}
	if err == nil {
		err = db.BeginSession(context.Background(), now, versionText(), h.host)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// interruptible ends the context at the first SIGINT or SIGTERM; the second
// ends the process, whatever it is doing.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-sigs:
		case <-done:
			return
		}
		fmt.Fprintln(a.stderr, "\ntare: ending what runs and cleaning up; once more to stop at once")
		cancel()
		select {
		case <-sigs:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(sigs); close(done); cancel() }
}

// waitHelp is the help of --wait, of every verb that takes the host.
const waitHelp = "wait for another tare on this host to finish"

// interrupted tells Ctrl-C before the first trial: errors of the checks are then only
// that they were cut short.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return coded(exitInterrupted, "interrupted before anything was measured; the same command begins again")
}

// hold takes the host, waiting for another tare if the user wants that.
func (a *app) hold(ctx context.Context, d dirs, what string, wait bool) (*state.Lock, error) {
	told := 0 // the process that the user was told about
	for {
		lock, err := state.Hold(d.run, what)
		var held *state.HeldError
		if !wait || !errors.As(err, &held) {
			return lock, err
		}
		if told != held.Holder.Pid {
			told = held.Holder.Pid
			fmt.Fprintf(a.stderr, "tare: %v; waiting\n", held)
		}
		select {
		case <-ctx.Done():
			return nil, run.ErrInterrupted
		case <-time.After(100 * time.Millisecond): // as often as tests ask, so that none starves
		}
	}
}

// sweep removes what a killed tare left behind: we hold the host, so nothing of
// it is in use.
func (a *app) sweep(ctx context.Context, d dirs) {
	left, err := cleanHost(ctx, d, false)
	if n := len(left); n > 0 {
		fmt.Fprintf(a.stderr, "tare: removed %s that an earlier run left behind\n", words.Count(n, "thing"))
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "tare: %v\n", err)
	}
}

func cells(st *study.Study) int {
	n := 0
	for i := range st.Strata {
		n += len(st.Strata[i].Cells)
	}
	return n
}

// possible counts the cells that the host can run, the sentinel's and those that
// count system calls left out.
func possible(st *study.Study, skips []record.Skip) int {
	n := cells(st)
	for _, s := range skips {
		if (st.Sentinel == nil || s.Cell.Key() != st.Sentinel.Cell.Key()) && !study.IsCounting(s.Cell) {
			n--
		}
	}
	return n
}

// onlyBaselines says whether the host skips all that the study compares with a baseline.
// A study that compares nothing asked for nothing more.
func onlyBaselines(st *study.Study, skips []record.Skip) bool {
	skipped := map[string]bool{}
	for _, s := range skips {
		skipped[s.Cell.Key()] = true
	}
	others := 0
	for i := range st.Strata {
		for j, c := range st.Strata[i].Cells {
			if j == st.Strata[i].Baseline {
				continue
			}
			if !skipped[c.Key()] {
				return false
			}
			others++
		}
	}
	return others > 0
}

// announce says what is about to happen, or that nothing is left to do.
func (a *app) announce(st *study.Study, h *harness, p *plan.Plan, dir string, done int) {
	if _, more := p.Next(); !more {
		fmt.Fprintf(a.stderr, "tare: the study in %s is finished; --fresh runs it again in a new folder\n", dir)
		return
	}
	r := p.Remaining(h.engine.Expected)
	host := "this host cannot run"
	if h.modelled {
		host = "the model does not know"
		a.announceRehearsal(h, r)
	}
	fmt.Fprintf(a.stderr, "tare: study %s, %s, %s done, %s to do in %s; results in %s\n", st.Name, words.Count(cells(st), "cell"), words.Count(done, "trial"),
		span(strconv.Itoa(r.AtLeast), strconv.Itoa(r.AtMost)), span(words.Duration(r.LeastTime), words.Duration(r.MostTime)), dir)
	if n := cells(st) - possible(st, h.skips); n > 0 {
		are, them := "are", "them"
		if n == 1 {
			are, them = "is", "it"
		}
		fmt.Fprintf(a.stderr, "tare: %s %s skipped, because %s %s:\n", words.Count(n, "cell"), are, host, them)
		a.printSkips(h.skips)
	}
	if s := st.Sentinel; s != nil && !p.Watches() {
		fmt.Fprintf(a.stderr, "tare: no sentinel watches the machine: %s\n", withoutSentinel(st, h))
	}
	for _, s := range h.skips {
		if study.IsCounting(s.Cell) {
			fmt.Fprintf(a.stderr, "tare: %s\n", s.Reason)
		}
	}
}

// withoutSentinel says why a study that should have a sentinel goes on without.
func withoutSentinel(st *study.Study, h *harness) string {
	for _, s := range h.skips {
		if s.Cell.Key() == st.Sentinel.Cell.Key() {
			if h.modelled {
				return s.Reason
			}
			return "this host cannot run it: " + s.Reason
		}
	}
	return "the study was begun without, or it failed again and again"
}

// span is a range, or its one value.
func span(least, most string) string {
	if least == most {
		return least
	}
	return least + " to " + most
}

// failedForGood counts the cells that were given up, or that ran and never well.
// The sentinel is none of them, nor is a trial that counts system calls: without
// either the results are as good.
func failedForGood(st *study.Study, p *plan.Plan, trials []record.Trial) int {
	good, ran := map[string]bool{}, map[string]record.Cell{}
	for i := range trials {
		key := trials[i].Cell.Key()
		if st.Sentinel != nil && key == st.Sentinel.Cell.Key() || study.IsCounting(trials[i].Cell) {
			continue
		}
		ran[key] = trials[i].Cell
		good[key] = good[key] || trials[i].Status == record.OK
	}
	n := 0
	for key, cell := range ran {
		if !good[key] || p.GaveUp(cell) != "" {
			n++
		}
	}
	return n
}

func (a *app) printSkips(skips []record.Skip) {
	seen := map[string]bool{}
	for _, s := range skips {
		if !seen[s.Reason] && !study.IsCounting(s.Cell) {
			seen[s.Reason] = true
			fmt.Fprintf(a.stderr, "tare: %s\n", s.Reason)
		}
	}
}
