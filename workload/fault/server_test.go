package fault

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer may be read while it is written to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// begin starts a server in this process on a port that was free, and waits until
// it answers in some way.
func begin(t *testing.T, do string) (ended <-chan int, addr string, said *lockedBuffer) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := ln.Addr().(*net.TCPAddr).Port
	_ = ln.Close()
	said = &lockedBuffer{}
	codes := make(chan int, 1)
	m := misbehaver{stdout: io.Discard, stderr: said, hang: time.Minute, port: free}
	go func() { codes <- m.serve(do, 0) }()
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
	if do == doMute || do == doPort {
		return codes, addr, said // nobody will ever listen, or not for long
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return codes, addr, said
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func client(addr string) (int, string) {
	var stdout, stderr bytes.Buffer
	code := misbehaver{stdout: &stdout, stderr: &stderr, asking: 50 * time.Millisecond}.ask(addr)
	return code, stdout.String() + stderr.String()
}

func TestClientsOfServers(t *testing.T) {
	for do, want := range map[string]struct {
		code int
		says string
	}{
		doServe: {0, `{"elapsed_ns":`},
		doLost:  {codeFailed, "404"},
		doStall: {codeFailed, "no answer within 1s"},
		doMute:  {codeFailed, "refused"},
	} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			_, addr, _ := begin(t, do)
			if code, said := client(addr); code != want.code || !strings.Contains(said, want.says) {
				t.Errorf("code %d, %q", code, said)
			}
		})
	}
}

func TestServersThatEnd(t *testing.T) {
	ended, _, said := begin(t, doPort)
	if code := <-ended; code != codeFailed || !strings.Contains(said.String(), "address already in use") {
		t.Errorf("port: code %d, %s", code, said)
	}
	ended, addr, said := begin(t, doCrash)
	r, err := http.Get("http://" + addr + "/") // as a probe does
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", r, err)
	}
	_ = r.Body.Close()
	select {
	case <-ended:
		t.Fatal("it crashed before a client came")
	case <-time.After(20 * time.Millisecond):
	}
	_, _ = client(addr)
	if code := <-ended; code != codeAsked || !strings.Contains(said.String(), "panic") {
		t.Errorf("crash: code %d, %s", code, said)
	}
}

func TestNoSuchCall(t *testing.T) {
	var said bytes.Buffer
	if code := (misbehaver{stderr: &said}).call(); code != codeFailed || !strings.Contains(said.String(), "function not implemented") {
		t.Errorf("code %d, %s", code, &said)
	}
}
