package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/internal/files"
	"tare/record"
)

func testMeta() Meta {
	m := Meta{
		StudySource: []byte("name: first\n"),
		StudyFile:   "studies/first.yaml",
		Overrides:   []string{"sandbox=process,runc"},
		Seed:        math.MaxUint64,
		TareVersion: "0.1.0",
		Started:     time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.UTC),
		Host: record.Host{
			Hostname: "h1", OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.18.1", Arch: "amd64", CPUModel: "A CPU",
			Sockets: 1, Cores: 2, Threads: 2, MemoryBytes: 8 << 30, Governor: "", Clocksource: "tsc", Virtualization: "kvm",
			KVM: "no /dev/kvm", Cgroups: "hybrid",
			Mitigations: map[string]string{"meltdown": "Not affected"},
			Tools:       map[string]string{"runc": "1.1.5", "crun": "1.8.1"},
			Warnings:    []record.Warning{{Code: "smt", Text: "the threads share cores"}, {Code: "drift", Text: "no fixed clock"}},
		},
	}
	m.Nodes = []record.Node{{Name: "h1", Host: m.Host}, {Name: "h2", Host: record.Host{Hostname: "h2", Cores: 8}}}
	return m
}

// testTrial makes trial seq with everything a trial can have; every seventh
// failed.
func testTrial(seq int) (*record.Trial, record.Evidence) {
	t := &record.Trial{
		Seq: seq, Block: (seq-1)/3 + 1, Attempt: 1, Node: []string{"h1", "h2"}[(seq-1)/3%2],
		Cell:   record.Cell{{Factor: "workload", Value: "net"}, {Factor: "size", Value: `a,b=c\d`}, {Factor: "sandbox", Value: []string{"process", "runc", "crun"}[seq%3]}},
		Status: record.OK,
		Start:  testMeta().Started.Add(time.Duration(seq) * time.Second), Duration: 5*time.Second + 1,
		Phases: []record.Phase{{Name: "start", Duration: 24 * time.Millisecond}, {Name: "run", Offset: 24 * time.Millisecond, Duration: 5 * time.Second}},
		Samples: []record.Sample{
			{Name: "latency_p99", Unit: record.Second, Kind: record.Value, Value: 9.4e-6 * float64(1+seq%3), Original: "9.4 us"},
			{Name: "throughput", Unit: record.BytesPerSecond, Value: 1.9e9 / float64(1+seq%3)},
			{Name: "cpu", Labels: record.MakeLabels("role", "sentry"), Unit: record.Cores, Value: math.Inf(1)},
		},
		Histograms: []record.Histogram{{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: []byte("HISTFAAAA")}},
		Warnings:   []record.Warning{{Code: "steady", Text: "no steady state"}},
		Facts:      map[string]string{"runtime": "runc 1.1.5", "platform": ""},
	}
	if seq%7 == 0 {
		t.Status = record.Failed
		t.Samples, t.Histograms = nil, nil
		t.Failure = &record.Failure{Phase: "run", Kind: "died", Reason: "the sandbox ended", Tail: "bye\n", Role: "server"}
	}
	s := record.Series{Name: "cpu", Labels: record.MakeLabels("comm", "fio", "tid", "12"), Unit: record.Cores, Kind: record.Gauge}
	g := record.Series{Name: "memory", Unit: record.Byte, Kind: record.Counter}
	for i := range 50 {
		s.T, s.V = append(s.T, time.Duration(i)*100*time.Millisecond), append(s.V, float64(i)/50)
		g.T, g.V = append(g.T, time.Duration(i)*100*time.Millisecond+7), append(g.V, float64(i*seq))
	}
	return t, record.Evidence{
		Series: []record.Series{s, g},
		Raw:    []record.Raw{{Name: "client.stdout", Data: []byte(strings.Repeat(`{"latency": 9.4}`, seq))}, {Name: "server.stderr"}},
	}
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "results"), testMeta())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSetStudy: a study with a larger budget takes the place of the one before, which is not forgotten.
func TestSetStudy(t *testing.T) {
	s := newStore(t)
	had := []Budget{{Time: time.Minute, Trials: 3}, {Blocks: 4, Trials: 9}}
	if err := s.SetStudy(t.Context(), []byte("name: longer\n"), []string{"budget.time=1h"}, had); err != nil {
		t.Fatal(err)
	}
	m, err := s.Meta()
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(filepath.Join(s.Dir(), studyName))
	if err != nil || string(copied) != "name: longer\n" || string(m.StudySource) != string(copied) || m.StudyFile != testMeta().StudyFile {
		t.Errorf("%q, %+v, %v", copied, m, err)
	}
	if d := cmp.Diff(had, m.Earlier); d != "" || len(m.Overrides) != 1 {
		t.Errorf("%v %s", m.Overrides, d)
	}
}

func appendN(t testing.TB, s *Store, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		tr, ev := testTrial(i)
		if err := s.Append(context.Background(), tr, ev); err != nil {
			t.Fatal(err)
		}
	}
}

// checkTrials compares everything that is stored with testTrial 1..n.
func checkTrials(t *testing.T, s *Store, n int) {
	t.Helper()
	checkOldTrials(t, s, 0, n)
}

// checkOldTrials is checkTrials where the first ones were stored before nodes were known.
func checkOldTrials(t *testing.T, s *Store, old, n int) {
	t.Helper()
	got, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != n {
		t.Fatalf("%d trials are stored, want %d", len(got), n)
	}
	for i := range got {
		want, ev := testTrial(i + 1)
		if got[i].Session < 1 {
			t.Fatalf("trial %d is of session %d", i+1, got[i].Session)
		}
		if want.Session = got[i].Session; i < old {
			want.Node = ""
		}
		if d := cmp.Diff(*want, got[i], cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("trial %d is not what was stored (-want +got):\n%s", i+1, d)
		}
		checkEvidence(t, s, want, ev)
	}
}

func checkEvidence(t *testing.T, s *Store, tr *record.Trial, ev record.Evidence) {
	t.Helper()
	series, err := s.Series(tr)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(ev.Series, series); d != "" {
		t.Fatalf("series (-want +got):\n%s", d)
	}
	names, err := s.RawNames(tr)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(ev.Raw) {
		t.Fatalf("raw outputs %v, want %d", names, len(ev.Raw))
	}
	for _, r := range ev.Raw {
		b, err := s.Raw(tr, r.Name)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != string(r.Data) {
			t.Fatalf("raw %s: %q, want %q", r.Name, b, r.Data)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	const n = batchSize + 14 // more than one batch of All
	s := newStore(t)
	appendN(t, s, 1, n)
	checkTrials(t, s, n)
	skips := []record.Skip{{Cell: record.Cell{{Factor: "sandbox", Value: "kata,x"}, {Factor: "vcpus", Value: ""}}, Reason: "no KVM"}, {Reason: "empty"}}
	if err := s.SetSkips(t.Context(), append(skips, record.Skip{Reason: "soon replaced"})); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSkips(t.Context(), skips); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	checkTrials(t, s, n)
	got, err := s.Skips()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(skips, got); d != "" {
		t.Errorf("skips (-want +got):\n%s", d)
	}
	meta, err := s.Meta()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(testMeta(), meta); d != "" {
		t.Errorf("meta (-want +got):\n%s", d)
	}
	b, err := os.ReadFile(filepath.Join(s.Dir(), studyName))
	if err != nil || string(b) != string(meta.StudySource) {
		t.Errorf("study.yaml: %q, %v", b, err)
	}
}

func TestSessions(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 1)
	other := testMeta().Host
	other.Hostname, other.Tools, other.Warnings = "h2", nil, nil
	at := testMeta().Started.Add(time.Hour)
	nodes := []record.Node{{Name: "h2", Host: other}}
	if err := s.BeginSession(t.Context(), at, "0.2.0", nodes); err != nil {
		t.Fatal(err)
	}
	appendN(t, s, 2, 2)
	got, err := s.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	m := testMeta()
	want := []Session{{1, m.Started, m.TareVersion, m.Host, m.Nodes}, {2, at, "0.2.0", other, nodes}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sessions (-want +got):\n%s", d)
	}
	var id int
	if err := s.db.QueryRow("SELECT session FROM trials WHERE seq = 2").Scan(&id); err != nil || id != 2 {
		t.Errorf("trial 2 is of session %d, %v; want 2", id, err)
	}
}

func TestNaNAndTies(t *testing.T) {
	s := newStore(t)
	tr, _ := testTrial(1)
	tr.Samples = []record.Sample{{Name: "x", Value: math.NaN()}, {Name: "x", Value: math.Inf(-1)}}
	tr.Start = tr.Start.In(time.FixedZone("CET", 3600))
	if err := s.Append(t.Context(), tr, record.Evidence{Series: []record.Series{{Name: "v", T: []time.Duration{0}, V: []float64{math.NaN()}}}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*tr, got[0], cmpopts.EquateNaNs()); d != "" {
		t.Error(d)
	}
	series, err := s.Series(tr)
	if err != nil || len(series) != 1 || !math.IsNaN(series[0].V[0]) {
		t.Errorf("series %v, %v", series, err)
	}
}

func TestAppendRefuses(t *testing.T) {
	s := newStore(t)
	tr, ev := testTrial(1)
	for name, f := range map[string]func(*record.Trial, *record.Evidence){
		"seq 0":         func(t *record.Trial, _ *record.Evidence) { t.Seq = 0 },
		"attempt 0":     func(t *record.Trial, _ *record.Evidence) { t.Attempt = 0 },
		"path in raw":   func(_ *record.Trial, e *record.Evidence) { e.Raw = []record.Raw{{Name: "../x"}} },
		"dot in raw":    func(_ *record.Trial, e *record.Evidence) { e.Raw = []record.Raw{{Name: ".."}} },
		"raw twice":     func(_ *record.Trial, e *record.Evidence) { e.Raw = []record.Raw{{Name: "x"}, {Name: "x"}} },
		"ragged series": func(_ *record.Trial, e *record.Evidence) { e.Series = []record.Series{{T: []time.Duration{1}}} },
	} {
		t.Run(name, func(t *testing.T) {
			tr, ev := *tr, ev
			f(&tr, &ev)
			if err := s.Append(t.Context(), &tr, ev); err == nil {
				t.Error("want an error")
			}
		})
	}
	checkTrials(t, s, 0)
	noFiles(t, s.Dir())
	appendN(t, s, 1, 1)
	if err := s.Append(t.Context(), tr, ev); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second append of one trial: %v", err)
	}
	checkTrials(t, s, 1) // the refused one must not have touched the files
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr2, ev2 := testTrial(2)
	if err := s.Append(ctx, tr2, ev2); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled append: %v", err)
	}
	appendN(t, s, 2, 2)
	checkTrials(t, s, 2)
}

func noFiles(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{seriesDir, rawDir} {
		es, err := os.ReadDir(filepath.Join(dir, d))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			t.Errorf("%s/%s is left", d, e.Name())
		}
	}
}

func TestOrphansAreRemoved(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	put := func(rel string) {
		path := filepath.Join(s.Dir(), rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	orphans := []string{"series/000003-1.parquet", "series/.tmp-000003-1.parquet", "series/.tmp-000001-1.parquet", "raw/000003-1/a.zst", "raw/.tmp-000004-1/a.zst"}
	for _, o := range orphans {
		put(o)
	}
	put("series/notes.txt") // a user's
	if _, err := OpenReadOnly(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if !files.Exists(filepath.Join(s.Dir(), orphans[0])) {
		t.Error("a reader removed an orphan: it may belong to a trial that is being stored")
	}
	s, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, o := range orphans {
		if files.Exists(filepath.Join(s.Dir(), o)) {
			t.Errorf("%s is left", o)
		}
	}
	for _, o := range []string{"series/000003-1.parquet", "raw/000003-1/a.zst"} { // its row may be lost
		if b, err := os.ReadFile(filepath.Join(s.Dir(), "lost/1", o)); err != nil || string(b) != "x" {
			t.Errorf("%s was not set aside: %q, %v", o, b, err)
		}
	}
	if files.Exists(filepath.Join(s.Dir(), "lost/1/raw/.tmp-000004-1")) || files.Exists(filepath.Join(s.Dir(), "lost/2")) {
		t.Error("more was set aside")
	}
	if !files.Exists(filepath.Join(s.Dir(), "series/notes.txt")) {
		t.Error("a user's file was removed")
	}
	checkTrials(t, s, 2)
}

func TestCreateAndOpenRefuse(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, ErrNoResults) {
		t.Errorf("open nothing: %v", err)
	}
	if _, err := OpenReadOnly(dir); !errors.Is(err, ErrNoResults) {
		t.Errorf("open an empty folder: %v", err)
	}
	s := newStore(t)
	if !Exists(s.Dir()) || Exists(dir) {
		t.Error("Exists")
	}
	var held *LockedError
	if _, err := Open(s.Dir()); !errors.As(err, &held) || held.Pid != os.Getpid() {
		t.Errorf("second writer: %v", err)
	}
	if _, err := Create(s.Dir(), testMeta()); !errors.As(err, &held) {
		t.Errorf("second creator: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Reports and a user's notes lie beside results; they are results all the same.
	if err := os.WriteFile(filepath.Join(s.Dir(), "report.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(s.Dir(), testMeta()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create over results: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, testMeta()); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("create among a user's files: %v", err)
	}
}

func TestUnfinishedCreate(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{dbName, dbName + "-journal", studyName, "lock"} { // as a Create that died early leaves it
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if Exists(dir) {
		t.Error("Exists on an unfinished folder")
	}
	if _, err := Open(dir); !errors.Is(err, ErrNoResults) {
		t.Errorf("open: %v", err)
	}
	s, err := Create(dir, testMeta())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	appendN(t, s, 1, 1)
	checkTrials(t, s, 1)
}

func TestNewerSchema(t *testing.T) {
	s := newStore(t)
	if _, err := s.db.Exec(fmt.Sprintf("PRAGMA user_version = %d", SchemaVersion+1)); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	for name, open := range map[string]func(string) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
		if _, err := open(s.Dir()); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("schema %d", SchemaVersion+1)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !Exists(s.Dir()) {
		t.Error("newer results exist all the same: nothing may be created over them")
	}
}
