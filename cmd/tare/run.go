package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tare/host"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/run"
	"tare/site"
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
	detach  bool
	on      string
	host    string
	log     string
	cluster clusterFlags
	figures prometheusFlags

	resume func(dir, flag string) string // see site.About
	beside string                        // a results folder, whose disk the trials must have
}

func (a *app) runVerb() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run STUDY",
		Short: "Run a study, or resume an interrupted one",
		Args:  exactly(1, "one study file or results folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.logFormat(f.log); err != nil {
				return err
			}
			return a.runStudy(cmd.Context(), args[0], f)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.results, "results", "o", "", "results folder (default results/NAME of the study, with --on model results/NAME-modelled)")
	fl.StringVar(&f.on, "on", "", onHelp)
	hostFlag(cmd, &f.host)
	f.cluster.addImage(fl)
	f.cluster.addApps(fl)
	f.cluster.addAtOnce(fl)
	f.figures.add(fl)
	fl.StringArrayVar(&f.sets, "set", nil, "override the study: factor=level,... (repeatable)")
	budgetFlag(fl)
	fl.StringVar(&f.data, "data", "", "directory on the disk to measure (default "+host.DefaultDirs().Data+")")
	fl.BoolVar(&f.fresh, "fresh", false, "start again in a new folder instead of resuming")
	fl.BoolVar(&f.wait, "wait", false, waitAnywhere)
	fl.BoolVar(&f.detach, "detach", false, "with --on k8s: let the study run without tare; the same command returns to it and fetches the results")
	fl.BoolVar(&f.json, "json", false, "print progress as JSON lines; the last line is the report")
	fl.StringVar(&f.log, "log-format", "text", "messages and progress on standard error: text, or json for an object a line with a summary at the end")
	return cmd
}

func (a *app) runStudy(ctx context.Context, arg string, f runFlags) error {
	if f.detach && f.on != onCluster {
		return coded(exitUsage, "--detach needs --on k8s; other sites run trials only while tare runs")
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	asked, err := f.figures.server(ctx, f.detach)
	if err != nil {
		return err
	}
	where, leave, err := a.siteOn(ctx, f.on, f.host, f.data, f.cluster)
	if err != nil {
		return err
	}
	defer leave()
	at := where.About()
	at.Resume = f.resume
	st, cat, dir, err := a.open(arg, at, f)
	if err != nil {
		return err
	}
	if err := mayWrite(dir, st, at); err != nil {
		return err
	}
	if f.on == onCluster {
		a.sayDropped(st)
	}
	if done, err := nothingLeft(dir, st); err != nil {
		return err
	} else if done {
		return a.reportAgain(ctx, dir, st, at, f.json)
	}
	t := a.newTries(ctx, f.json)
	card, err := readTicket(dir)
	if err != nil {
		return err
	}
	keeps := ticketKeeper{dir: dir, had: card != nil}
	defer keeps.release()
	s, err := where.Open(ctx, site.Request{Study: st, Catalogue: cat, Wait: f.wait, Trying: t.begin, Ticket: card, Keep: keeps.keep})
	end := func() {}
	if err == nil {
		end = s.Close
		defer func() { end() }()
	}
	if err := t.interrupted(err); err != nil {
		return err
	}
	if possible(st, s.Preview().Skips) == 0 {
		a.printSkips(s.Preview().Skips)
		return coded(exitHost, "%s", at.Nothing)
	}
	if why := withoutBaselines(st, s.Preview().Skips); why != nil && !at.Modelled {
		return coded(exitHost, "the baseline cannot run here, so nothing can be compared: %s; or choose another baseline with --set baseline=LEVEL", why.Reason)
	}
	db, err := f.folder(dir, arg, st, at, s.Nodes())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	a.tellAside(db)
	if err := db.SetSkips(context.WithoutCancel(ctx), s.Preview().Skips); err != nil {
		return fmt.Errorf("cannot keep in %s which cells are left out: %w; make room, or repair the disk, and repeat the command", dir, err)
	}
	returned := false
	if r, is := s.(site.Returning); is {
		returned = card != nil && bytes.Equal(card, r.Ticket())
		if err := keeps.keep(r.Ticket()); err != nil {
			return err
		}
		keeps.release() // the folder has its own lock now
		if f.detach {
			end = r.Leave
			a.sayShort(st, s)
			return a.detach(r, at, db, returned)
		}
	}
	if asked != nil {
		s = a.asks(ctx, asked, s)
	}
	return a.measure(ctx, st, at, s, db, f, returned)
}

// follow makes the trials that a plan asks for beside those that are done: on several machines at once, where the site can.
func (a *app) follow(ctx context.Context, e run.Engine, p *plan.Plan, done []record.Trial) error {
	if l, is := e.Session.(site.Lasting); is && e.Session.Preview().AtOnce > 1 {
		if err := l.Lead(done); err != nil {
			a.say("trials run one after another: %v", err)
		}
	}
	return e.Run(ctx, p)
}

// doneBefore returns the trials of a folder, for the plan of a session. A session that has not measured before tries again what had no image, or was not admitted.
func doneBefore(db *store.Store, returned bool) ([]record.Trial, error) {
	done, err := db.Trials()
	for i := range done {
		if t := &done[i]; !returned && t.Failure.Lasting() {
			t.Failure = &record.Failure{Kind: record.Interrupted, Reason: t.Failure.Reason}
		}
	}
	return done, err
}

// measure runs the trials that are still wanted and prints the report. The session may be one that was returned to.
func (a *app) measure(ctx context.Context, st *study.Study, at site.About, s site.Session, db *store.Store, f runFlags, returned bool) error {
	skips, each := s.Preview().Skips, s.Preview().Pace
	p := plan.New(st, skips, run.Nodes(s))
	done, err := doneBefore(db, returned)
	if err != nil {
		return err
	}
	for i := range done {
		p.Done(&done[i])
	}
	a.announce(st, at, s, p, db.Dir(), len(done))
	prog := newProgress(a.stderr, f.json, len(done), once(s.Expected))
	prog.atOnce = s.Preview().AtOnce
	if f.json {
		prog.out = a.stdout
	} else {
		prog.logs = a.logs
	}
	if each > 0 {
		prog.rehearses(each)
	}
	prog.searches = searchesOf(st)
	runErr := a.follow(ctx, run.Engine{Session: s, Store: db, Observe: prog.observe}, p, done)
	prog.finish()
	if a.logs != nil {
		if err := a.logs.count(st.Name, db); err != nil {
			return err
		}
	}
	if errors.Is(runErr, run.ErrNoNode) {
		return coded(exitHost, "%w; what was finished is kept; go on with `%s`", runErr, goOn(db.Dir(), at))
	}
	if runErr != nil && !errors.Is(runErr, site.ErrInterrupted) {
		return runErr
	}
	if err := a.finishReport(context.WithoutCancel(ctx), db, f.json); err != nil {
		return err
	}
	if runErr != nil {
		return coded(exitInterrupted, "interrupted; go on with `%s`", goOn(db.Dir(), at))
	}
	trials, err := db.Trials()
	if err != nil {
		return err
	}
	if n := failedForGood(st, p, trials); n > 0 {
		return coded(exitTrials, "%s failed for good; the report says why", words.Count(n, "cell"))
	}
	if onlyBaselines(st, skips) && !at.Modelled {
		return coded(exitHost, "only the baseline could run, so nothing is compared; the skipped cells have the reasons")
	}
	return nil
}
