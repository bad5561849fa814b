package qmp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// replay plays QEMU's part on conn with what a real one said: the greeting, then for each
// command that comes everything up to its answer, with the command's own number.
func replay(conn net.Conn, said []byte) {
	defer conn.Close()
	lines := bytes.SplitAfter(said, []byte("\n"))
	if _, err := conn.Write(lines[0]); err != nil {
		return
	}
	lines = lines[1:]
	commands := bufio.NewScanner(conn)
	for commands.Scan() {
		var c struct {
			ID uint64 `json:"id"`
		}
		if json.Unmarshal(commands.Bytes(), &c) != nil {
			return
		}
		for answered := false; !answered; lines = lines[1:] {
			if len(lines) == 0 || len(lines[0]) == 0 {
				return
			}
			var m map[string]any
			if json.Unmarshal(lines[0], &m) != nil {
				return
			}
			if _, answered = m["id"]; answered {
				m["id"] = c.ID
			}
			b, err := json.Marshal(m)
			if err != nil {
				return
			}
			if _, err := conn.Write(append(b, "\r\n"...)); err != nil {
				return
			}
		}
	}
}

func captured(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/qemu-7.2.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTalk goes through what a real QEMU said.
func TestTalk(t *testing.T) {
	ours, theirs := net.Pipe()
	go replay(theirs, captured(t))
	var mu sync.Mutex
	var events []string
	c, err := Connect(t.Context(), ours, func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e.Name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Version().String(); got != "7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)" {
		t.Errorf("version %q", got)
	}
	var slots []struct {
		Type  string         `json:"type"`
		Props map[string]int `json:"props"`
		Path  string         `json:"qom-path"`
	}
	if err := c.Run(t.Context(), "query-hotpluggable-cpus", nil, &slots); err != nil {
		t.Fatal(err)
	}
	if len(slots) != 2 || slots[0].Type != "qemu64-x86_64-cpu" || slots[0].Props["socket-id"] != 1 || slots[1].Path == "" {
		t.Errorf("%+v", slots)
	}
	if err := c.Run(t.Context(), "device_add", map[string]string{"driver": "x"}, nil); err != nil {
		t.Error(err)
	}
	var refused *Error
	if err := c.Run(t.Context(), "device_add", nil, nil); !errors.As(err, &refused) ||
		err.Error() != "QEMU refuses device_add: 'no-such-device' is not a valid device model name" {
		t.Error(err)
	}
	var status struct{ Status string }
	if err := c.Run(t.Context(), "query-status", nil, &status); err != nil || status.Status != "prelaunch" {
		t.Error(status, err)
	}
	for _, command := range []string{"cont", "stop", "quit"} {
		if err := c.Run(t.Context(), command, nil, nil); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	if got := strings.Join(events, " "); got != "RESUME STOP SHUTDOWN" {
		t.Errorf("events %s", got)
	}
	mu.Unlock()
	if err := c.Run(t.Context(), "query-status", nil, nil); !errors.Is(err, errGone) {
		t.Errorf("after the end: %v", err)
	}
	<-c.Gone()
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConnectFails: what answers is no QEMU, or nothing.
func TestConnectFails(t *testing.T) {
	long := `{"QMP": "` + strings.Repeat("x", maxLine) + "\"}\n"
	for name, c := range map[string]struct{ said, want string }{
		"nothing":     {"", "did not send its greeting"},
		"other":       {"HTTP/1.1 400 Bad Request\n", "not a message"},
		"no greeting": {"{\"return\": {}}\n", "did not begin with a greeting"},
		"too long":    {long, "too long"},
		"ends":        {"{\"QMP\": {\"version\": {\"qemu\": {\"major\": 7}}}}\n", "has closed its control socket"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.WriteString(theirs, c.said)
				_ = theirs.Close()
			}()
			if _, err := Connect(t.Context(), ours, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := Connect(ctx, ours, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestRunIsBounded: one that does not answer ends with the context.
func TestRunIsBounded(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		lines := bytes.SplitAfter(captured(t), []byte("\n"))
		_, _ = theirs.Write(lines[0])
		r := bufio.NewReader(theirs)
		_, _ = r.ReadString('\n')
		_, _ = theirs.Write(lines[1])
		_, _ = io.Copy(io.Discard, r)
	}()
	c, err := Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Run(ctx, "query-status", nil, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "query-status") {
		t.Error(err)
	}
	if err := c.SendFile(t.Context(), "x", os.Stdin); err == nil || !strings.Contains(err.Error(), "only be sent over unix sockets") {
		t.Error(err)
	}
}

// FuzzSaid: whatever comes in QEMU's place, everybody is answered and nothing hangs.
func FuzzSaid(f *testing.F) {
	f.Add(captured(f))
	f.Add([]byte(`{"QMP": {}}` + "\n" + `{"return": {}, "id": 1}` + "\n" + `{"error": {"desc": "x"}}` + "\n"))
	f.Add([]byte(`{"QMP": {}}` + "\n" + `{"id": 1, "error": null}` + "\n" + `{"return": [], "id": 2}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() {
			_, _ = theirs.Write(said)
			_ = theirs.Close()
		}()
		c, err := Connect(t.Context(), ours, func(Event) {})
		if err != nil {
			return
		}
		var result struct{ Status string }
		_ = c.Run(t.Context(), "query-status", nil, &result)
		<-c.Gone()
		_ = c.Close()
	})
}

// TestFullSocket: QEMU that does not read holds nobody longer than their context, who waits to write
// included.
func TestFullSocket(t *testing.T) {
	ours, theirs := net.Pipe() // has no room at all
	defer theirs.Close()
	go func() {
		_, _ = theirs.Write(bytes.SplitAfter(captured(t), []byte("\n"))[0])
		s := bufio.NewScanner(theirs)
		s.Scan()
		_, _ = theirs.Write([]byte(`{"return": {}, "id": 1}` + "\n"))
	}()
	c, err := Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	said := make(chan error, 2)
	for range 2 {
		go func() { said <- c.Run(ctx, "stop", nil, nil) }()
	}
	for range 2 {
		if err := <-said; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	<-c.Gone() // half a line may have gone
}
