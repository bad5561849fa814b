package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// bulk makes a string of redis's protocol.
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func read(s string) (string, error) { return reply(bufio.NewReader(strings.NewReader(s))) }

func TestReply(t *testing.T) {
	long := strings.Repeat("line\r\n", 10000)
	for text, want := range map[string]string{
		"+PONG\r\n": "PONG", ":12\r\n": "12", "$-1\r\n": "", "$0\r\n\r\n": "", bulk("a\r\nb"): "a\r\nb", bulk(long): long,
	} {
		if got, err := read(text); err != nil || got != want {
			t.Errorf("%.20q: %.20q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "reading", "+PO": "reading", "\r\n": "empty", "-OOM no\r\n": "refuses: OOM no", "*1\r\n$1\r\nx\r\n": "not in redis's protocol",
		"$99999999999\r\n": "bytes long", "$x\r\n": "bytes long", "$-2\r\n": "bytes long", "$3\r\nab": "reading", "$1\r\nabc\r\n": "does not end there",
		"+" + strings.Repeat("x", 1<<16): "buffer full",
	} {
		if got, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %.20q, %v, want an error with %q", text, got, err, want)
		}
	}
}

// FuzzReply: whatever a server sends is an error or the text that it announced, and
// what is read of it is a whole reply.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"+PONG\r\n", ":1\r\n", "-ERR no\r\n", "$-1\r\n", bulk("x\r\ny"), "$16777216\r\nx", "*2\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := bufio.NewReader(strings.NewReader(s))
		got, err := reply(r)
		if err == nil && len(got) > len(s)-2 {
			t.Errorf("%q from %q", got, s)
		}
		if back, err := read(bulk(s)); err != nil && len(s) <= maxReply || err == nil && back != s {
			t.Errorf("%q comes back as %q, %v", s, back, err)
		}
	})
}

// TestTold: a driver that is told to stop does so while the server keeps silent.
func TestTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1)) // the first of its request, which is never answered
		asked <- c
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ts, _ := chosen("lpop")
	done := make(chan error, 1)
	go func() {
		done <- drive(ctx, options{server: l.Addr().String(), tests: ts, clients: 1, pipeline: 1, size: 3, keys: 1}, &strings.Builder{})
	}()
	select {
	case c := <-asked:
		defer c.Close()
	case err := <-done:
		t.Fatalf("it ended before it was told to: %v", err)
	}
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, errTold) {
			t.Errorf("it says %v", err)
		}
	case <-time.After(patience / 2):
		t.Error("it waits for the server still")
	}
}

// TestFillKeepsRequestsSmall: values of any size make requests of about a megabyte,
// or of one value.
func TestFillKeepsRequestsSmall(t *testing.T) {
	for _, size := range []int{1, 3, 1 << 10, 1 << 14, 1 << 20} {
		n := options{size: size}.batch()
		if n < 1 || n > batch || n > 1 && n*int64(size) > batchBytes || n < batch && (n+1)*int64(size) <= batchBytes {
			t.Errorf("%d values of %d bytes", n, size)
		}
	}
}
