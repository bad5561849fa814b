package httpload

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rude is a server that answers so many requests on each connection and then closes it without a word. It counts connections.
func rude(t *testing.T, answers int, text string) (url string, connections *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	connections = &atomic.Int64{}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for range answers {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					_, _ = io.WriteString(c, text)
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String(), connections
}

// TestConnections: a connection that the server closes is replaced, also if a request was on its way; one request has one connection
// without keep-alive; and an answer may end with its connection.
func TestConnections(t *testing.T) {
	page := strings.Repeat("x", pageSize)
	length := fmt.Sprintf("Content-Length: %d\r\n", pageSize)
	for name, c := range map[string]struct {
		answers int // on each connection
		text    string
		flags   []string
		fresh   bool // a connection for each request
		want    string
	}{
		"kept":             {1 << 30, "HTTP/1.1 200 OK\r\n" + length + "\r\n" + page, nil, false, ""},
		"not kept":         {1 << 30, "HTTP/1.1 200 OK\r\n" + length + "\r\n" + page, []string{"--keep-alive=false"}, true, ""},
		"closed":           {1, "HTTP/1.1 200 OK\r\n" + length + "\r\n" + page, nil, true, ""},
		"closed, open":     {1, "HTTP/1.1 200 OK\r\n" + length + "\r\n" + page, []string{"--rate", "300"}, true, ""},
		"closed, and told": {1, "HTTP/1.1 200 OK\r\nConnection: close\r\n" + length + "\r\n" + page, nil, true, ""},
		"to the end":       {1, "HTTP/1.0 200 OK\r\n\r\n" + page, nil, true, ""},
		"chunked":          {1 << 30, fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", pageSize, page), nil, false, ""},
		"too much":         {1 << 30, "HTTP/1.1 200 OK\r\n" + length + "\r\n" + page + "y", nil, false, "1 B follow it"},
		"garbage":          {1 << 30, "HTTP/1.1 200 OK\r\n" + length + "X\r\n\r\n" + page, nil, false, "malformed MIME header"}, // by the first exchange
	} {
		t.Run(name, func(t *testing.T) {
			url, connections := rude(t, c.answers, c.text)
			r, got := client(t, "loop", url, append([]string{"--connections", "3", "--duration", "300ms"}, c.flags...)...)
			if c.want != "" || got != "" {
				if c.want == "" || !strings.Contains(got, c.want) {
					t.Errorf("it says %q, want %q in it", got, c.want)
				}
				return
			}
			if n := connections.Load(); c.fresh && n < r.Requests || !c.fresh && n != 1+3 {
				t.Errorf("%d connections for %d requests", n, r.Requests)
			}
		})
	}
}

// TestServerEnds: a server that ends is an error that says so.
func TestServerEnds(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { good(w) }))
	time.AfterFunc(300*time.Millisecond, func() { s.Listener.Close(); s.CloseClientConnections() })
	if _, got := client(t, "open", s.URL, "--connections", "2", "--rate", "200"); !regexp.MustCompile("^tare http: answer .*(connection refused|connection reset|EOF)").MatchString(got) {
		t.Errorf("it says %q", got)
	}
}

// TestTurns: few connections serve all names in turn.
func TestTurns(t *testing.T) {
	l := lane{open: &open{places: make([]place, 2)}, conns: []conn{{fd: -1}, {fd: -1}}, idle: make([][]int32, 2), down: []int32{0, 1}}
	for _, step := range []struct {
		place, want int
		back        bool // it gets its answer at once
	}{{0, 1, true}, {1, 0, true}, {0, 1, true}, {1, 0, false}, {1, 1, false}, {0, -1, false}} {
		if got := l.pick(step.place); got != step.want {
			t.Fatalf("%+v: connection %d", step, got)
		}
		if step.back {
			l.idle[step.place] = append(l.idle[step.place], int32(step.want))
		}
	}
	if l.conns[1].place != 1 {
		t.Error("a connection that goes to another place does not know it")
	}
}
