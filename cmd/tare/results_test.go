package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/store"
)

// TestOpenResults: what is not a results folder is a mistake of usage for every verb; results
// that cannot be read are not.
func TestOpenResults(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"file": "study: x\n", "damaged/results.db": "not a database", "lost/series/000001-1.parquet": "x", "empty/README": ""} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, code := range map[string]int{"none": exitUsage, "file": exitUsage, "empty": exitUsage, "damaged": exitFailed, "lost": exitFailed} {
		for _, verb := range [][]string{
			{"report"}, {"export", "--format", "csv"}, {"export", "--format", "openmetrics"}, {"plot"}, {"advise"}, {"bundle", "-o", at("x")},
			{"compare", at(name)}, {"plan", "../../studies/first.yaml", "--no-check", "--from"},
		} {
			var out, errs strings.Builder
			if got := execute(t.Context(), &out, &errs, append(verb, at(name))); got != code {
				t.Errorf("%s of %s: exit code %d, want %d: %s", verb[0], name, got, code, errs.String())
			}
			if says := strings.Contains(errs.String(), name+" is not a results folder; `tare run STUDY` makes one"); says != (code == exitUsage) {
				t.Errorf("%s of %s: %s", verb[0], name, errs.String())
			}
		}
	}
}

// TestResultsAreOpenedOnce: an open folder is read through what is open, not by its name
// again: a folder that is moved meanwhile is read to its end.
func TestResultsAreOpenedOnce(t *testing.T) {
	dir := hostileFolder(t, filepath.Join(t.TempDir(), "a"))
	r, err := openResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []extent{figures, livePage, wholePage} {
		if x, err := r.read(t.Context(), want); err != nil || len(x.result.Compared) == 0 {
			t.Errorf("extent %d: %v", want, err)
		}
	}
	if _, err := r.bench(); err != nil {
		t.Error(err)
	}
	if _, err := openResults(dir); !errors.Is(err, store.ErrNoResults) {
		t.Errorf("the old name: %v", err)
	}
}

// TestEmptyDatabase: a results.db without a byte is told by name, with what to do.
func TestEmptyDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "results.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"report", "run"} {
		var out, errs strings.Builder
		if code := execute(t.Context(), &out, &errs, []string{verb, dir}); code != exitUsage || !strings.Contains(errs.String(), "its results.db has 0 bytes") {
			t.Errorf("%s: exit code %d: %s", verb, code, errs.String())
		}
	}
}
