package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/workload"
)

// hostSocket connects from the host itself.
func hostSocket() (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

var loopback = netip.MustParseAddr("127.0.0.1")

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}

// serve listens on a port from now on and answers each connection.
func serve(t *testing.T, port int, answer func(net.Conn)) time.Time {
	t.Helper()
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { answer(c); _ = c.Close() }()
		}
	}()
	return at
}

// says reads a question and answers with the text.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4<<10))
		_, _ = c.Write([]byte(text))
	}
}

func wait(t *testing.T, within time.Duration, p workload.Probe) (time.Time, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return Wait(ctx, hostSocket, loopback, p)
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func TestGoodAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		p    workload.Probe
	}{
		"connects":     {"", workload.Probe{}},
		"greets":       {"+PONG\r\n", workload.Probe{Send: "PING\r\n", Want: "+PONG"}},
		"any answer":   {"x", workload.Probe{Send: "PING\r\n"}},
		"any page":     {ok("hello"), workload.Probe{Path: "/"}},
		"sized":        {ok("hello"), workload.Probe{Path: "/", Size: 5}},
		"until closed": {"HTTP/1.0 200 OK\r\n\r\nhello", workload.Probe{Path: "/", Size: 5}},
		"in chunks":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", workload.Probe{Path: "/", Size: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.Port = freePort(t)
			serve(t, c.p.Port, says(c.says))
			if at, err := wait(t, time.Minute, c.p); err != nil || at.IsZero() {
				t.Errorf("%v, %v", at, err)
			}
		})
	}
}

// TestBadAnswers: the error says what was heard.
func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		p    workload.Probe
		want string
	}{
		"not found":     {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", workload.Probe{Path: "/x"}, "GET /x returned 404 Not Found, not 200"},
		"short":         {ok("hell"), workload.Probe{Path: "/", Size: 5}, "a body of 4 bytes, not 5"},
		"cut":           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", workload.Probe{Path: "/", Size: 5}, "a body of 3 bytes, not 5"},
		"cut chunks":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", workload.Probe{Path: "/", Size: 5}, "a body of 3 bytes, not 5"},
		"no last chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", workload.Probe{Path: "/", Size: 5}, "cut before its last chunk"},
		"no trailer":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", workload.Probe{Path: "/", Size: 5}, "cut before its last chunk"},
		"long chunks":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n3\r\nlo!\r\n", workload.Probe{Path: "/", Size: 5}, "longer than 5 bytes"},
		"wrong chunks":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", workload.Probe{Path: "/", Size: 5}, "longer than its size"},
		"no header":     {strings.Repeat("x", maxHead+1), workload.Probe{Path: "/"}, "its HTTP header does not end within 64 KiB"},
		"no HTTP":       {"-ERR\r\n\r\n", workload.Probe{Path: "/"}, `"-ERR", which is not HTTP`},
		"closes":        {"", workload.Probe{Path: "/"}, "closed the connection after nothing"},
		"another word":  {"-LOADING\r\n", workload.Probe{Send: "PING\r\n", Want: "+PONG"}, `"-LOADING", not "+PONG"`},
		"half the word": {"+PO", workload.Probe{Send: "PING\r\n", Want: "+PONG"}, `closed the connection after "+PO"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.Port = freePort(t)
			serve(t, c.p.Port, says(c.says))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := ask(ctx, hostSocket, loopback, c.p, time.Millisecond); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestWrongAnswerIsTakenAtItsWord: long before the time is over.
func TestWrongAnswerIsTakenAtItsWord(t *testing.T) {
	p := workload.Probe{Port: freePort(t), Path: "/"}
	serve(t, p.Port, says("HTTP/1.1 403 Forbidden\r\n\r\n"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := ask(ctx, hostSocket, loopback, p, 50*time.Millisecond)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "403 Forbidden, not 200, for 50ms now") {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// TestServerThatLoads: wrong answers that a good one follows are no failure.
func TestServerThatLoads(t *testing.T) {
	p := workload.Probe{Port: freePort(t), Send: "PING\r\n", Want: "+PONG"}
	begun := time.Now()
	serve(t, p.Port, func(c net.Conn) {
		text := "-LOADING Redis is loading the dataset in memory\r\n"
		if time.Since(begun) > 60*time.Millisecond {
			text = "+PONG\r\n"
		}
		says(text)(c)
	})
	at, err := wait(t, time.Minute, p)
	if err != nil || at.Sub(begun) < 60*time.Millisecond {
		t.Errorf("after %v: %v", at.Sub(begun), err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	if _, err := wait(t, 500*time.Millisecond, workload.Probe{Port: freePort(t)}); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	mute := freePort(t)
	serve(t, mute, func(c net.Conn) { _, _ = c.Read(make([]byte, 9)); <-t.Context().Done() })
	if _, err := wait(t, 500*time.Millisecond, workload.Probe{Port: mute, Path: "/"}); err == nil || !strings.Contains(err.Error(), "took the connection and said nothing") {
		t.Errorf("where nothing is said: %v", err)
	}
	if _, err := wait(t, time.Second, workload.Probe{Port: 0}); err == nil {
		t.Error("port 0 was asked")
	}
}

// TestSilenceIsAskedAgain: where attempts are lost, which the kernel would repeat
// a second later, the probe does not wait for that. A listener whose queue is full is
// silent (listen(2), "the request may be ignored"). A host that is busy for a second
// looks the same, but not each time.
func TestSilenceIsAskedAgain(t *testing.T) {
	for try := 1; ; try++ {
		// The probe began 50 ms before that, so the kernel's second attempt is 950 ms after it.
		took := untilHeard(t)
		if took < time.Second {
			return
		}
		if try == 4 {
			t.Fatalf("connected %v after the first attempt: it waited for the kernel to try again", took)
		}
	}
}

// untilHeard is the time from the first attempt, at a listener whose queue is
// emptied 50 ms later, to the connection.
func untilHeard(t *testing.T) time.Duration {
	t.Helper()
	fd, err := hostSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := name.(*unix.SockaddrInet4).Port
	for range 4 {
		c, err := hostSocket()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(c) }()
		_ = unix.Connect(c, &unix.SockaddrInet4{Port: port, Addr: loopback.As4()})
	}
	_, err = wait(t, 100*time.Millisecond, workload.Probe{Port: port})
	if !errors.Is(err, errSilent) {
		t.Skipf("this host does not keep silent when a listener's queue is full: %v", err)
	}
	begun := time.Now()
	times := make(chan time.Time, 1)
	time.AfterFunc(50*time.Millisecond, func() {
		times <- time.Now()
		for {
			c, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			_ = unix.Close(c)
		}
	})
	at, err := wait(t, time.Minute, workload.Probe{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	emptied := <-times
	t.Logf("connected %v after the queue was emptied", at.Sub(emptied))
	return at.Sub(begun)
}

// TestTimeOfTheFirstAnswer: the server says when it began to listen. How soon after
// that it was heard is the machine's business too; never before, and without silence
// nothing waits for the kernel's second attempt.
func TestTimeOfTheFirstAnswer(t *testing.T) {
	var late []time.Duration
	for range 15 {
		port := freePort(t)
		type result struct {
			at  time.Time
			err error
		}
		got := make(chan result, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			at, err := Wait(ctx, hostSocket, loopback, workload.Probe{Port: port, Path: "/", Size: 1})
			got <- result{at, err}
		}()
		time.Sleep(30 * time.Millisecond)
		before := time.Now()
		from := serve(t, port, says(ok("x")))
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.at.Before(before) {
			t.Errorf("answered %v before anybody listened", before.Sub(r.at))
		}
		late = append(late, r.at.Sub(from))
	}
	slices.Sort(late)
	t.Logf("later than the first listen: %v", late)
	if best := late[0]; best >= time.Second {
		t.Errorf("none of the answers was seen sooner than after %v", best)
	}
}

// BenchmarkRefused is what waiting for a server takes of a processor.
func BenchmarkRefused(b *testing.B) {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	var elapsed time.Duration
	for range b.N {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		begin := time.Now()
		_, _ = Wait(ctx, hostSocket, loopback, workload.Probe{Port: 9})
		elapsed += time.Since(begin)
		cancel()
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(100*used.Seconds()/elapsed.Seconds(), "%core")
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(ok("hello")), 3)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"), 7)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n"), 2)
	f.Add([]byte("HTTP/1.1 404 Not Found\r\n\r\n"), 100)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		if piece < 1 || len(text) > 64<<10 {
			return
		}
		p := workload.Probe{Port: 80, Path: "/", Size: 5}
		var a answer
		good, err := false, error(nil)
		for chunk := range slices.Chunk(text, piece) {
			if good, err = a.add(p, chunk); good || err != nil {
				break
			}
		}
		if !good && err == nil {
			good, err = a.add(p, nil)
		}
		if good == (err != nil) {
			t.Errorf("an answer that has ended is neither good nor bad: %v, %v", good, err)
		}
		if good && a.code != http.StatusOK {
			t.Errorf("status %d is good", a.code)
		}
	})
}
