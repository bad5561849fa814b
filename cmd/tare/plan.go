package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"tare/analyse"
	"tare/plan"
	"tare/report/text"
	"tare/site"
	"tare/site/remote"
	"tare/study"
)

type planFlags struct {
	sets []string
	json bool
	dry  bool
	wait bool
	on   string
	host string
	from string
	want string

	cluster   clusterFlags
	manifests bool
	dryRun    string
}

func (a *app) planVerb() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan STUDY",
		Short: "Show what a study would do, without running it",
		Args:  exactly(1, "one study file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.on == onCluster || f.manifests || f.dryRun != "" {
				if err := f.checkCluster(); err != nil {
					return err
				}
				return a.planOnCluster(cmd.Context(), args[0], f)
			}
			st, cat, err := readStudyOf(offered, nil, args[0], f.sets)
			if err != nil {
				return err
			}
			if err := checkNeed(f.from, f.want, f.on); err != nil {
				return err
			}
			if _, err := a.siteHere(f.on, ""); err != nil {
				return err
			}
			var known site.Preview
			if !f.dry {
				if known, err = a.preview(cmd.Context(), f.on, f.host, clusterFlags{}, site.Request{Study: st, Catalogue: cat, Wait: f.wait}, f.json); err != nil {
					return err
				}
			}
			view, err := planView(site.Request{Study: st, Catalogue: cat}, known, expected)
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
	budgetFlag(fl)
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.dry, "no-check", false, "do not check what this host can run")
	fl.BoolVar(&f.wait, "wait", false, waitAnywhere)
	fl.StringVar(&f.on, "on", "", onHelp)
	hostFlag(cmd, &f.host)
	f.cluster.addImage(fl)
	f.cluster.addApps(fl)
	fl.BoolVar(&f.manifests, "manifests", false, "with --on k8s: print the objects that the study makes, as YAML")
	fl.StringVar(&f.dryRun, "dry-run", "", "with --on k8s: server has the API server judge those objects")
	fl.StringVar(&f.from, "from", "", "say how many blocks are needed, from the scatter in this results `folder`")
	fl.StringVar(&f.want, "width", "", "with --from: the wanted half-width of intervals, such as 5% (default: the study's)")
	return cmd
}

// checkNeed refuses flags that contradict each other.
func checkNeed(from, width, on string) error {
	switch {
	case from == "" && width != "":
		return coded(exitUsage, "--width needs results to take the scatter from; add --from DIR")
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
	earlier, err := analyseResults(ctx, from, figures)
	if err != nil {
		return nil, err
	}
	takes, err := expected(site.Request{Study: st, Catalogue: cat})
	if err != nil {
		return nil, err
	}
	n.Rows = analyse.Needs(st, n.Width, earlier.result, earlier.trials, takes)
	n.Time, n.Never = analyse.NeedTime(n.Rows)
	return n, nil
}

// preview asks the site what it cannot run, and tells what takes long.
func (a *app) preview(ctx context.Context, on, host string, k clusterFlags, r site.Request, asJSON bool) (site.Preview, error) {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	at, leave, err := a.siteOn(ctx, on, host, "", k)
	if err != nil {
		return site.Preview{}, err
	}
	defer leave()
	t := a.newTries(ctx, asJSON)
	r.Trying = t.begin
	known, err := at.Preview(ctx, r)
	return known, t.interrupted(err)
}

// planView is the plan as data.
func planView(r site.Request, known site.Preview, of remote.Takes) (text.Plan, error) {
	takes, err := of(r)
	if err != nil {
		return text.Plan{}, err
	}
	st := r.Study
	p := plan.New(st, known.Skips, nil)
	view := text.Plan{Study: st, Skips: known.Skips, Progress: p.Remaining(takes), Order: p.Preview(maxPreview), Short: plan.Short(st, known.Skips, nil, takes)}
	if known.Pace > 0 {
		view.Rehearsal = &text.Rehearsal{Least: time.Duration(view.Progress.AtLeast) * known.Pace, Most: time.Duration(view.Progress.AtMost) * known.Pace}
	}
	return view, nil
}

// maxPreview bounds how many trials of the first pass are listed.
const maxPreview = 200
