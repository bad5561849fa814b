package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/record"
)

// everything is what readers get from a folder, a text for each thing; errs are the errors
// that they got instead.
func everything(t *testing.T, dir string) (got map[string]string, errs []string) {
	t.Helper()
	got = make(map[string]string)
	say := func(err error) bool {
		if err != nil {
			errs = append(errs, err.Error())
		}
		return err == nil
	}
	s, err := OpenReadOnly(dir)
	if !say(err) {
		return got, errs
	}
	defer func() { _ = s.Close() }()
	text := func(v any) string {
		return fmt.Sprintf("%+v", v)
	}
	meta, err := s.Meta()
	if say(err) {
		meta.Host, meta.TareVersion, meta.Started = record.Host{}, "", time.Time{} // of the first session
		got["meta"] = text(meta)
	}
	sessions, err := s.Sessions()
	if say(err) {
		for _, x := range sessions {
			b, _ := json.Marshal(x)
			got[fmt.Sprint("session ", x.ID)] = string(b)
		}
	}
	skips, err := s.Skips()
	if say(err) {
		for _, k := range skips {
			got["skip "+k.Cell.Key()] = text(k)
		}
	}
	trials, err := s.Trials()
	if !say(err) {
		return got, errs
	}
	for i := range trials {
		x := &trials[i]
		f := record.Failure{}
		if x.Failure != nil {
			f = *x.Failure
		}
		y := *x
		y.Failure = nil
		got["trial "+TrialName(x)] = text(y) + text(f)
		series, err := s.Series(x)
		if say(err) {
			got["series "+TrialName(x)] = text(series)
		}
		names, err := s.RawNames(x)
		if say(err) {
			got["names "+TrialName(x)] = text(names)
			for _, n := range names {
				if b, err := s.Raw(x, n); say(err) {
					got["raw "+TrialName(x)+n] = string(b)
				}
			}
		}
	}
	damage, err := s.Damage(t.Context())
	say(err)
	for _, d := range damage {
		errs = append(errs, d.Kind+" "+d.Name+": "+d.Why)
	}
	return got, errs
}

// seen says what is wrong with a read of a damaged folder. All that is read must be what was
// stored, and all that is not read must have been reported.
func seen(want, got map[string]string, errs []string) string {
	for k, v := range got {
		if want[k] != v {
			return fmt.Sprintf("%s was read as\n%.300s\nand stored as\n%.300s", k, v, want[k])
		}
	}
	if len(got) < len(want) && len(errs) == 0 {
		return fmt.Sprintf("%d of %d things were read, and nothing was said", len(got), len(want))
	}
	return ""
}

// stored is a closed folder with a bit of everything.
func stored(t *testing.T) string {
	t.Helper()
	s := newStore(t)
	appendN(t, s, 1, 9)
	if err := s.BeginSession(t.Context(), testMeta().Started, "0.2.0", testMeta().Nodes); err != nil {
		t.Fatal(err)
	}
	appendN(t, s, 10, 12)
	if err := s.SetSkips(t.Context(), []record.Skip{{Cell: record.Cell{{Factor: "sandbox", Value: "kata"}}, Reason: "no KVM"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Dir()
}

// TestBitFlips: a flipped bit in any file of a folder is reported, or changes nothing that
// anybody reads. Before there were checksums, one flip in twenty silently changed a report.
func TestBitFlips(t *testing.T) {
	dir := stored(t)
	want, errs := everything(t, dir)
	if len(errs) > 0 || len(want) < 40 {
		t.Fatalf("%d things, %v", len(want), errs)
	}
	var files []string
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(path) != "lock" && filepath.Base(path) != studyName {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	flips := 400
	if testing.Short() {
		flips = 100
	}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	told := 0
	for n := range flips {
		path := files[rng.IntN(len(files))]
		if n%2 == 0 {
			path = filepath.Join(dir, dbName)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) == 0 {
			continue
		}
		b := slices.Clone(whole)
		at, bit := rng.IntN(len(b)), rng.IntN(8)
		b[at] ^= 1 << bit
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, errs := everything(t, dir)
		if len(errs) > 0 {
			told++
		}
		if what := seen(want, got, errs); what != "" {
			t.Errorf("seed %d: bit %d of byte %d of %s: %s", seed, bit, at, strings.TrimPrefix(path, dir), what)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if told < flips/4 {
		t.Errorf("of %d flips %d were reported: the test shows nothing", flips, told)
	}
	t.Logf("of %d flips %d were reported, the others change nothing", flips, told)
	if got, errs := everything(t, dir); seen(want, got, errs) != "" || len(errs) > 0 {
		t.Error("the folder was not put back")
	}
}

// TestRawNamesOfNoRow: a trial that is not found is an error, not one without outputs. A
// flipped bit in the index of names looks like that.
func TestRawNamesOfNoRow(t *testing.T) {
	s, err := OpenReadOnly(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	trials, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	gone := trials[0]
	gone.Attempt = 7
	if names, err := s.RawNames(&gone); err == nil {
		t.Errorf("%q, and no error", names)
	}
}
