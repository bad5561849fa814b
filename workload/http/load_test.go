package httpload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/host/image/imagetest"
)

// wrkOf makes wrk of the image run on this host, by the image's own loader.
func wrkOf(t *testing.T) string {
	t.Helper()
	tree := imagetest.Tree(t, "wrk")
	loaders, err := filepath.Glob(tree + "/usr/lib64/ld-linux*")
	if err != nil || len(loaders) == 0 {
		t.Skip("the image wrk has no loader that this test knows; it is for amd64")
	}
	libraries, err := filepath.Glob(tree + "/usr/lib/*-linux-gnu")
	if err != nil || len(libraries) == 0 {
		t.Fatalf("no libraries in %s: %v", tree, err)
	}
	path := filepath.Join(t.TempDir(), "wrk")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --library-path %s %s/usr/bin/wrk \"$@\"\n", loaders[0], libraries[0], tree)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const pageSize = 5000

func good(w http.ResponseWriter) {
	w.Header().Set("Content-Length", fmt.Sprint(pageSize))
	_, _ = w.Write(bytes.Repeat([]byte("x"), pageSize))
}

// spoil serves good answers, and bad ones after the first few.
func spoil(bad func(http.ResponseWriter)) http.Handler {
	const first = 20 // a busy machine comes to no more in the time
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) > first {
			bad(w)
			return
		}
		good(w)
	})
}

// cut breaks the connection off, by a reset or in order, after some of the body.
func cut(body int, reset bool) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		if body > 0 {
			_, _ = fmt.Fprintf(buf, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", pageSize, strings.Repeat("x", body))
			_ = buf.Flush()
		}
		if l, ok := conn.(interface{ SetLinger(int) error }); ok && reset {
			_ = l.SetLinger(0)
		}
	}
}

func client(t *testing.T, load, url string, flags ...string) (report, string) {
	t.Helper()
	args := append([]string{load, "--url", url + "/page", "--size", fmt.Sprint(pageSize), "--warmup", "0s",
		"--duration", "600ms", "--timeout", "1s"}, flags...)
	var out, errs bytes.Buffer
	code := Main(args, &out, &errs)
	var r report
	if code != 0 {
		if code != 1 || out.Len() > 0 {
			t.Errorf("exit code %d, output %q", code, &out)
		}
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		return r, lines[len(lines)-1]
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r, ""
}

// loads are the ways to load, each with the flags it needs.
func loads(t *testing.T) map[string][]string {
	wrk := wrkOf(t)
	return map[string][]string{
		"totals": {"closed", "--connections", "4", "--wrk", wrk, "--check", "totals"},
		"every":  {"closed", "--connections", "4", "--wrk", wrk, "--check", "every"},
		"open":   {"open", "--connections", "4", "--rate", "1000"},
	}
}

// TestBadAnswers: whatever goes wrong with an answer under load, there is no
// report, and the last line says what it was.
func TestBadAnswers(t *testing.T) {
	all := loads(t)
	for name, c := range map[string]struct {
		bad  func(http.ResponseWriter)
		want map[string]string // by load; "" for all others
	}{
		"404": {func(w http.ResponseWriter) { http.Error(w, "no", http.StatusNotFound) },
			map[string]string{"": "status of 400 or above", "every": "status 404", "open": "status 404"}},
		"503 with the right length": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable); good(w) },
			map[string]string{"": "status of 400 or above", "every": "status 503", "open": "status 503"}},
		"redirect": {func(w http.ResponseWriter) { w.Header().Set("Location", "/"); w.WriteHeader(http.StatusFound) },
			map[string]string{"": "a different length", "every": "status 302", "open": "status 302"}},
		"short page": {func(w http.ResponseWriter) { _, _ = w.Write([]byte("oops")) },
			map[string]string{"": "a different length", "every": "a body of 4 B, want 200 and 5000", "open": "a body of 4 B, want 5000"}},
		"cut off": {cut(100, false),
			map[string]string{"": "connection broke", "open": "ends after 100 of 5000 B"}},
		"reset": {cut(100, true),
			map[string]string{"": "connection broke", "open": ""}},
		"closed without an answer": {cut(0, false),
			map[string]string{"": "connection broke", "open": "EOF"}},
		"too late": {func(w http.ResponseWriter) { time.Sleep(1500 * time.Millisecond); good(w) },
			map[string]string{"": "after the load: the server does not answer", "open": "timeout"}},
	} {
		for load, flags := range all {
			t.Run(name+"/"+load, func(t *testing.T) {
				t.Parallel() // each has a server of its own, and waits for much of its time
				s := httptest.NewServer(spoil(c.bad))
				defer s.Close()
				want, ok := c.want[load]
				if !ok {
					want = c.want[""]
				}
				_, got := client(t, flags[0], s.URL, flags[1:]...)
				if !strings.HasPrefix(got, "tare http: ") || !strings.Contains(got, want) || len(strings.Fields(got)) < 6 {
					t.Errorf("it says %q, want %q in it", got, want)
				}
			})
		}
	}
}

// TestFirstAnswer: what is wrong from the start is told before any load.
func TestFirstAnswer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	for _, load := range []string{"closed", "open"} {
		if _, got := client(t, load, url, "--rate", "10"); !strings.Contains(got, "GET /page answers with status 404, want 200") {
			t.Errorf("%s: it says %q", load, got)
		}
	}
	s.Close()
	for _, load := range []string{"closed", "open"} {
		if _, got := client(t, load, url, "--rate", "10"); !strings.Contains(got, "does not accept a connection") {
			t.Errorf("%s: it says %q", load, got)
		}
	}
}

// TestCounts: what the client counts is what the server served, and no answer is
// quicker than the server was.
func TestCounts(t *testing.T) {
	const slow = 5 * time.Millisecond
	for load, flags := range loads(t) {
		t.Run(load, func(t *testing.T) {
			var served atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(slow)
				served.Add(1)
				good(w)
			}))
			defer s.Close()
			if load == "open" {
				flags = append(slices.Clone(flags), "--rate", "200")
			}
			r, failed := client(t, flags[0], s.URL, flags[1:]...)
			if failed != "" {
				t.Fatal(failed)
			}
			// One exchange before the load, in the closed loop one after it, and what
			// was under way at its end.
			if n := served.Load(); r.Requests < 1 || r.Requests > n-1 || r.Requests < n-2-4-r.Unsent-int64(200*0.6) {
				t.Errorf("%d requests, the server counted %d", r.Requests, n)
			}
			if load != "open" && r.Requests < served.Load()-2-4 {
				t.Errorf("%d requests, the server counted %d", r.Requests, served.Load())
			}
			if r.Window < 0.59 || r.Answer <= pageSize || r.Bytes < r.Requests*r.Answer {
				t.Errorf("window %g s, answers of %d B, %d B in all for %d requests", r.Window, r.Answer, r.Bytes, r.Requests)
			}
			h, err := r.histogram()
			if err != nil {
				t.Fatal(err)
			}
			if least := time.Duration(h.ValueAtQuantile(0)); least < slow*99/100 {
				t.Errorf("an answer after %v, the server takes %v", least, slow)
			}
		})
	}
}

// TestOpenLoopCountsFromDue: one stall delays all the requests that were due in
// it, and each counts with its own wait.
func TestOpenLoopCountsFromDue(t *testing.T) {
	const (
		stall = 300 * time.Millisecond
		rate  = 200
	)
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 10 {
			time.Sleep(stall)
		}
		good(w)
	}))
	defer s.Close()
	r, failed := client(t, "open", s.URL, "--connections", "1", "--rate", fmt.Sprint(rate), "--duration", "1s")
	if failed != "" {
		t.Fatal(failed)
	}
	h, err := hdrhistogram.Decode([]byte(r.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	if got := h.TotalCount(); got != rate {
		t.Errorf("%d latencies, want those of %d requests", got, rate)
	}
	late := int64(0)
	for _, b := range h.Distribution() {
		if b.From >= int64(stall/3) {
			late += b.Count
		}
	}
	// Two thirds of the stall: 40 requests waited longer than a third of it. A
	// busy machine makes them more.
	if want := int64(rate * stall.Seconds() * 2 / 3); late < want-2 {
		t.Errorf("%d requests took longer than %v, want %d", late, stall/3, want)
	}
}

// TestOverload: what could not be sent counts with the time it has waited.
func TestOverload(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		good(w)
	}))
	defer s.Close()
	r, failed := client(t, "open", s.URL, "--connections", "1", "--rate", "500", "--duration", "500ms")
	if failed != "" {
		t.Fatal(failed)
	}
	if r.Unsent < 200 || len(r.Warnings) != 1 || r.Warnings[0].Code != "http-overload" {
		t.Errorf("%d unsent, warnings %v", r.Unsent, r.Warnings)
	}
	h, err := hdrhistogram.Decode([]byte(r.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	if got := h.TotalCount(); got != 250 {
		t.Errorf("%d latencies, want those of all 250 requests", got)
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range []string{"", "both", "open --rate 0 --url http://a:1/", "open --rate 1 --url ftp://a/", "closed --url http://a:1/ --check some",
		"closed --url http://a:1/ --connections 5 --threads 2", "closed --url https://a:1/", "loop --url https://a:1/ --trust /dev/null", "closed --url http://a:1/ --duration 0s", "file", "file --path x --size -1", "closed word"} {
		var out, errs bytes.Buffer
		if code := Main(strings.Fields(args), &out, &errs); code != 2 || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: exit code %d, %q", args, code, &errs)
		}
	}
}

// TestShortTimes: wrk, which knows whole seconds, measures and warms up for
// parts of one.
func TestShortTimes(t *testing.T) {
	wrk := wrkOf(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { good(w) }))
	defer s.Close()
	for _, ms := range []int{1, 100, 350} {
		asked := float64(ms) / 1000
		// It ends at its next look, every 100 ms; 2 s would be its own end. A machine that is
		// busy makes it late, but not each time.
		var shortest float64
		for try := 0; try < 5 && (try == 0 || shortest > asked+1.5); try++ {
			r, failed := client(t, "closed", s.URL, "--wrk", wrk, "--warmup", fmt.Sprint(ms, "ms"), "--duration", fmt.Sprint(ms, "ms"))
			if failed != "" {
				t.Fatal(failed)
			}
			if r.Window < asked-0.01 {
				t.Errorf("asked for %d ms it measured %g s", ms, r.Window)
			}
			if try == 0 || r.Window < shortest {
				shortest = r.Window
			}
		}
		if shortest > asked+1.5 {
			t.Errorf("asked for %d ms it measured %g s at the least", ms, shortest)
		}
	}
}

// TestShareOfStatuses: a server that answers some requests with another status has no report, and the
// error says which statuses, and in how many answers.
func TestShareOfStatuses(t *testing.T) {
	for name, flags := range map[string][]string{
		"closed": {"loop", "--connections", "2"},
		"open":   {"loop", "--connections", "2", "--rate", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			var n, bad atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				switch i := n.Add(1); {
				case i > 1 && i%4 == 0:
					bad.Add(1)
					w.WriteHeader(http.StatusInternalServerError)
				case i > 1 && i%20 == 1:
					http.NotFound(w, nil)
				default:
					good(w)
				}
			}))
			defer s.Close()
			_, got := client(t, flags[0], s.URL, flags[1:]...)
			m := regexp.MustCompile(`^tare http: GET /page answers with status 500 in (\d+) of (\d+) answers \(2[0-9.]+ %\), status 404 in \d+ \([0-9.]+ %\), want 200$`).FindStringSubmatch(got)
			if m == nil {
				t.Fatalf("it says %q", got)
			}
			wrong, _ := strconv.ParseInt(m[1], 10, 64)
			if all, _ := strconv.ParseInt(m[2], 10, 64); wrong > bad.Load() || wrong < bad.Load()-4 || all > n.Load()-1 {
				t.Errorf("it says %q; %d of %d were wrong", got, bad.Load(), n.Load())
			}
		})
	}
}
