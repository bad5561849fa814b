package store

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"

	"tare/record"
)

var update = flag.Bool("update", false, "rewrite the testdata of this schema: only before its release")

// goldenTrials are in testdata/v1 to v3, which the programs of those schemas wrote.
const goldenTrials = 8

// TestGolden reads results of every schema there ever was, and goes on with
// them.
func TestGolden(t *testing.T) {
	folder := func(v int) string { return filepath.Join("testdata", fmt.Sprint("v", v)) }
	if *update {
		if err := os.RemoveAll(folder(SchemaVersion)); err != nil {
			t.Fatal(err)
		}
		s, err := Create(folder(SchemaVersion), testMeta())
		if err != nil {
			t.Fatal(err)
		}
		appendN(t, s, 1, goldenTrials)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, extra := range []string{"lock", dbName + "-wal", dbName + "-shm"} {
			_ = os.Remove(filepath.Join(folder(SchemaVersion), extra))
		}
	}
	for v := 1; v <= SchemaVersion; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			dir := golden(t, fmt.Sprint("v", v))
			r, err := OpenReadOnly(dir)
			if err != nil {
				t.Fatal(err)
			}
			old := 0
			if v < 3 {
				old = goldenTrials
			}
			checkOldTrials(t, r, old, goldenTrials)
			checkNodes(t, r, v)
			damage, err := r.Damage(t.Context())
			if unchecked := len(damage) == 1 && damage[0].Kind == Unchecked; err != nil || unchecked != (v == 1) || v > 1 && len(damage) > 0 {
				t.Errorf("before a writer: %v, %v", damage, err)
			}
			_ = r.Close()
			s, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			appendN(t, s, goldenTrials+1, goldenTrials+1)
			checkOldTrials(t, s, old, goldenTrials+1)
			checkNodes(t, s, v)
			if _, err := s.Meta(); err != nil {
				t.Error(err)
			}
			if damage, err := s.Damage(t.Context()); err != nil || len(damage) > 0 {
				t.Errorf("after a writer: %v, %v", damage, err)
			}
		})
	}
}

// checkNodes checks the nodes of the first session, which a program of schema v stored.
func checkNodes(t *testing.T, s *Store, v int) {
	t.Helper()
	want := testMeta().Nodes
	if v < 3 {
		want = []record.Node{{Host: testMeta().Host}}
	}
	got, err := s.Sessions()
	if err != nil || len(got) != 1 {
		t.Fatalf("%d sessions, %v", len(got), err)
	}
	if d := cmp.Diff(want, got[0].Nodes); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
}

// readAll reads everything there is, as a report does; errors are as good as
// data, a panic is not.
func readAll(s *Store) {
	_, _ = s.Meta()
	_, _ = s.Skips()
	all, err := s.Trials()
	if err != nil {
		return
	}
	for i := range all {
		_, _ = s.Series(&all[i])
		names, _ := s.RawNames(&all[i])
		for _, n := range names {
			_, _ = s.Raw(&all[i], n)
		}
	}
}

func FuzzOpen(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "v3", dbName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(b[:100])
	f.Add(bytes.ReplaceAll(b, []byte("trials"), []byte("trails")))
	for at := 200; at < len(b); at += len(b) / 12 {
		c := bytes.Clone(b)
		for i := range 64 {
			c[(at+i)%len(c)] ^= 0xa5
		}
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, dbName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := OpenReadOnly(dir); err == nil {
			readAll(s)
			_ = s.Close()
		}
		s, err := Open(dir)
		if err != nil {
			return
		}
		readAll(s)
		tr, ev := testTrial(1000)
		_ = s.Append(t.Context(), tr, ev)
		_ = s.Close()
	})
}

func FuzzDecodeSeries(f *testing.F) {
	_, ev := testTrial(3)
	b, err := encodeSeries(&parquetzstd.Codec{}, ev.Series)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-9])
	for at := 8; at < len(b); at += len(b) / 16 {
		c := bytes.Clone(b)
		c[at] ^= 0xff
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := decodeSeries(context.Background(), bytes.NewReader(b), int64(len(b)), nil)
		if err != nil {
			return
		}
		for _, s := range out {
			if len(s.T) != len(s.V) {
				t.Errorf("series %s has %d times and %d values", s.Name, len(s.T), len(s.V))
			}
		}
	})
}

// TestBomb: a small file that becomes a big one is refused, at the cost of the
// limit and no more.
func TestBomb(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := enc.EncodeAll(make([]byte, 4<<20), nil)
	if _, err := unpack(bytes.NewReader(b), 1<<20); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
	if out, err := unpack(bytes.NewReader(b), 4<<20); err != nil || len(out) != 4<<20 {
		t.Errorf("at the limit: %d bytes, %v", len(out), err)
	}
	if _, err := unpack(strings.NewReader("plain text"), 1<<20); err == nil {
		t.Error("text was taken for zstd")
	}
}

// TestEvidenceStaysInside: a link in a folder from someone else leads nowhere.
func TestEvidenceStaysInside(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 1)
	tr, _ := testTrial(1)
	path := filepath.Join(s.Dir(), rawDir, TrialName(tr), "client.stdout.zst")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Raw(tr, "client.stdout"); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("got %v", err)
	}
}
