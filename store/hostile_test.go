package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sys/unix"

	"tare/record"
)

// TestRowGroupsThatLie: the rows of a file are bounded, whatever number it gives of them: a
// small one may point to the same pages again and again.
func TestRowGroupsThatLie(t *testing.T) {
	b := hostileSeries(t, 1<<20)
	protocol := new(thrift.CompactProtocol)
	size := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	var about format.FileMetaData
	if err := thrift.Unmarshal(protocol, b[len(b)-8-size:len(b)-8], &about); err != nil {
		t.Fatal(err)
	}
	for about.RowGroups = about.RowGroups[:1]; len(about.RowGroups) < 200; {
		about.RowGroups = append(about.RowGroups, about.RowGroups[0])
	}
	about.NumRows = 10
	footer, err := thrift.Marshal(protocol, &about)
	if err != nil {
		t.Fatal(err)
	}
	b = append(append(b[:len(b)-8-size], footer...), 0, 0, 0, 0, 'P', 'A', 'R', '1')
	binary.LittleEndian.PutUint32(b[len(b)-8:], uint32(len(footer)))
	_, err = decodeSeries(context.Background(), bytes.NewReader(b), int64(len(b)), func(string, record.Labels) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "rows that are read") {
		t.Errorf("%d bytes with %d rows: %v", len(b), 200<<20, err)
	}
}

// TestPipeInTheFolder: a file of the evidence that is a pipe is told, and not waited for.
func TestPipeInTheFolder(t *testing.T) {
	dir := stored(t)
	s, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	trials, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	names, err := s.RawNames(&trials[0])
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, file := range []string{filepath.Join(seriesDir, TrialName(&trials[0])+".parquet"), filepath.Join(rawDir, TrialName(&trials[0]), names[0]+".zst")} {
		file = filepath.Join(dir, file)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	within(t, func() {
		if _, err := s.Series(&trials[0]); err == nil {
			t.Error("series were read from a pipe")
		}
		if _, err := s.Raw(&trials[0], names[0]); err == nil {
			t.Error("raw output was read from a pipe")
		}
	})
}

// TestUpgradeOfSparseIDs: what an upgrade does depends on what there is, not on the numbers
// that somebody gave it.
func TestUpgradeOfSparseIDs(t *testing.T) {
	statements := []string{"PRAGMA foreign_keys = OFF", "UPDATE sessions SET id = id + (1 << 60)", "UPDATE trials SET id = id * (1 << 50), session = session + (1 << 60)"}
	for _, table := range []string{"levels", "samples", "histograms", "phases", "warnings", "facts", "evidence"} {
		statements = append(statements, "UPDATE "+table+" SET trial = trial * (1 << 50)")
	}
	for _, table := range []string{"host", "host_details", "host_warnings"} {
		statements = append(statements, "UPDATE "+table+" SET session = session + (1 << 60)")
	}
	dir := golden(t, "v1", statements...)
	within(t, func() {
		s, err := Open(dir)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		trials, err := s.Trials()
		damage, derr := s.Damage(t.Context())
		sessions, serr := s.Sessions()
		if err != nil || derr != nil || serr != nil || len(trials) == 0 || len(sessions) == 0 || len(damage) > 0 {
			t.Errorf("%d trials, %d sessions, damage %v; %v, %v, %v", len(trials), len(sessions), damage, err, derr, serr)
		}
	})
}

// TestManySessions: the time to look at all of them is bounded, not only that for each.
func TestManySessions(t *testing.T) {
	dir := altered(t, "WITH RECURSIVE e(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM e WHERE n < 20000) INSERT INTO sessions (id, started, tare_version) SELECT n, '2026-01-01T00:00:00Z', 'x' FROM e")
	s, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.patience = 100 * time.Millisecond
	if _, err := s.Sessions(); !errors.Is(err, errLate) {
		t.Errorf("got %v", err)
	}
}

// TestMuchDamage: to remember what is damaged takes time that grows with it, no faster.
func TestMuchDamage(t *testing.T) {
	const n = 300_000
	s := newStore(t)
	within(t, func() {
		for i := range 2 * n { // each is met twice
			s.note(Damage{DamagedTrial, fmt.Sprintf("%06d-1", i%n), "it has no checksum"})
		}
		if all, err := s.Damage(t.Context()); err != nil || len(all) != n || all[0].Name != "000000-1" {
			t.Errorf("%d, %v", len(all), err)
		}
	})
}

// TestLockThatIsALink: a link named lock must not lead a writer to another file, which it
// would cut.
func TestLockThatIsALink(t *testing.T) {
	dir := stored(t)
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, "lock")
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(precious, lock) },
		"pipe": func() error { return unix.Mkfifo(lock, 0o600) },
	} {
		if err := errors.Join(os.Remove(lock), put()); err != nil {
			t.Fatal(err)
		}
		within(t, func() {
			if s, err := Open(dir); err == nil {
				_ = s.Close()
				t.Errorf("%s: it was opened", name)
			} else if !strings.Contains(err.Error(), "lock is not a regular file; remove it") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestTrialOfManyRows: the rows of a trial are bounded, whatever its database says. The rest
// of the folder is read.
func TestTrialOfManyRows(t *testing.T) {
	dir := altered(t, "WITH RECURSIVE e(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM e WHERE n < 1070) "+
		"INSERT INTO samples SELECT 1, n, 'x', '', 's', 'gauge', 1.0, printf('%.*c', 1000000, 'x') FROM e")
	s, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	trials, err := s.Trials()
	if err != nil || len(trials) != 1 || trials[0].Seq != 2 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
	damage, err := s.Damage(t.Context())
	if err != nil || len(damage) != 1 || damage[0].Name != "000001-1" || !strings.Contains(damage[0].Why, "more than 64 MiB of rows") {
		t.Errorf("damage %v, %v", damage, err)
	}
}

// TestBatchOfManyRows: trials that are too many for memory together are read in parts, in order.
func TestBatchOfManyRows(t *testing.T) {
	const n = batchSize + 21
	s := newStore(t)
	appendN(t, s, 1, n)
	s.mostLoaded = 16 << 10
	checkTrials(t, s, n)
	if damage, err := s.Damage(t.Context()); err != nil || len(damage) > 0 {
		t.Errorf("damage %v, %v", damage, err)
	}
}

// TestManySamplesToAnalyse: what a reader keeps of all trials is bounded.
func TestManySamplesToAnalyse(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 30)
	s.mostPicked = 29 * (perTrial + 1)
	n := 0
	var last error
	for _, err := range s.Some(t.Context(), Pick{}) {
		n, last = n+1, err
	}
	if n > 30 || last == nil || !strings.Contains(last.Error(), "to analyse, which no study has") {
		t.Errorf("%d trials, %v", n, last)
	}
	if all, err := s.Trials(); err != nil || len(all) != 30 {
		t.Errorf("%d trials, %v", len(all), err)
	}
}

// TestManySkips: the list of skipped cells is bounded.
func TestManySkips(t *testing.T) {
	s := newStore(t)
	skips := make([]record.Skip, 100)
	for i := range skips {
		skips[i] = record.Skip{Cell: record.Cell{{Factor: "sandbox", Value: fmt.Sprint(i)}}, Reason: "no KVM"}
	}
	if err := s.SetSkips(t.Context(), skips); err != nil {
		t.Fatal(err)
	}
	s.mostLoaded = 100 * minSkip
	if _, err := s.Skips(); !errors.Is(err, errMuch) {
		t.Errorf("got %v", err)
	}
}
