package httpload

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func captured(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/wrk.txt")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSummary holds the script's line against what wrk itself prints of the same
// run for people.
func TestSummary(t *testing.T) {
	b := captured(t)
	s, err := readSummary(b)
	if err != nil {
		t.Fatal(err)
	}
	largest := s.Latency[len(s.Latency)-1][0]
	for _, want := range []string{
		fmt.Sprintf("%d requests in %.2fs", s.Requests, float64(s.Duration)*1e-6),
		fmt.Sprintf("Requests/sec: %9.2f", float64(s.Requests)/float64(s.Duration)*1e6),
		fmt.Sprintf("%.2fMB read", float64(s.Bytes)/(1<<20)),
		fmt.Sprintf("%.2fms", float64(largest)/1000),
	} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("wrk does not say %q", want)
		}
	}
	r := report{Load: "closed", Window: float64(s.Duration) * 1e-6, Requests: s.Requests, Connections: 4, Latency: s.Latency}
	h, err := r.histogram()
	if err != nil {
		t.Fatal(err)
	}
	if h.TotalCount() != s.Requests {
		t.Errorf("%d latencies of %d requests", h.TotalCount(), s.Requests)
	}
	for _, cut := range []int{0, 10, len(b) / 2, len(b) - 1} {
		if _, err := readSummary(b[:cut]); err == nil {
			t.Errorf("the first %d bytes are no error", cut)
		}
	}
}

// TestTotals: a byte too few is found, and so is more than can be under way.
func TestTotals(t *testing.T) {
	const answer, connections, requests = 1000, 4, 50
	tg, err := newTarget("http://a:1/x", 900, time.Second, TLS{})
	if err != nil {
		t.Fatal(err)
	}
	for rest, good := range map[int64]bool{-answer: false, -1: false, 0: true, 3 * answer: true, 4 * answer: true, 4*answer + 1: false} {
		s := summary{Duration: 1e6, Requests: requests, Bytes: requests*answer + rest}
		if err := s.judge(tg, answer, connections); (err == nil) != good {
			t.Errorf("%d B more than the answers have: %v", rest, err)
		}
	}
	s := summary{Duration: 1e6}
	if err := s.judge(tg, answer, connections); err == nil || !strings.Contains(err.Error(), "no answer to GET /x within 1s") {
		t.Errorf("without any answer: %v", err)
	}
}

func FuzzSummary(f *testing.F) {
	b := captured(f)
	tg, err := newTarget("http://a:1/x", 900, time.Second, TLS{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(marker + "{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := readSummary(b)
		if err != nil {
			return
		}
		if s.Requests > 0 && s.Duration > 0 {
			r := report{Load: "closed", Window: float64(s.Duration) * 1e-6, Requests: s.Requests, Connections: 4, Latency: s.Latency}
			if h, err := r.histogram(); err == nil && h.TotalCount() != s.Requests {
				t.Errorf("%d latencies of %d requests", h.TotalCount(), s.Requests)
			}
		}
		_ = s.judge(tg, 0, 1)
	})
}
