package httpload

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// TestEach: one host has all URLs, over plain HTTP and TLS; each request has the name of its URL in the handshake and in the header Host.
func TestEach(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	status := http.StatusOK
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sni := ""
		if r.TLS != nil {
			sni = r.TLS.ServerName
		}
		seen[fmt.Sprintf("%s %s %s", sni, r.Host, r.URL.Path)]++
		if r.Host == "c.tare.test" {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, "answer of "+r.Host)
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	port := func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, p, _ := net.SplitHostPort(u.Host)
		return p
	}
	run := func() error {
		return command(context.Background(), []string{"loop", "--each", "http://a.tare.test/x https://b.tare.test/ https://c.tare.test/y", "--at", "127.0.0.1",
			"--ports", port(plain.URL) + "," + port(secure.URL), "--size", "-1", "--connections", "3", "--rate", "200", "--warmup", "100ms", "--duration", "300ms", "--trust", "any"}, io.Discard, io.Discard)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" a.tare.test /x", "b.tare.test b.tare.test /", "c.tare.test c.tare.test /y"} {
		if seen[want] < 5 {
			t.Errorf("%d requests of %q; all: %v", seen[want], want, seen)
		}
	}
	if len(seen) != 3 {
		t.Errorf("requests were %v", seen)
	}
	status = http.StatusServiceUnavailable
	if err := run(); err == nil || !strings.Contains(err.Error(), "https://c.tare.test/y") || !strings.Contains(err.Error(), "503") {
		t.Errorf("a route that answers with 503: %v", err)
	}
}

// TestGroups: a process of wrk has one scheme, and one name in its handshakes.
func TestGroups(t *testing.T) {
	each := []string{"http://a.t/", "https://b.t/1", "http://c.t/", "https://b.t/2", "https://d.t/"}
	got, err := newTargets(each, "10.0.0.1", "80,443", anyBody, 1, TLS{Trust: TrustAny})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range got.groups() {
		names = append(names, strings.Join(g.names(), " "))
	}
	if all := strings.Join(names, ", "); all != "a.t/ c.t/, b.t/1 b.t/2, d.t/" || Processes(each) != 3 {
		t.Errorf("%s; %d processes", all, Processes(each))
	}
	for _, bad := range [][]string{{"http://a.t:80/"}, {"ftp://a.t/"}, {"/x"}} {
		if _, err := newTargets(bad, "10.0.0.1", "80,443", anyBody, 1, TLS{}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// TestMerge: what wrk adds to the latencies of each process goes, and the rest is summed.
func TestMerge(t *testing.T) {
	s, err := merge([]summary{
		{Duration: 1000, Requests: 4, Bytes: 40, Latency: [][2]int64{{100, 4}}},
		{Duration: 1200, Requests: 2, Bytes: 20, Latency: [][2]int64{{300, 2}}},
	}, 2)
	if err != nil || s.Requests != 6 || s.Bytes != 60 || s.Duration != 1100 || s.merged == "" {
		t.Errorf("%+v, %v", s, err)
	}
}
