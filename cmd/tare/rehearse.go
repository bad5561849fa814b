package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/modelled"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/site"
	"tare/store"
)

// announceRehearsal says what kind of figures will come, and what real ones would
// take.
func (a *app) announceRehearsal(each time.Duration, r plan.Progress) {
	p := pace{each: each}
	a.say("a rehearsal on the model, in about %s, longer on a busy machine: its figures are modelled, not measured; the next line says how long the study takes on a real machine", p.left(r))
}

// goOn is the command that goes on with a results folder at a site.
func goOn(dir string, at site.About) string {
	if at.Resume != nil {
		return at.Resume(dir, at.Flag)
	}
	return strings.Join(slices.DeleteFunc([]string{"tare run", words.Path(dir), at.Flag, at.Reach}, func(s string) bool { return s == "" }), " ")
}

// otherSite is a site as another flag selects it.
func otherSite(at site.About, flag string) site.About {
	at.Flag, at.Reach = flag, ""
	return at
}

// otherKind says why modelled and measured results are not mixed in a folder.
func otherKind(meta store.Meta, dir string, at site.About) error {
	if meta.Modelled == at.Modelled {
		return otherPlace(meta, dir, at)
	}
	has, wants, flag := "measured", "modelled", ""
	if meta.Modelled {
		has, wants, flag = wants, has, modelled.Site{}.About().Flag
	}
	return coded(exitUsage, "%s holds %s results, and they are never mixed with %s ones; `%s` resumes those, --results names another folder for these",
		dir, has, wants, goOn(dir, otherSite(at, flag)))
}

// otherPlace says why results of a cluster and those of a host are not mixed in a folder, nor those of two places for data.
func otherPlace(meta store.Meta, dir string, at site.About) error {
	const flag = "--on " + onCluster
	_, of := meta.Host.Tools[record.ToolKubelet]
	switch on := strings.HasPrefix(at.Flag, flag); {
	case of && !on:
		return coded(exitUsage, "%s holds results of a Kubernetes cluster, and they are never mixed with those of a host; `%s` and the cluster's flags resume those, --results names another folder for these",
			dir, goOn(dir, otherSite(at, flag)))
	case on && !of:
		return coded(exitUsage, "%s holds results of a host, and they are never mixed with those of a cluster; `%s` resumes those, --results names another folder for these", dir, goOn(dir, otherSite(at, "")))
	case !of && (strings.HasPrefix(at.Flag, dataFlag) || strings.HasPrefix(meta.Flags, dataFlag)) && at.Flag != meta.Flags:
		return coded(exitUsage, "%s holds trials whose files were in another directory, perhaps on another disk, and they are never mixed; `%s` resumes those, --results names another folder for these",
			dir, goOn(dir, otherSite(at, meta.Flags)))
	}
	return nil
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
