package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLostLog: a write-ahead log that is gone, cut or garbage costs a few trials and never a
// study. No run continues as if they had never been, and their evidence stays.
func TestLostLog(t *testing.T) {
	for _, c := range []struct{ appended, left int }{{1, 1}, {3, 3}, {earlyTrials, earlyTrials}, {20, 16}} {
		s := newStore(t)
		appendN(t, s, 1, c.appended)
		for name, spoil := range map[string]func(log string) error{
			"gone": os.Remove,
			"cut":  func(log string) error { return os.Truncate(log, 31) },
			"garbage": func(log string) error {
				return os.WriteFile(log, []byte(strings.Repeat("garbage ", 9000)), 0o600)
			},
		} {
			t.Run(fmt.Sprint(name, c.appended), func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(s.Dir())); err != nil { // as a writer that is killed leaves it
					t.Fatal(err)
				}
				if err := errors.Join(os.Remove(filepath.Join(dir, dbName+"-shm")), spoil(filepath.Join(dir, dbName+"-wal"))); err != nil {
					t.Fatal(err)
				}
				r, err := OpenReadOnly(dir)
				if err != nil {
					t.Fatal(err)
				}
				checkTrials(t, r, c.left)
				damage, err := r.Damage(t.Context())
				if err != nil || len(damage) != c.appended-c.left || len(damage) > 0 && damage[0].Kind != LostRow {
					t.Errorf("of %d trials %d are left, and what is said is %v, %v", c.appended, c.left, damage, err)
				}
				_ = r.Close()
				if _, err := Create(dir, testMeta()); !errors.Is(err, fs.ErrExist) {
					t.Errorf("create over it: %v", err)
				}
				w, err := Open(dir)
				switch {
				case err == nil:
					_ = w.Close()
					if c.left < c.appended {
						t.Error("a writer went on, as if nothing was lost")
					}
				case c.left == c.appended || !strings.Contains(err.Error(), "lost trials") || !strings.Contains(err.Error(), "000017-1"):
					t.Error(err)
				}
				if all, err := evidenceIn(dir); err != nil || len(all) != c.appended {
					t.Errorf("evidence of %v is left, %v", all, err)
				}
			})
		}
	}
}

// TestEvidenceWithoutDatabase: if a folder has evidence, no run starts over in it, whatever is
// left of the database.
func TestEvidenceWithoutDatabase(t *testing.T) {
	for name, db := range map[string][]byte{"no database": nil, "an empty one": {}, "an unfinished one": make([]byte, 4096)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range []string{"raw/000001-1/client.stdout.zst", "series/000002-1.parquet"} {
				path := filepath.Join(dir, f)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if db != nil {
				if err := os.WriteFile(filepath.Join(dir, dbName), db, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if s, err := Create(dir, testMeta()); err == nil {
				_ = s.Close()
				t.Fatal("it started over")
			} else if name != "an unfinished one" && !strings.Contains(err.Error(), "evidence of 2 trials (000001-1 to 000002-1)") {
				t.Error(err)
			}
			if !Exists(dir) {
				t.Error("a new folder may not take this one's place")
			}
			if _, err := OpenReadOnly(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open: %v", err)
			}
			if all, err := evidenceIn(dir); err != nil || len(all) != 2 {
				t.Errorf("evidence of %v is left, %v", all, err)
			}
		})
	}
}
