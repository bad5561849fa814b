package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"tare/analyse"
	"tare/report/words"
	"tare/store"
)

// maxNamed bounds the names that a warning lists.
const maxNamed = 8

// damage lists what readers of a results folder left out because it does not verify, and
// what the folder lost, as warnings for its report. Read the trials first.
func (r results) damage(ctx context.Context) ([]analyse.Warning, error) {
	all, err := r.Damage(ctx)
	if err != nil {
		return nil, err
	}
	var out []analyse.Warning
	var damaged, lost []string
	for _, d := range all {
		switch d.Kind {
		case store.DamagedTrial:
			damaged = append(damaged, d.Name+" ("+d.Why+")")
		case store.LostRow:
			lost = append(lost, d.Name)
		case store.Unchecked:
			out = append(out, analyse.Warning{Code: "no-checksums", Text: d.Why})
			if k, err := r.kept(); err != nil || k.study.Stop.Fixed == 0 { // a fixed number never stopped on a difference
				out = append(out, olderRule())
			}
		default:
			out = append(out, analyse.Warning{Code: "damaged", Text: strings.TrimSpace(d.Kind+" "+d.Name) + ": " + d.Why})
		}
	}
	if n := len(damaged); n > 0 {
		out = append(out, analyse.Warning{Code: "damaged", Trials: n,
			Text: words.Count(n, "trial") + " did not verify and " + was(n) + " left out: " + named(damaged) + ". Restore the folder from a copy or a bundle, if you have one"})
	}
	if n := len(lost); n > 0 {
		out = append(out, analyse.Warning{Code: "lost-trials", Trials: n,
			Text: "the folder has evidence of " + words.Count(n, "trial") + " without a row in the database: " + named(lost) +
				". The database's log (results.db-wal) was lost or damaged; their measurements are only in series/ and raw/"})
	}
	return out, nil
}

// olderRule is said of results that are older than the rule of stopping by precision,
// which came with the checksums.
func olderRule() analyse.Warning {
	return analyse.Warning{Code: "older-rule", Text: "an older tare measured this: it stopped where a difference was clear, so its large effects are likely overstated. " +
		"The verdicts follow the present rule; continue with tare run on the folder to measure what the present rule asks for"}
}

func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func named(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more, up to %s", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed, names[len(names)-1])
}

// tellDamage prints those warnings if the output has no place for them.
func (a *app) tellDamage(dir string, damage []analyse.Warning) {
	for _, w := range damage {
		a.note("warning: %s: %s: %s", a.given(dir), w.Code, w.Text)
	}
}

// tellAside says what the opening of the folder set aside.
func (a *app) tellAside(db *store.Store) {
	if x := db.SetAside(); x.Trial != "" {
		a.note("warning: trial %s had files but no row in results.db; they are now in %s, and the trial runs again", x.Trial, filepath.Join(a.given(db.Dir()), x.Dir))
	}
}
