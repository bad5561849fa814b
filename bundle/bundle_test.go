package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/store"
)

// folder makes results of n trials, the store still open.
func folder(t testing.TB, n int) *store.Store {
	t.Helper()
	s, err := store.Create(filepath.Join(t.TempDir(), "first"), store.Meta{StudySource: []byte("study: first\n"), StudyFile: "first.yaml", Seed: 7,
		TareVersion: "1", Started: time.Unix(1, 0), Host: record.Host{Hostname: "h"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	grow(t, s, 1, n)
	return s
}

func grow(t testing.TB, s *store.Store, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		tr := &record.Trial{Seq: i, Block: i, Attempt: 1, Status: record.OK, Start: time.Unix(int64(i), 0), Duration: time.Second,
			Cell:    record.Cell{{Factor: "sandbox", Value: "fake"}},
			Samples: []record.Sample{{Name: "elapsed", Unit: record.Second, Value: float64(i)}}}
		ev := record.Evidence{
			Series: []record.Series{{Name: "cpu", Unit: record.Cores, Kind: record.Gauge, T: []time.Duration{0, 1}, V: []float64{1, float64(i)}}},
			Raw:    []record.Raw{{Name: "client.stdout", Data: fmt.Appendf(nil, "out %d\n", i)}},
		}
		if err := s.Append(context.Background(), tr, ev); err != nil {
			t.Fatal(err)
		}
	}
}

// write bundles a folder into a file.
func write(t testing.TB, dir string) (file string, m *Manifest) {
	t.Helper()
	var b bytes.Buffer
	m, err := Write(t.Context(), &b, dir, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "x"+Suffix)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, m
}

func TestRoundTrip(t *testing.T) {
	s := folder(t, 3)
	file, m := write(t, s.Dir())
	if m.Trials != 3 || m.Folder != "first" || len(m.Members) != 8 || len(m.Missing) != 0 {
		t.Errorf("manifest: %+v", m)
	}
	if !Is(file) || Is(s.Dir()) || Is(filepath.Join(s.Dir(), "results.db")) {
		t.Error("Is does not tell a bundle")
	}
	if _, err := Check(t.Context(), file, DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	got, err := Unpack(t.Context(), file, dir, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
	same(t, s, dir)
	for _, x := range m.Members {
		b, err := os.ReadFile(filepath.Join(dir, x.Name))
		if h := sha256.Sum256(b); err != nil || hex.EncodeToString(h[:]) != x.SHA256 || int64(len(b)) != x.Size {
			t.Errorf("%s: %v", x.Name, err)
		}
	}
}

// same compares results as the store reads them.
func same(t *testing.T, s *store.Store, dir string) {
	t.Helper()
	r, err := store.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	a, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	for i := range a {
		x, err1 := s.Series(&a[i])
		y, err2 := r.Series(&a[i])
		if diff := cmp.Diff(x, y); diff != "" || err1 != nil || err2 != nil {
			t.Error(diff, err1, err2)
		}
	}
}

// TestSameBytes: the bytes depend on what the results are, not on how the files
// came to hold them, nor on when and where.
func TestSameBytes(t *testing.T) {
	s := folder(t, 3)
	live, _ := write(t, s.Dir())
	died := filepath.Join(t.TempDir(), "first") // with its log, as kill -9 leaves it
	if err := os.CopyFS(died, os.DirFS(s.Dir())); err != nil {
		t.Fatal(err)
	}
	dead, _ := write(t, died)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closed, _ := write(t, s.Dir())
	again, _ := write(t, s.Dir())
	want, err := os.ReadFile(live)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"killed": dead, "closed": closed, "again": again} {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes (%v)", name, err)
		}
	}
}

// TestWhileWriting bundles a folder that grows: every bundle is good and holds
// whole trials with their files.
func TestWhileWriting(t *testing.T) {
	s := folder(t, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		grow(t, s, 2, 40)
	}()
	for last, more := 0, true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		file, m := write(t, s.Dir())
		if m.Trials < last || len(m.Members) != 2+2*m.Trials || len(m.Missing) > 0 {
			t.Fatalf("%d trials after %d, %d members, missing %q", m.Trials, last, len(m.Members), m.Missing)
		}
		last = m.Trials
		if _, err := Check(t.Context(), file, DefaultLimits()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	s := folder(t, 2)
	gone := "series/000001-1.parquet"
	if err := os.Remove(filepath.Join(s.Dir(), gone)); err != nil {
		t.Fatal(err)
	}
	file, m := write(t, s.Dir())
	if !slices.Equal(m.Missing, []string{gone}) {
		t.Errorf("missing: %q", m.Missing)
	}
	if _, err := Check(t.Context(), file, DefaultLimits()); err != nil {
		t.Error(err)
	}
}

// TestWriteRefuses: what a reader would not take is not written, and no link is
// followed.
func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string) error
		want string
	}{
		"link": {func(_ *testing.T, dir string) error {
			file := filepath.Join(dir, "series/000001-1.parquet")
			return errors.Join(os.Remove(file), os.Symlink("/etc/passwd", file))
		}, "not a regular file"},
		"trigger": {func(t *testing.T, dir string) error {
			return alter(t, dir, "CREATE TRIGGER mine AFTER INSERT ON trials BEGIN SELECT 1; END")
		}, "trigger mine, which tare did not create"},
		"path": {func(t *testing.T, dir string) error {
			return alter(t, dir, "UPDATE evidence SET file = '../../etc/passwd' WHERE kind = 'raw'")
		}, "does not belong to its trial"},
		"case": {func(t *testing.T, dir string) error {
			return alter(t, dir, "INSERT INTO evidence VALUES (1, 'raw', 'CLIENT.stdout', 'raw/000001-1/CLIENT.stdout.zst', 1, NULL)")
		}, "case does not matter"},
		"nothing": {func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "results.db")) }, "results.db is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			s := folder(t, 1)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.do(t, s.Dir()); err != nil {
				t.Fatal(err)
			}
			if _, err := Write(t.Context(), new(bytes.Buffer), s.Dir(), "1"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestDamagedEvidenceStaysOut: a bundle leaves out a file that is not what was stored.
func TestDamagedEvidenceStaysOut(t *testing.T) {
	s := folder(t, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := "raw/000001-1/client.stdout.zst"
	if err := os.WriteFile(filepath.Join(s.Dir(), name), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Write(t.Context(), new(bytes.Buffer), s.Dir(), "1")
	if err != nil || len(m.Missing) != 1 || m.Missing[0] != name {
		t.Errorf("missing are %v, %v", m.Missing, err)
	}
}

func TestStopped(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := folder(t, 2)
	file, _ := write(t, s.Dir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, new(bytes.Buffer), s.Dir(), "1"); !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
	if _, err := Check(ctx, file, DefaultLimits()); !errors.Is(err, context.Canceled) || errors.Is(err, ErrRefused) {
		t.Errorf("check: %v", err)
	}
	if _, err := Check(t.Context(), filepath.Join(t.TempDir(), "none"), DefaultLimits()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAllowed(t *testing.T) {
	l := Limits{Total: 1 << 30, Ratio: 200}
	for size, want := range map[int64]int64{10: 64 << 20, 1 << 20: 200 << 20, 1 << 24: 1 << 30, 1 << 50: 1 << 30} {
		if got := l.allowed(size); got != want {
			t.Errorf("%d: %d, want %d", size, got, want)
		}
	}
	if got := (Limits{Total: 5}).allowed(1); got != 5 {
		t.Errorf("without a ratio: %d", got)
	}
}
