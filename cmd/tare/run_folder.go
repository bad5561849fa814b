package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"tare/imports"
	"tare/record"
	"tare/site"
	"tare/store"
	"tare/study"
)

// open finds the study and the results folder. A results folder goes on with
// the study that was copied into it.
func (a *app) open(arg string, at site.About, f runFlags) (*study.Study, study.Catalogue, string, error) {
	if store.Exists(arg) {
		st, cat, err := a.storedStudy(arg)
		if err == nil {
			err = refuseImported(st.Source, arg)
		}
		if err == nil {
			err = refuseOtherKind(arg, at)
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
		dir = filepath.Join("results", st.Name) + at.Suffix
	}
	if f.fresh {
		dir = freeName(dir)
	}
	return st, cat, dir, nil
}

// storedStudy reads the study that was copied into a results folder.
func (a *app) storedStudy(dir string) (*study.Study, study.Catalogue, error) {
	cat, err := offered()
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
	cat.Stored = true
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
func openStore(dir, file string, st *study.Study, at site.About, nodes []record.Node) (*store.Store, error) {
	now := time.Now()
	db, err := store.Create(dir, store.Meta{
		StudySource: st.Source, StudyFile: file, Overrides: st.Overrides, Seed: st.Seed,
		Host: nodes[0].Host, TareVersion: versionText(), Started: now, Modelled: at.Modelled,
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
		err = otherKind(meta, dir, at)
	}
	if err == nil && (string(meta.StudySource) != string(st.Source) || !slices.Equal(meta.Overrides, st.Overrides)) {
		err = coded(exitUsage, "%s holds results of another version of this study; "+
			"`%s` goes on with that one, --fresh or --results starts a new folder", dir, goOn(dir, at))
	}
	if err == nil {
		err = db.BeginSession(context.Background(), now, versionText(), nodes[0].Host)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
