package serve

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/analyse"
	"tare/record"
	"tare/report/document"
	"tare/store"
	"tare/study"
)

// cells are the two of the test's one stratum.
func cells() []record.Cell {
	return []record.Cell{
		{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: "process"}},
		{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: "runc"}},
	}
}

func testStudy() *study.Study {
	shared := cells()[0][:1]
	return &study.Study{Name: "tested", Compare: "sandbox", Baseline: "process",
		Factors:   []study.Factor{{Name: "workload", Levels: []string{"rr"}}, {Name: "sandbox", Levels: []string{"process", "runc"}}},
		Workloads: []study.Workload{{Label: "rr", Kind: "net", Responses: []string{"rate"}}},
		Strata:    []study.Stratum{{Key: shared.Key(), Shared: shared, Cells: cells()}},
		Stop:      study.Stop{Fixed: 4, Confidence: 0.95, Margin: 0.03}}
}

// source reads real results with a real store; builds counts the documents, reads
// the summaries and series those of single trials.
func source(builds, reads, series *atomic.Int64) Source {
	return Source{
		Summary: func(ctx context.Context, dir string) (*Summary, error) {
			reads.Add(1)
			db, err := store.OpenReadOnly(dir)
			if err != nil {
				return nil, err
			}
			defer db.Close()
			var trials []record.Trial
			for t, err := range db.All(ctx) {
				if err != nil {
					return nil, err
				}
				trials = append(trials, t)
			}
			st := testStudy()
			res := analyse.Analyse(st, trials, nil)
			res.Modelled = filepath.Base(dir) == "r01"
			return &Summary{Study: st.Name, Began: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Host: "lab1", Result: res}, nil
		},
		Document: func(ctx context.Context, dir string) (*document.Document, error) {
			builds.Add(1)
			db, err := store.OpenReadOnly(dir)
			if err != nil {
				return nil, err
			}
			defer db.Close()
			st := testStudy()
			b := document.New(st)
			var trials []record.Trial
			for t, err := range db.All(ctx) {
				if err != nil {
					return nil, err
				}
				b.Add(&t)
				trials = append(trials, t)
			}
			return b.Document(document.Input{Result: analyse.Analyse(st, trials, nil)}), nil
		},
		Series: func(ctx context.Context, dir string, t record.Trial, use func([]record.Series)) error {
			series.Add(1)
			db, err := store.OpenReadOnly(dir)
			if err != nil {
				return err
			}
			defer db.Close()
			return db.SeriesOf(ctx, &t, nil, use)
		},
	}
}

func results(t *testing.T, dir string, trials int) *store.Store {
	t.Helper()
	db, err := store.Create(dir, store.Meta{StudySource: []byte("study: tested\n"), StudyFile: "tested.yaml", Overrides: []string{}, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for i := range trials {
		appendTrial(t, db, i+1)
	}
	return db
}

func appendTrial(t *testing.T, db *store.Store, seq int) {
	t.Helper()
	x := record.Trial{Seq: seq, Block: (seq + 1) / 2, Attempt: 1, Cell: cells()[(seq+1)%2], Status: record.OK, Start: time.Unix(int64(1e9+seq), 0), Duration: time.Second,
		Samples: []record.Sample{{Name: "rate", Unit: record.PerSecond, Value: 1000 + float64(seq)}}}
	s := record.Series{Name: "cpu_time", Labels: "end=server,role=workload", Unit: record.Second, Kind: record.Counter, T: []time.Duration{0, time.Second, 2 * time.Second}, V: []float64{0, 0.5, 2}}
	if err := db.Append(t.Context(), &x, record.Evidence{Series: []record.Series{s}}); err != nil {
		t.Fatal(err)
	}
}

// site is a server under test and a browser that has visited it.
type site struct {
	t      *testing.T
	base   string
	visit  string // with the token
	client *http.Client
	builds atomic.Int64 // documents
	reads  atomic.Int64 // summaries
	series atomic.Int64 // of single trials
	end    func() error
}

func start(t *testing.T, dir string) *site {
	t.Helper()
	r := &site{t: t}
	s, err := New(dir, source(&r.builds, &r.reads, &r.series))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, visit, err := s.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	r.end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = r.end() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.visit, r.client = visit, &http.Client{Jar: jar, Timeout: time.Minute}
	r.base = "http://" + l.Addr().String()
	return r
}

// get returns status and body; the browser has its cookie after come.
func (r *site) get(path string) (int, string) {
	r.t.Helper()
	res, err := r.client.Get(r.base + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (r *site) come() string {
	r.t.Helper()
	u, err := url.Parse(r.visit)
	if err != nil {
		r.t.Fatal(err)
	}
	code, body := r.get("/?" + u.RawQuery)
	if code != http.StatusOK {
		r.t.Fatalf("the address that is printed gives %d: %s", code, body)
	}
	return body
}

func (r *site) doc(name string) document.Document {
	r.t.Helper()
	code, body := r.get("/r/" + name + "/doc")
	var d document.Document
	if err := json.Unmarshal([]byte(body), &d); err != nil || code != http.StatusOK {
		r.t.Fatalf("doc of %s: %d, %v: %.200s", name, code, err, body)
	}
	return d
}

func TestTokenIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 2)
	r := start(t, dir)
	for _, path := range []string{"/", "/?token=", "/?token=x", "/?token=" + strings.Repeat("A", 32), "/r/one/", "/r/one/doc", "/r/one/version", "/r/one/series?trial=1-1", "/r/none/"} {
		if code, body := r.get(path); code != http.StatusForbidden || strings.Contains(body, "one") {
			t.Errorf("%s without the token: %d, %.100s", path, code, body)
		}
	}
	if body := r.come(); !strings.Contains(body, `href="/r/one/"`) {
		t.Errorf("the index does not list the folder:\n%s", body)
	}
	u, _ := url.Parse(r.base)
	cookies := r.client.Jar.Cookies(u)
	if len(cookies) != 1 {
		t.Fatalf("the visit left the cookies %v", cookies)
	}
	for _, path := range []string{"/", "/r/one/", "/r/one/doc", "/r/one/version", "/r/one/series?trial=1-1"} {
		if code, body := r.get(path); code != http.StatusOK {
			t.Errorf("%s with the cookie: %d, %s", path, code, body)
		}
	}
	res, err := http.Get(r.visit)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if c := res.Header.Get("Set-Cookie"); !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") {
		t.Errorf("the cookie is %s", c)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 1)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	results(t, outside, 1)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir)
	if body := r.come(); strings.Contains(body, "link") {
		t.Error("the index follows a link")
	}
	for _, path := range []string{"/secret", "/r/secret/", "/r/secret", "/r/../secret", "/r/%2e%2e/secret", "/r/..%2fsecret/", "/r/one/../../secret", "/r/one/%2e%2e/", "/r/./", "/r//", "/r/link/",
		"/r/link/doc", "/r/one/secret", "/r/one/results.db", "/r/one/doc/x", "/r/one", "/r" + outside + "/", "/r/%00/", "/x"} {
		// As it stands, without a client that tidies the path.
		req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: strings.TrimPrefix(r.base, "http://"), Opaque: path}, Header: http.Header{}}
		for _, c := range r.client.Jar.Cookies(&url.URL{Scheme: "http", Host: req.URL.Host, Path: "/"}) {
			req.AddCookie(c)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusBadRequest || strings.Contains(string(b), "secret") {
			t.Errorf("%s gives %d: %.100s", path, res.StatusCode, b)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", ""} {
		req, err := http.NewRequest(http.MethodGet, r.visit, nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Host = host; host == "" {
			req.Host = "localhost:1"
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMisdirectedRequest || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("Host %q is answered with %d", host, res.StatusCode)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "PROPFIND"} {
		req, err := http.NewRequest(method, r.visit, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s is answered with %d", method, res.StatusCode)
		}
	}
	req, _ := http.NewRequest(http.MethodGet, r.visit, nil)
	req.Header.Set("X", strings.Repeat("x", 1<<20))
	if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header of 1 MiB is answered with %d", res.StatusCode)
		}
	}
	for _, q := range []string{"", "?trial=", "?trial=1", "?trial=1-1x", "?trial=-1-1", "?trial=01-1", "?trial=1-1/../../x", "?trial=0-0"} {
		if code, _ := r.get("/r/one/series" + q); code != http.StatusBadRequest {
			t.Errorf("series%s gives %d", q, code)
		}
	}
	if code, _ := r.get("/r/one/series?trial=99-1"); code != http.StatusNotFound {
		t.Errorf("series of a trial that is not there gives %d", code)
	}
	if n := r.series.Load(); n != 0 {
		t.Errorf("files of series were opened %d times for trials that are not there", n)
	}
}

// TestHeaders: no page here may be framed, guessed at or kept, and a report runs
// the scripts that we wrote and no others.
func TestHeaders(t *testing.T) {
	dir := t.TempDir()
	results(t, dir, 2)
	r := start(t, dir)
	r.come()
	for _, path := range []string{"/", "/r/" + filepath.Base(dir) + "/", "/r/" + filepath.Base(dir) + "/doc", "/nothing"} {
		res, err := r.client.Get(r.base + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		policy := res.Header.Get("Content-Security-Policy")
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s has the headers %v", path, res.Header)
		}
		_, scripts, _ := strings.Cut(policy, "script-src")
		scripts, _, _ = strings.Cut(scripts, ";")
		if strings.Contains(scripts, "unsafe") || strings.Contains(string(b), "<script>") != strings.Contains(scripts, "'sha256-") {
			t.Errorf("%s may run the scripts %q", path, scripts)
		}
	}
}

func TestReportFollowsTheRun(t *testing.T) {
	dir := t.TempDir()
	db := results(t, filepath.Join(dir, "one"), 3)
	results(t, filepath.Join(dir, "two"), 1)
	r := start(t, dir)
	index := r.come()
	for _, want := range []string{`href="/r/one/"`, `href="/r/two/"`, "running", "tested"} {
		if !strings.Contains(index, want) {
			t.Errorf("the index lacks %s:\n%s", want, index)
		}
	}
	_, before := r.get("/r/one/version")
	if d := r.doc("one"); len(d.Trials.Seq) != 3 || !d.Live || d.Dir != "one" {
		t.Errorf("the document has %d trials, live %v, of %s; want 3", len(d.Trials.Seq), d.Live, d.Dir)
	}
	built := r.builds.Load()
	for range 20 {
		r.get("/r/one/doc")
		r.get("/r/one/")
		if _, v := r.get("/r/one/version"); v != before {
			t.Fatalf("the version went from %s to %s, with nothing new", before, v)
		}
	}
	if n := r.builds.Load() - built; n != 0 {
		t.Errorf("polling built %d documents of the same state", n)
	}
	appendTrial(t, db, 4)
	_, after := r.get("/r/one/version")
	if after == before {
		t.Error("a new trial left the version as it was")
	}
	if d := r.doc("one"); len(d.Trials.Seq) != 4 {
		t.Errorf("after a fourth trial the document has %d", len(d.Trials.Seq))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, v := r.get("/r/one/version"); v == after {
		t.Error("the end of the run left the version as it was")
	}
	if body := r.come(); !strings.Contains(body, "finished") && !strings.Contains(body, "stopped") {
		t.Errorf("no study has ended:\n%s", body)
	}
	var s document.TrialSeries
	if _, body := r.get("/r/one/series?trial=3-1"); json.Unmarshal([]byte(body), &s) != nil || s.Trial != 2 || len(s.Lines) != 1 || fmt.Sprint(s.Lines[0].V) != "[0.5 1.5]" {
		t.Errorf("the series of the third trial are %s", body)
	}
}

// TestDocIsGzip as the pages' scripts and the browser expect it.
func TestDocIsGzip(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 2)
	r := start(t, dir)
	r.come()
	req, _ := http.NewRequest(http.MethodGet, r.base+"/r/one/doc", nil)
	req.Header.Set("Accept-Encoding", "gzip") // so that the client leaves it as it is
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers are %v", res.Header)
	}
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&document.Document{}); err != nil {
		t.Error(err)
	}
}

// TestDamagedFolderIsSaid and does not take the others with it.
func TestDamagedFolderIsSaid(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "good"), 2)
	for name, content := range map[string]string{"empty": "", "garbage": "SQLite format 3\x00 no it is not", "text": "hello"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "results.db"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, dir)
	body := r.come()
	if n := strings.Count(body, "damaged"); n < 3 || !strings.Contains(body, `href="/r/good/"`) {
		t.Errorf("the index names %d damaged folders:\n%s", n, body)
	}
	if code, _ := r.get("/r/garbage/doc"); code != http.StatusInternalServerError {
		t.Errorf("the document of a damaged folder: %d", code)
	}
	if d := r.doc("good"); len(d.Trials.Seq) != 2 {
		t.Errorf("the good one has %d trials", len(d.Trials.Seq))
	}
}

// TestManyAskOneBuilds: one document is built for one state, however many ask.
func TestManyAskOneBuilds(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 2)
	r := start(t, dir)
	u, _ := url.Parse(r.visit)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			res, err := http.Get(r.base + "/r/one/doc?" + u.RawQuery)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		})
	}
	wg.Wait()
	if n := r.builds.Load(); n != 1 {
		t.Errorf("%d documents were built", n)
	}
}

func TestEndsCleanly(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 1)
	r := start(t, dir)
	r.come()
	if err := r.end(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := r.client.Get(r.base); err == nil {
		t.Error("it still answers")
	}
}

// TestPortThatBrowsersLeaveOut: HTTP's own port is not in the Host that browsers
// send.
func TestPortThatBrowsersLeaveOut(t *testing.T) {
	for port, want := range map[uint16]bool{80: true, 8080: false} {
		n := names(port)
		if n["localhost"] != want || n["127.0.0.1"] != want || n["[::1]"] != want || !n[fmt.Sprintf("localhost:%d", port)] || n["evil.example"] {
			t.Errorf("port %d: %v", port, n)
		}
	}
}

func TestListenIsLocal(t *testing.T) {
	s, err := New(t.TempDir(), Source{})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		if l, _, err := s.Listen(t.Context(), address, false); !errors.Is(err, ErrRemote) {
			t.Errorf("%s: %v", address, err)
			if err == nil {
				_ = l.Close()
			}
		}
	}
	l, visit, err := s.Listen(t.Context(), "0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := url.Parse(visit)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && (at.IsLoopback() || at.IsUnspecified()) {
		t.Errorf("others cannot visit %s", visit)
	}
}

func TestAddressForOthers(t *testing.T) {
	name, err := os.Hostname()
	if err != nil || name == "" {
		t.Skip("the host has no name")
	}
	for _, c := range []struct {
		addrs string
		v4    bool
		want  string
	}{
		{"127.0.0.1 ::1 192.0.2.7 198.51.100.1", true, "192.0.2.7"},
		{"127.0.0.1 ::1 fe80::1 2001:db8::7 192.0.2.7", false, "192.0.2.7"},
		{"127.0.0.1 ::1 fe80::1 2001:db8::7", false, "2001:db8::7"},
		{"127.0.0.1 2001:db8::7 169.254.1.1", true, name},
		{"127.0.0.1 ::1", false, name},
		{"", false, name},
	} {
		var addrs []netip.Addr
		for f := range strings.FieldsSeq(c.addrs) {
			addrs = append(addrs, netip.MustParseAddr(f))
		}
		if got := reached(addrs, c.v4); got != c.want {
			t.Errorf("%s: %s, want %s", c.addrs, got, c.want)
		}
	}
}
