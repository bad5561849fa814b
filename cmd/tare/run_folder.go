package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/analyse"
	"tare/cluster/pod"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/site"
	"tare/store"
	"tare/study"
)

// open finds the study and the results folder. A results folder goes on with
// the study that was copied into it.
func (a *app) open(arg string, at site.About, f runFlags) (*study.Study, study.Catalogue, string, error) {
	if k, err := inResults(arg, results.kept); !errors.Is(err, store.ErrNoResults) || errors.Is(err, store.ErrEmpty) {
		if err == nil {
			err = mayGoOn(k.meta, arg, at)
		}
		if err == nil {
			err = f.goesOn(arg)
		}
		if err == nil {
			err = a.here(&k, f.sets)
		}
		return k.study, k.cat, arg, err
	}
	st, cat, err := readStudyOf(a.offersHere(), a.has, arg, f.sets)
	if err != nil {
		return nil, cat, "", err
	}
	dir := cmp.Or(f.results, filepath.Join("results", st.Name)+at.Suffix)
	if f.fresh {
		dir = freeName(dir)
	}
	return st, cat, dir, nil
}

// offersHere tells of what a study can be made at the site.
func (a *app) offersHere() func() (study.Catalogue, error) {
	if a.offers != nil {
		return a.offers
	}
	return offered
}

// here reads the study of a results folder again, for trials at this site: its sandboxes have the parameters that the
// site gives them. As kept read it, they also have those of other sites, which a sandbox that starts would refuse.
func (a *app) here(k *kept, sets []string) error {
	cat, err := a.offersHere()()
	if err != nil {
		return err
	}
	known := cat.Sandboxes
	cat.Stored, cat.ReadFile = true, nil
	cat.Others = func(level string) []param.Param {
		if _, is := known[level]; is {
			return nil
		}
		return pod.ParamsOf(level)
	}
	k.cat = cat
	k.study, err = study.Parse(k.meta.StudyFile, k.meta.StudySource, cat, replaced(k.meta.Overrides, sets))
	return err
}

// replaced are overrides in which those of sets take the place of others for the same key.
func replaced(overrides, sets []string) []string {
	key := func(s string) string {
		name, _, _ := strings.Cut(s, "=")
		return strings.TrimSpace(name)
	}
	kept := slices.DeleteFunc(slices.Clone(overrides), func(o string) bool {
		return slices.ContainsFunc(sets, func(s string) bool { return key(s) == key(o) })
	})
	return append(kept, sets...)
}

// goesOn refuses flags that cannot apply to the study of a results folder.
func (f *runFlags) goesOn(dir string) error {
	switch {
	case len(unlimited(f.sets)) > 0:
		return coded(exitUsage, "--set %s would change the study of %s, which can continue only with the same study or a larger budget; run the study file with --fresh", words.Shell(unlimited(f.sets)[0]), dir)
	case f.fresh:
		return coded(exitUsage, "--fresh needs a study file, but %s is a results folder; give the study file, or leave --fresh out to continue the study", dir)
	case f.results != "" && filepath.Clean(f.results) != filepath.Clean(dir):
		return coded(exitUsage, "-o %s: the study of %s continues in its own folder; leave -o out, or give the study file", f.results, dir)
	}
	return nil
}

// mayGoOn refuses results that a run cannot go on with: imported ones, and those that were
// measured where this run is a rehearsal, or the other way round.
func mayGoOn(meta store.Meta, dir string, at site.About) error {
	if err := refuseImported(meta.StudySource, dir); err != nil {
		return err
	}
	return otherKind(meta, dir, at)
}

func freeName(dir string) string {
	name := dir
	for i := 2; store.Exists(name); i++ {
		name = fmt.Sprintf("%s-%d", dir, i)
	}
	return name
}

// mayWrite refuses a folder that another tare writes to, or that holds another study, before the site
// starts or disturbs anything.
func mayWrite(dir string, st *study.Study, at site.About) error {
	if w := store.Writer(dir); w != nil {
		return w
	}
	db, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrNoResults) {
		if err = store.Vacant(dir); err != nil {
			return coded(exitUsage, "cannot write results to %s: %w", dir, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	_, err = sameStudy(db, st, at)
	return errors.Join(err, db.Close())
}

// nothingLeft reports whether a folder's study is finished, so that it needs no session, whatever the site can do now. It is
// finished if no cell was skipped or failed, and no trials wait on a cluster. Cells that count calls may be missing.
func nothingLeft(dir string, st *study.Study) (bool, error) {
	if card, err := readTicket(dir); card != nil || err != nil {
		return false, err
	}
	db, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrNoResults) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }()
	meta, err := db.Meta()
	if err != nil {
		return false, err
	}
	skips, err := db.Skips()
	if err != nil || slices.ContainsFunc(skips, func(k record.Skip) bool { _, counts := k.Cell.Get(study.FactorCounting); return !counts }) {
		return false, err
	}
	done, err := db.Trials()
	if err != nil {
		return false, err
	}
	var nodes []string
	for i := range meta.Nodes {
		nodes = append(nodes, meta.Nodes[i].Name)
	}
	p := plan.New(st, skips, nodes)
	for i := range done {
		p.Done(&done[i])
	}
	return len(done) > 0 && len(p.Together()) == 0 && failedForGood(st, p, done) == 0, nil
}

// reportAgain prints the report of a finished study and writes the report's files.
func (a *app) reportAgain(ctx context.Context, dir string, st *study.Study, at site.About, asJSON bool) error {
	db, err := store.Open(dir)
	if err != nil {
		return err
	}
	a.sayFinished(dir, st)
	if meta, err := db.Meta(); err == nil && meta.Flags != "" && meta.Flags != at.Flag {
		a.say("its trials ran with `%s`; the flags of this command that differ have no effect", meta.Flags)
	}
	return errors.Join(a.finishReport(ctx, db, asJSON), db.Close())
}

// sameStudy refuses results that a run of the study cannot go on with. grown: the run has a larger budget.
func sameStudy(db *store.Store, st *study.Study, at site.About) (grown bool, err error) {
	meta, err := db.Meta()
	if err != nil {
		return false, err
	}
	if err := mayGoOn(meta, db.Dir(), at); err != nil {
		return false, err
	}
	if bytes.Equal(meta.StudySource, st.Source) && slices.Equal(meta.Overrides, st.Overrides) {
		return false, nil
	}
	if bytes.Equal(study.Unlimited(meta.StudySource), study.Unlimited(st.Source)) && slices.Equal(unlimited(meta.Overrides), unlimited(st.Overrides)) {
		return true, largerBudget(db, st, at)
	}
	if at.Resume != nil { // its flags are part of the study
		return false, coded(exitUsage, "%s holds results of another version of this study; `%s --fresh` starts a new folder, and so does another --results; to resume that version, give the flags that it had",
			db.Dir(), goOn(db.Dir(), at))
	}
	return false, coded(exitUsage, "%s holds results of another version of this study; "+
		"`%s` resumes that one, --fresh or --results starts a new folder", db.Dir(), goOn(db.Dir(), at))
}

// unlimited are the overrides that set no budget.
func unlimited(overrides []string) []string {
	return slices.DeleteFunc(slices.Clone(overrides), func(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "budget.") })
}

// largerBudget refuses a budget that is smaller than that of the results. With a larger one a study goes on as if it had had that from the
// start: the plan walks through its trials again, and asks for those that are missing.
func largerBudget(db *store.Store, st *study.Study, at site.About) error {
	k, err := results{db}.kept()
	if err != nil {
		return err
	}
	least := func(limit int64) int64 { return cmp.Or(limit, math.MaxInt64) } // 0 is no limit
	old := k.study.Budget
	if least(int64(st.Budget.Time)) < least(int64(old.Time)) || least(int64(st.Budget.Blocks)) < least(int64(old.Blocks)) {
		what, or := "study", ", or give the folder: `"+goOn(db.Dir(), at)+"`"
		if at.Resume != nil { // its flags are part of the study
			what, or = "search", ""
		}
		return coded(exitUsage, "%s holds this %s with a larger budget (%s); give at least that budget to continue%s; --fresh starts a new folder", db.Dir(), what, budgetOf(old), or)
	}
	return nil
}

// budgetOf is a budget in words.
func budgetOf(b study.Budget) string {
	return cmp.Or(strings.TrimSuffix(words.Budget(b), "."), "no limit")
}

// grow stores the larger budget of a study, and that it had another one.
func grow(db *store.Store, st *study.Study) error {
	k, err := results{db}.kept()
	if err != nil {
		return err
	}
	earlier := k.meta.Earlier
	if k.study.Budget != st.Budget {
		now, err := db.State(context.Background())
		if err != nil {
			return err
		}
		earlier = append(earlier, store.Budget{Time: k.study.Budget.Time, Blocks: k.study.Budget.Blocks, Trials: now.Trials})
	}
	return db.SetStudy(context.Background(), st.Source, st.Overrides, earlier)
}

// raised says which budgets the study of a results folder had before.
func (k *kept) raised() []analyse.Warning {
	if len(k.meta.Earlier) == 0 {
		return nil
	}
	var had []string
	for _, b := range k.meta.Earlier {
		was := budgetOf(study.Budget{Time: b.Time, Blocks: b.Blocks})
		had = append(had, fmt.Sprintf("%s until %s were stored", strings.ToLower(was[:1])+was[1:], words.Count(b.Trials, "trial")))
	}
	return []analyse.Warning{{Code: "budget-raised", Text: "the budget was raised during the study, which then went on: it was " + strings.Join(had, ", then ")}}
}

// sameDisk refuses to go on where trials had their files on another disk, or on another file system of it, than the next ones would.
func sameDisk(db *store.Store, nodes []record.Node) error {
	return otherDisk(db, nodes, "trials on two disks are never mixed; bring the first disk back, or start a new folder with --fresh")
}

// otherDisk refuses another disk than that of the trials of a folder. why says why, and what to do.
func otherDisk(db *store.Store, nodes []record.Node, why string) error {
	meta, err := db.Meta()
	if err != nil || len(meta.Nodes) == 0 || len(nodes) == 0 {
		return err
	}
	had, has := meta.Nodes[0].Host.Data, nodes[0].Host.Data
	if had == "" || has == "" || had == has {
		return nil
	}
	for t, err := range db.All(context.Background()) {
		if err != nil {
			return err
		}
		for name, fact := range t.Facts {
			if strings.Contains(name, "."+record.FactStorage) && strings.HasSuffix(fact, had) {
				return coded(exitUsage, "%s holds trials whose files were on %s; the directory for data is now on %s, and %s", db.Dir(), had, has, why)
			}
		}
	}
	return nil
}

// folder opens the folder of a run as openStore does. What verifies results must have their disk.
func (f *runFlags) folder(dir, file string, st *study.Study, at site.About, nodes []record.Node) (*store.Store, error) {
	if f.beside != "" {
		db, err := store.OpenReadOnly(f.beside)
		if err != nil {
			return nil, err
		}
		err = otherDisk(db, nodes, "what holds on one disk need not hold on another; bring the first disk back, or name a directory on it with --data")
		if err := errors.Join(err, db.Close()); err != nil {
			return nil, err
		}
	}
	return openStore(dir, file, st, at, nodes)
}

// openStore opens the folder for writing: a new one, or one of the same study.
func openStore(dir, file string, st *study.Study, at site.About, nodes []record.Node) (*store.Store, error) {
	now := time.Now()
	db, err := store.Open(dir)
	if errors.Is(err, store.ErrNoResults) {
		return store.Create(dir, store.Meta{
			StudySource: st.Source, StudyFile: file, Overrides: st.Overrides, Seed: st.Seed,
			Nodes: nodes, TareVersion: versionText(), Started: now, Modelled: at.Modelled, Flags: at.Flag,
		})
	}
	if err != nil {
		return nil, err
	}
	grown, err := sameStudy(db, st, at)
	if err == nil {
		err = sameDisk(db, nodes)
	}
	if err == nil && grown {
		err = grow(db, st)
	}
	if err == nil {
		err = db.BeginSession(context.Background(), now, versionText(), nodes)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
