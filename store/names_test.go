package store

import (
	"strings"
	"testing"
)

// TestForeignNames: names of trials that tare does not give are refused on opening.
func TestForeignNames(t *testing.T) {
	for _, name := range []string{"../../pwn", "/etc/passwd", "000001-1/..", "000001", "000001-", "1-1", "000001-1-1", ""} {
		s := newStore(t)
		appendN(t, s, 1, 2)
		if _, err := s.db.Exec("UPDATE trials SET name = ? WHERE seq = 2", name); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) (*Store, error){Open, OpenReadOnly} {
			if s, err := open(s.Dir()); err == nil || !strings.Contains(err.Error(), "which tare does not give") {
				t.Errorf("%q: %v", name, err)
				if err == nil {
					_ = s.Close()
				}
			}
		}
	}
}
