package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/site"
	"tare/store"
	"tare/study"
)

// TestFolderGoesOnWithTheSitesParameters: the study of a results folder goes on with the parameters that this site's sandboxes
// have. Each kind refuses those of a cluster's pods.
func TestFolderGoesOnWithTheSitesParameters(t *testing.T) {
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	for kind, info := range cat.Sandboxes {
		const source = "study: x\nbaseline: KIND\nfactors: {sandbox: [KIND]}\nworkloads:\n  w: {kind: fio, size: 16MiB, target: image}\n"
		dir := filepath.Join(t.TempDir(), "r")
		db, err := store.Create(dir, store.Meta{StudySource: []byte(strings.ReplaceAll(source, "KIND", kind)), StudyFile: "x.yaml", Seed: 1, Nodes: []record.Node{{}}, TareVersion: "x", Started: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for _, sets := range [][]string{nil, {"budget.time=1h"}} {
			st, cat, _, err := (&app{}).open(dir, site.About{}, runFlags{sets: sets})
			if err != nil {
				t.Fatal(kind, err)
			}
			res := resolved(t, st, cat)
			if _, err := param.Fill(info.Params, res.Options); err != nil {
				t.Errorf("%s, with %q: %v", kind, sets, err)
			}
		}
	}
}

func resolved(t *testing.T, st *study.Study, cat study.Catalogue) study.Resolved {
	t.Helper()
	res, err := st.Resolve(cat, st.Strata[0].Cells[0])
	if err != nil {
		t.Fatal(err)
	}
	return res
}
