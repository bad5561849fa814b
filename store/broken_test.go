package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrokenFile: damage to the file's structure gives a sentence that says what to do.
func TestBrokenFile(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(stored(t), dbName))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for page := 0; page < len(whole); page += 4096 {
		dir := t.TempDir()
		b := append([]byte{}, whole...)
		for i := range 64 {
			b[page+i] = 0xff
		}
		if err := os.WriteFile(filepath.Join(dir, dbName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs := everything(t, dir)
		for _, e := range errs {
			if !strings.Contains(e, "malformed") && !strings.Contains(e, "not a database") && !strings.Contains(e, "too big") {
				continue
			}
			said++
			if strings.Count(e, "results.db is damaged and cannot be read: ") != 1 || !strings.Contains(e, "restore the folder from a copy or a bundle, if you have one") {
				t.Errorf("page %d: %s", page/4096, e)
			}
		}
	}
	if said == 0 {
		t.Error("nothing was damaged: the test shows nothing")
	}
}
