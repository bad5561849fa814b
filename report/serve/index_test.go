package serve

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/store"
)

// TestIndexBuildsNoDocument: it has what it shows of the analysis alone, and
// analyses one state once.
func TestIndexBuildsNoDocument(t *testing.T) {
	dir := t.TempDir()
	const folders = 12
	var first *store.Store
	for i := range folders {
		db := results(t, filepath.Join(dir, fmt.Sprintf("r%02d", i)), 2)
		if i == 0 {
			first = db
		} else if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, dir)
	r.patiently("being read")
	if body := r.come(); strings.Count(body, "2026-11-20 10:00") != folders || strings.Count(body, "lab1") != folders || strings.Count(body, ">modelled, not measured<") != 1 {
		t.Errorf("each has its date and host, and one is modelled:\n%s", body)
	}
	if n := r.builds.Load(); n != 0 {
		t.Errorf("the index built %d documents", n)
	}
	if n := r.reads.Load(); n != folders {
		t.Errorf("%d folders were read %d times", folders, n)
	}
	appendTrial(t, first, 3)
	body := r.patiently("being read")
	if n := r.reads.Load(); n != folders+1 {
		t.Errorf("after a trial of one folder %d were read again", n-folders)
	}
	if n := strings.Count(body, "stopped, "); n != folders-1 || !strings.Contains(body, "running, ") || !strings.Contains(body, ">3<") {
		t.Errorf("one runs and has 3 trials, %d have stopped:\n%s", n, body)
	}
}

// patiently looks at the index until a text is gone: a busy machine may not have
// read all folders by the first look.
func (r *site) patiently(without string) string {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		body := r.come()
		if !strings.Contains(body, without) {
			return body
		}
		if time.Now().After(end) {
			r.t.Fatalf("after a minute the index still says %q:\n%s", without, body)
		}
	}
}

// TestMoreFoldersThanListed: that is said, and all can be asked for by name.
func TestMoreFoldersThanListed(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "zz"), 2)
	for i := range maxFolders {
		sub := filepath.Join(dir, fmt.Sprintf("r%04d", i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue // nothing there: it does not count
		}
		if err := os.WriteFile(filepath.Join(sub, "results.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, dir)
	if body := r.come(); strings.Contains(body, "There are more") || !strings.Contains(body, `href="/r/zz/"`) {
		t.Errorf("the index does not list all of %d folders", maxFolders)
	}
	if err := os.WriteFile(filepath.Join(dir, "r0000", "results.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if body := r.come(); !strings.Contains(body, fmt.Sprintf("There are more results here: the first %d are listed", maxFolders)) || strings.Contains(body, `href="/r/zz/"`) {
		t.Errorf("the index does not say that %d folders are more than it lists", maxFolders+1)
	}
	if code, _ := r.get("/r/zz/version"); code != http.StatusOK {
		t.Errorf("the version of a folder that had no room in the index: %d", code)
	}
}

// TestStateIsReadOnceWhileFilesRest: asking for the version again opens nothing,
// until a file changes; a file that has changed just now may change again unseen.
func TestStateIsReadOnceWhileFilesRest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "one")
	db := results(t, dir, 1)
	opened := 0
	s := newStates(func(dir string) (store.State, error) {
		opened++
		return readState(dir)
	})
	ask := func() string {
		t.Helper()
		v, err := s.version(folder{"one", dir})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for range 5 {
		ask()
	}
	if opened != 5 {
		t.Errorf("of files that changed a moment ago the state was read %d times in 5", opened)
	}
	for _, name := range []string{"results.db", "results.db-wal"} {
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	opened = 0
	before := ask()
	for range 5 {
		if v := ask(); v != before {
			t.Errorf("the version went from %s to %s, with nothing new", before, v)
		}
	}
	if opened != 1 {
		t.Errorf("of files at rest the state was read %d times", opened)
	}
	appendTrial(t, db, 2)
	if v := ask(); v == before {
		t.Error("a new trial left the version as it was")
	}
	before = ask()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if v := ask(); v == before {
		t.Error("the end of the run left the version as it was")
	}
}
