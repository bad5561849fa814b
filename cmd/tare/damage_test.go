package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"tare/record"
	"tare/store"
)

// eight is a results folder of eight trials, the first of which began at this second.
func eight(t *testing.T, dir string, began int) {
	t.Helper()
	db, err := store.Create(dir, store.Meta{StudySource: []byte("study: made\nbaseline: process\nfactors:\n  sandbox: [process, fake]\nstop: {fixed: 4}\nworkloads:\n  w: {kind: noop, responses: [elapsed]}\n"),
		StudyFile: "made.yaml", Overrides: []string{}, TareVersion: "1", Started: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if err := db.Append(context.Background(), &record.Trial{Seq: i + 1, Block: i/2 + 1, Attempt: 1, Status: record.OK, Start: time.Unix(int64(began+i), 0),
			Cell:    record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: []string{"process", "fake"}[i%2]}},
			Samples: []record.Sample{{Name: "elapsed", Unit: record.Second, Value: float64(100 + i)}}}, record.Evidence{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsNamed: all readers leave out a trial whose rows changed, and name it;
// a writer adds nothing to it.
func TestDamageIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	other := filepath.Join(t.TempDir(), "other")
	eight(t, dir, 0)
	eight(t, other, 100)
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.ExecContext(t.Context(), "UPDATE samples SET value = 7777 WHERE trial = 3"); err != nil {
		t.Fatal(err)
	}
	_ = raw.Close()
	bundle, page := filepath.Join(t.TempDir(), "made.tar.zst"), filepath.Join(t.TempDir(), "made.html")
	for _, args := range [][]string{
		{"report", dir}, {"report", dir, "--json"}, {"report", dir, "--csv", "--trials"}, {"report", dir, "--html", "-o", page},
		{"compare", other, dir}, {"compare", dir, other, "--json"}, {"export", dir, "--format", "jsonl"}, {"export", dir, "--format", "csv"},
		{"plot", dir, "-o", t.TempDir()}, {"advise", dir}, {"bundle", dir, "-o", bundle}, {"report", bundle},
	} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), &out, &errs, args)
		said := out.String() + errs.String()
		if args[0] == "bundle" || args[len(args)-1] == page { // they have it inside
			if code != exitOK {
				t.Errorf("%v: exit %d\n%s", args, code, said)
			}
			continue
		}
		if code != exitOK || !strings.Contains(said, "000003-1") || strings.Contains(said, "7777") {
			t.Errorf("%v: exit %d\n%s", args, code, said)
		}
	}
	var out, errs bytes.Buffer
	if execute(t.Context(), &out, &errs, []string{"export", dir, "--format", "csv"}); !strings.Contains(errs.String(), "1 trial did not verify and was left out") {
		t.Errorf("one trial: %s", errs.String())
	}
	if db, err := store.Open(dir); err == nil || !strings.Contains(err.Error(), "Nothing will be added") { // as run does
		t.Errorf("a writer went on: %v", err)
		if err == nil {
			_ = db.Close()
		}
	}
	if _, err := os.Stat(page); errors.Is(err, fs.ErrNotExist) {
		t.Error("there is no page")
	}
}

// TestOlderResultsAreTold: what an older tare measured, by its own rule of stopping, is read and
// judged by the present one, and the report says so. A new result says nothing of the kind.
func TestOlderResultsAreTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	eight(t, dir, 0)
	report := func() string {
		var out, errs bytes.Buffer
		if code := execute(t.Context(), &out, &errs, []string{"report", dir}); code != exitOK {
			t.Errorf("exit %d\n%s", code, errs.String())
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	if text := report(); strings.Contains(text, "older tare") {
		t.Errorf("of new results: %s", text)
	}
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	var views []string // without the column of schema 3
	for _, name := range []string{"responses", "failures"} {
		var text string
		if err := raw.QueryRowContext(t.Context(), "SELECT sql FROM sqlite_master WHERE name = ?", name).Scan(&text); err != nil {
			t.Fatal(err)
		}
		views = append(views, strings.ReplaceAll(text, ", t.node", ""))
	}
	for _, change := range []string{"DROP VIEW responses", "DROP VIEW failures", "ALTER TABLE trials DROP COLUMN node", "DROP TABLE nodes", views[0], views[1],
		"DROP TABLE checksums", "ALTER TABLE evidence DROP COLUMN sha256", "UPDATE meta SET value = '1' WHERE key = 'schema'", "PRAGMA user_version = 1"} {
		if _, err := raw.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if text := report(); strings.Contains(text, "older-rule") || !strings.Contains(text, "no-checksums") {
		t.Errorf("a fixed number of blocks never stopped at a difference: %s", text)
	}
	if _, err := raw.ExecContext(t.Context(), "UPDATE meta SET value = replace(value, 'fixed: 4', 'looks: [3, 4, 6]')"); err != nil {
		t.Fatal(err)
	}
	_ = raw.Close()
	text := report()
	for _, want := range []string{"older-rule: an older tare measured this: it stopped where a difference was clear", "process", "fake"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
