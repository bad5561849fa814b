package main

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"tare/analyse"
	collectall "tare/collect/all"
	"tare/plan"
	"tare/record"
	"tare/report/text"
	"tare/run"
	"tare/store"
	"tare/study"
)

func (a *app) planVerb() *cobra.Command {
	var f struct {
		sets []string
		json bool
		dry  bool
		wait bool
		on   string
		from string
		want string
	}
	cmd := &cobra.Command{
		Use:   "plan STUDY",
		Short: "Say what a study would do, without doing it",
		Long: `Check a study file and say what running it would do: its cells, its trials at
least and at most, the order of the first pass, the time it should take, and what
this host cannot do. Sandboxes are tried for a moment, no workload is run.

With --from it says how many blocks each comparison takes until its interval is as
narrow as the study (or --width) asks, and how long that takes. It reads the scatter
from an earlier result, of this study or another. To get one, run a few blocks with
"tare run STUDY --set stop.fixed=3 --results pilot".

With --on model it says what the model does not know, and, beside the time that
measuring would take, the time of the rehearsal on this machine. Nothing is tried.`,
		Example: `  tare plan studies/first.yaml
  tare plan studies/first.yaml --set sandbox=process,runc --json
  tare plan studies/first.yaml --no-check     on a machine that will not run it
  tare plan studies/kata-network.yaml --on model
  tare plan studies/first.yaml --from results/first --width 5%`,
		Args: exactly(1, "one study file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, cat, err := readStudy(args[0], f.sets)
			if err != nil {
				return err
			}
			if err := checkOn(f.on); err != nil {
				return err
			}
			if err := checkNeed(f.from, f.want, f.on); err != nil {
				return err
			}
			if f.on == onModel {
				return a.planRehearsal(st, cat, f.json)
			}
			var skips []record.Skip
			if !f.dry {
				if skips, err = a.tryHost(cmd.Context(), st, cat, f.wait, f.json); err != nil {
					return err
				}
			}
			view, err := planView(st, cat, skips)
			if err != nil {
				return err
			}
			if f.from != "" {
				if view.Need, err = a.need(cmd.Context(), st, cat, f.from, f.want); err != nil {
					return err
				}
			}
			if f.json {
				return a.printJSON(view)
			}
			return text.WritePlan(a.stdout, view, a.textOptions(""))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "override the study: factor=level,... (repeatable)")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.dry, "no-check", false, "do not try what this host can do")
	fl.BoolVar(&f.wait, "wait", false, waitHelp)
	fl.StringVar(&f.on, "on", "", onHelp)
	fl.StringVar(&f.from, "from", "", "say how many blocks are needed, by the scatter in this results `folder`")
	fl.StringVar(&f.want, "width", "", "with --from: the wanted half-width of intervals, such as 5% (default: the study's)")
	return cmd
}

// checkNeed refuses flags that contradict each other.
func checkNeed(from, width, on string) error {
	switch {
	case from == "" && width != "":
		return coded(exitUsage, "--width needs the results that tell the scatter; add --from DIR")
	case from != "" && on == onModel:
		return coded(exitUsage, "--from and --on model exclude each other: the model has no scatter of its own")
	}
	return nil
}

// need says what the study's comparisons take, by an earlier result. The wanted width is the
// study's if it is "".
func (a *app) need(ctx context.Context, st *study.Study, cat study.Catalogue, from, width string) (*text.Need, error) {
	n := &text.Need{From: from, Width: cmp.Or(st.Stop.Width, st.Stop.Margin/2)}
	if width != "" {
		var err error
		if n.Width, err = share("width", width); err != nil {
			return nil, err
		}
		if n.Width == 0 {
			return nil, coded(exitUsage, "no number of blocks gives a width of 0; write one such as --width 5%%")
		}
	}
	db, err := store.OpenReadOnly(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	earlier, err := a.analyse(ctx, db)
	if err != nil {
		return nil, err
	}
	e := &run.Engine{Study: st, Catalogue: cat, Workloads: workloads()}
	if e.Kinds, _, err = kindsFrom("", st.Sandboxes, nil); err != nil {
		return nil, err
	}
	n.Rows = analyse.Needs(st, n.Width, earlier.result, earlier.trials, e.Expected)
	n.Time, n.Never = analyse.NeedTime(n.Rows)
	return n, nil
}

// planRehearsal is the plan of a rehearsal, with its time.
func (a *app) planRehearsal(st *study.Study, cat study.Catalogue, asJSON bool) error {
	h, err := rehearsal(st, cat)
	if err != nil {
		return err
	}
	view, err := planView(st, cat, h.skips)
	if err != nil {
		return err
	}
	view.Rehearsal = &text.Rehearsal{Least: time.Duration(view.Progress.AtLeast) * h.pace, Most: time.Duration(view.Progress.AtMost) * h.pace}
	if asJSON {
		return a.printJSON(view)
	}
	return text.WritePlan(a.stdout, view, a.textOptions(""))
}

// tryHost says which cells this host cannot run. It needs the host for a
// moment, because it starts a container of each kind.
func (a *app) tryHost(ctx context.Context, st *study.Study, cat study.Catalogue, wait, asJSON bool) (skips []record.Skip, err error) {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	t := a.newTries(ctx, asJSON)
	defer func() { err = t.interrupted(err) }()
	d, err := ownDirs()
	if err != nil {
		return nil, err
	}
	lock, err := a.hold(ctx, d, "plan of "+st.Name, wait)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Release() }()
	defer a.sweepIfEnded(ctx, d)
	if os.Geteuid() == 0 {
		_, release, err := a.place(ctx)
		if err != nil {
			a.say("%v", err)
		}
		defer func() { _ = release() }()
	}
	checks, remove, err := makeChecks(d, runID(os.Getpid()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = remove() }()
	e := &run.Engine{Study: st, Catalogue: cat, Workloads: workloads(), Counting: collectall.Counting(), Trying: t.begin}
	if os.Geteuid() == 0 { // as a run has it, where nothing is put yet
		e.Dirs.Memory = memoryBase(memoryPlaces()...)
	}
	if e.Kinds, _, err = kinds(checks, st.Sandboxes); err != nil {
		return nil, err
	}
	needs, err := e.Needs()
	if err != nil {
		return nil, err
	}
	if err := a.imagesAsPlanned(e); err != nil {
		return nil, err
	}
	return e.Skips(ctx, absent(needs), runtime.NumCPU())
}

// planView is the plan as data. The kinds only tell how long they take.
func planView(st *study.Study, cat study.Catalogue, skips []record.Skip) (text.Plan, error) {
	e := &run.Engine{Study: st, Catalogue: cat, Workloads: workloads()}
	var err error
	if e.Kinds, _, err = kindsFrom("", st.Sandboxes, nil); err != nil {
		return text.Plan{}, err
	}
	p := plan.New(st, skips)
	return text.Plan{Study: st, Skips: skips, Progress: p.Remaining(e.Expected), Order: p.Preview(maxPreview)}, nil
}

// maxPreview bounds how many trials of the first pass are listed.
const maxPreview = 200
