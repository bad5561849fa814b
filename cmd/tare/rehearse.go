package main

import (
	"context"
	"fmt"
	"time"

	"tare/modelled"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/run"
	"tare/store"
	"tare/study"
)

// onModel is the one value of --on: what plays host and sandboxes.
const onModel = "model"

const onHelp = "model: rehearse on a model, without sandboxes; left out: this host"

// modelledSuffix ends the default folder of a rehearsal.
const modelledSuffix = "-modelled"

// checkOn refuses what a study cannot run on.
func checkOn(on string) error {
	if on != "" && on != onModel {
		return coded(exitUsage, "--on %s: write --on model for a rehearsal, or leave it out to measure this host", on)
	}
	return nil
}

// rehearse runs a study on the model: no host is held, nothing is started.
func (a *app) rehearse(ctx context.Context, st *study.Study, cat study.Catalogue, dir, arg string, f runFlags) error {
	if f.data != "" {
		return coded(exitUsage, "--data names a disk to be measured, and --on model measures none; leave one of them out")
	}
	h, err := rehearsal(st, cat)
	if err != nil {
		return err
	}
	if possible(st, h.skips) == 0 {
		a.printSkips(h.skips)
		return coded(exitHost, "the model knows no cell of the study; docs/model.md says what it knows")
	}
	return a.keepAndMeasure(ctx, st, h, dir, arg, f)
}

// rehearsal is the harness of one: an engine that stands on nothing of this host.
func rehearsal(st *study.Study, cat study.Catalogue) (*harness, error) {
	h := &harness{modelled: true, host: modelled.Host(), engine: &run.Engine{Study: st, Catalogue: cat, Workloads: workloads()}}
	var err error
	if h.engine.Kinds, _, err = kindsFrom("", st.Sandboxes, nil); err != nil { // they tell how long they would take
		return nil, err
	}
	player := modelled.New(st, cat, h.engine.Expected)
	h.engine.Make = player.Trial
	if h.skips, err = player.Skips(); err != nil {
		return nil, err
	}
	h.pace = player.Pace(h.skips)
	return h, nil
}

// announceRehearsal says what kind of figures will come, and what real ones would
// take.
func (a *app) announceRehearsal(h *harness, r plan.Progress) {
	p := pace{each: h.pace}
	a.say("a rehearsal on the model, in about %s: its figures are modelled, not measured; the next line says how long the study takes on a machine", p.left(r))
}

// goOn is the command that goes on with a results folder.
func goOn(dir string, modelled bool) string {
	if modelled {
		return "tare run " + words.Path(dir) + " --on model"
	}
	return "tare run " + words.Path(dir)
}

// otherKind says why a folder of modelled results is not gone on with by measuring,
// nor the other way round.
func otherKind(meta store.Meta, dir string, modelled bool) error {
	switch {
	case meta.Modelled == modelled:
		return nil
	case modelled:
		return coded(exitUsage, "%s holds measured results, and modelled ones are never mixed with them; `%s` goes on with measuring, --results names another folder for the rehearsal", dir, goOn(dir, false))
	}
	return coded(exitUsage, "%s holds modelled results, and measured ones are never mixed with them; `%s` goes on with the rehearsal, --results names another folder to measure into", dir, goOn(dir, true))
}

// refuseOtherKind is otherKind of a folder that is not open.
func refuseOtherKind(dir string, modelled bool) error {
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	meta, err := db.Meta()
	if err != nil {
		return err
	}
	return otherKind(meta, dir, modelled)
}

// pace is how fast a rehearsal goes: its trials say how long real ones take. Nil is
// the pace of real ones.
type pace struct {
	each  time.Duration // of a trial, before any was made
	began time.Time
	done  int
}

// rehearses makes p tell the time of a rehearsal that begins now.
func (p *progress) rehearses(each time.Duration) { p.pace = &pace{each: each, began: time.Now()} }

// count counts a trial.
func (p *pace) count() {
	if p != nil {
		p.done++
	}
}

// left is the time for what is left.
func (p *pace) left(r plan.Progress) string {
	if p == nil {
		return span(words.Duration(r.LeastTime), words.Duration(r.MostTime))
	}
	each := p.each
	if p.done > 0 {
		each = time.Since(p.began) / time.Duration(p.done)
	}
	return span(words.Duration(time.Duration(r.AtLeast)*each), words.Duration(time.Duration(r.AtMost)*each))
}

// mark begins a line of progress.
func (p *pace) mark() string {
	if p == nil {
		return ""
	}
	return "modelled: "
}

// took is how long a trial took, or that it took none of a machine's time.
func (p *pace) took(t *record.Trial) string {
	if p == nil {
		return fmt.Sprintf("%.1f s", t.Duration.Seconds())
	}
	return "modelled"
}
