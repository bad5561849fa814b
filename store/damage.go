package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// Damage is a part of a results folder that does not match its checksum, or is gone. Readers
// leave it out and report it.
type Damage struct {
	Kind string // one of the kinds below
	Name string // of the trial, 000012-1, or of the session; "" if there is only one
	Why  string // a sentence: what was found
}

// Kinds of damage.
const (
	DamagedTrial   = "trial"     // left out
	DamagedSession = "session"   // left out: its trials are intact, but the machine is unknown
	DamagedSkips   = "skips"     // left out
	LostRow        = "lost-row"  // evidence without a row: the log of the database was lost
	Unchecked      = "unchecked" // the folder has no checksums: it is of schema 1
)

// note records damage that a reader found.
func (s *Store) note(d Damage) {
	s.found.mu.Lock()
	defer s.found.mu.Unlock()
	if s.found.all == nil {
		s.found.all = make(map[Damage]bool)
	}
	s.found.all[d] = true
}

// Damage returns the damage that reads have found so far, and the trials whose evidence
// has no row. Read the trials first.
func (s *Store) Damage(ctx context.Context) ([]Damage, error) {
	lost, err := s.lost(ctx)
	if err != nil {
		return nil, err
	}
	if len(lost) > 1 { // a single one may be in the middle of a write, or its writer died then
		for _, name := range lost {
			s.note(Damage{LostRow, name, "its evidence is in " + seriesDir + "/ or " + rawDir + "/, and " + dbName + " has no row for it"})
		}
	}
	s.found.mu.Lock()
	defer s.found.mu.Unlock()
	out := slices.Collect(maps.Keys(s.found.all))
	if s.version < 2 {
		out = append(out, Damage{Unchecked, "", "the results have no checksums, because an older tare wrote them: damage may go unseen"})
	}
	slices.SortFunc(out, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Why, b.Why))
	})
	return out, nil
}

// lost returns the names of the trials that have evidence but no row, sorted.
func (s *Store) lost(ctx context.Context) ([]string, error) {
	all, err := evidenceIn(s.dir)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	known, err := s.names(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(n string) bool { return known[n] }), nil
}

// names returns the names of the trials that have a row.
func (s *Store) names(ctx context.Context) (map[string]bool, error) {
	known := make(map[string]bool)
	err := s.each(ctx, "SELECT name FROM trials", nil, func(r *sql.Rows) error {
		var n string
		err := r.Scan(&n)
		known[n] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the names of the trials in %s: %w", s.dir, err)
	}
	return known, nil
}

// verifyAll reads everything and refuses damaged results: nothing may be added to them.
func (s *Store) verifyAll(ctx context.Context) error {
	for _, err := range s.Some(ctx, Pick{NoHistograms: true}) {
		if err != nil {
			return err
		}
	}
	if _, err := s.Meta(); err != nil {
		return err
	}
	if _, err := s.Skips(); err != nil {
		return err
	}
	all, err := s.Damage(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d Damage) bool { return d.Kind == Unchecked })
	if len(all) == 0 {
		return nil
	}
	d := all[0]
	if d.Kind == LostRow {
		return fmt.Errorf("%s files in %s/ and %s/ but no row in %s: its log (%s-wal) was lost or damaged, and with it these lost trials. "+
			"Restore the log from a copy, or move those files out of the folder to run these trials again. `tare report` lists them",
			trialsHave(d.Name, len(all)-1), seriesDir, rawDir, dbName, dbName)
	}
	more := ""
	if len(all) > 1 {
		more = fmt.Sprintf(", and %d more", len(all)-1)
	}
	return fmt.Errorf("the results are damaged: %s %s%s: %s. Nothing will be added to them. Restore a copy or a bundle, or start a new folder with --fresh; "+
		"`tare report` shows what is left", d.Kind, d.Name, more, d.Why)
}

// trialsHave begins a sentence about a trial and so many others.
func trialsHave(name string, others int) string {
	switch others {
	case 0:
		return "trial " + name + " has"
	case 1:
		return "trial " + name + " and 1 other have"
	}
	return fmt.Sprintf("trial %s and %d others have", name, others)
}
