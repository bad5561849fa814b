package httpload

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// whole feeds an answer in pieces of so many bytes, and then the end of the connection.
func feedAll(p []byte, piece int) (a answer, used int, whole bool, err error) {
	for used < len(p) && !whole && err == nil {
		n := 0
		n, whole, err = a.feed(p[used:min(len(p), used+piece)])
		used += n
	}
	return a, used, whole || err == nil && a.end(), err
}

func TestAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd":                                                            "3, 1 more",
		"HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabc":                                                                 "3",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab":                                                              "cut",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":                                                                "0",
		"HTTP/1.1 200 OK\r\n\r\nabc":                                                                                  "3 close",
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na":                                                               "1 close",
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\na":                                     "1",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: foo, Close\r\n\r\na":                                     "1 close",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\nA \r\n0123456789\r\n0\r\nX: y\r\n\r\nz": "13, 1 more",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n":                                           "cut",
		"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n":                     "0",
		"HTTP/1.1 304 No\r\n\r\n":                                                                                     "0",
		"":                                                                                                            "cut",
		"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc":                                                                   "cut",
		"\x15\x03\x01":                                                                                         "it begins with",
		"HTTP/2 200 OK\r\n\r\n":                                                                                "not with HTTP/1.1",
		"HTTP/1.1 20 OK\r\n\r\n":                                                                               "and a status",
		"HTTP/1.1 2x0 OK\r\n\r\n":                                                                              "its status",
		"HTTP/1.1 101 Switch\r\n\r\n":                                                                          "changes the protocol",
		"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc":                                                     "its Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: \x13\r\n\r\nabc":                                                   "not a field",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc":                                 "not the only one",
		"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999999\r\n\r\nabc":                                 "its Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                  "a Content-Length and a Transfer-Encoding",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n":                                          "only chunked is known",
		"HTTP/1.1 200 OK\r\nX : y\r\n\r\n":                                                                     "not a field",
		"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n":                                                                "not a field",
		"HTTP/1.1 200 OK\r\nX: y\n\r\n\r\n":                                                                    "not a field",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n":                                  "not with its length",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n":                            "after its bytes",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", maxHead) + "\r\n\r\n":                                   "is longer than",
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxEarly+1):                                            "1xx",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("y", maxLine):               "is longer than",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", maxHead/4+1): "trailers",
	} {
		for _, piece := range []int{1, 7, len(text) + 1} {
			a, used, whole, err := feedAll([]byte(text), piece)
			got := "cut"
			switch {
			case err != nil:
				got = err.Error()
			case whole:
				got = strings.TrimSpace(strings.Join([]string{fmt.Sprint(a.length), map[bool]string{true: "close"}[a.close]}, " "))
				if used < len(text) {
					got += ", " + fmt.Sprint(int64(len(text)-used)) + " more"
				}
			}
			if err == nil && got != want || !strings.Contains(got, want) {
				t.Errorf("%.60q in pieces of %d: %q, want %q", text, piece, got, want)
			}
		}
	}
}

// FuzzAnswer: pieces make no difference, and net/http reads each answer that is taken in the same way.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd"), 4)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\nz"), 1)
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 No\r\nConnection: keep-alive\r\n\r\nab"), 9)
	f.Fuzz(func(t *testing.T, p []byte, piece int) {
		a, used, whole, err := feedAll(p, len(p)+1)
		b, usedToo, wholeToo, errToo := feedAll(p, max(1, piece))
		if (err == nil) != (errToo == nil) || err == nil && (whole != wholeToo || used != usedToo || a.status != b.status || a.length != b.length || a.close != b.close) {
			t.Fatalf("at once %d B %v %v, in pieces of %d %d B %v %v", used, whole, err, piece, usedToo, wholeToo, errToo)
		}
		if err != nil || !whole {
			return
		}
		all := bytes.NewReader(p)
		r := bufio.NewReader(all)
		for {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%v: %q", err, p)
			}
			if resp.StatusCode < 200 {
				continue
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil || resp.StatusCode != a.status || n != a.length || resp.Close != a.close || all.Len()+r.Buffered() != len(p)-used {
				t.Fatalf("status %d, %d B, close %v, %d B after it; net/http: %d, %d, %v, %d, %v", a.status, a.length, a.close, len(p)-used,
					resp.StatusCode, n, resp.Close, all.Len()+r.Buffered(), err)
			}
			return
		}
	})
}

// TestAnswerAllocates: nothing, because the garbage collector is off.
func TestAnswerAllocates(t *testing.T) {
	var a answer
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 28 Nov 2026 10:38:52 GMT\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n",
	} {
		p := []byte(text)
		if n := testing.AllocsPerRun(100, func() {
			a.reset()
			for _, piece := range [][]byte{p[:30], p[30:]} {
				if _, _, err := a.feed(piece); err != nil {
					t.Fatal(err)
				}
			}
		}); n > 0 {
			t.Errorf("%g allocations for %q", n, text)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	p := []byte("HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 28 Nov 2026 10:38:52 GMT\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc")
	var a answer
	for b.Loop() {
		a.reset()
		_, _, _ = a.feed(p)
	}
}
