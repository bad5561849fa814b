package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	port = 7000
	body = "well" // of a good answer
	// asking is how long the client goes on if nothing goes wrong.
	asking = 300 * time.Millisecond
	// patience is how long it waits for one answer.
	patience = time.Second
)

// serve is the server, good or faulty. It ends by its fault or by a signal.
func (m misbehaver) serve(do string, after time.Duration) int {
	if do == doMute {
		m.say("not listening, as asked")
		time.Sleep(m.hang)
		return codeFailed
	}
	ln, err := net.Listen("tcp", ":"+strconv.Itoa(m.port))
	if err != nil {
		m.say("%v", err)
		return codeFailed
	}
	defer func() { _ = ln.Close() }()
	switch do {
	case doPort:
		_, err := net.Listen("tcp", ln.Addr().String())
		m.say("listening a second time, as asked: %v", err)
		return codeFailed
	case doStall:
		m.say("taking connections and never answering, as asked")
		time.Sleep(m.hang)
		return codeFailed
	}
	return m.answer(ln, do, after)
}

// answer serves HTTP until it fails, or crashes some time after the first client.
func (m misbehaver) answer(ln net.Listener, do string, after time.Duration) int {
	clients := make(chan struct{}, 1)
	s := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if do == doLost {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
		if r.URL.Path == "/client" {
			select {
			case clients <- struct{}{}:
			default:
			}
		}
	})}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(ln) }()
	if do != doCrash {
		m.say("%v", <-failed)
		return codeFailed
	}
	select {
	case err := <-failed:
		m.say("%v", err)
	case <-clients:
		time.Sleep(after)
		m.say("panic: crashing under a client, as asked")
	}
	return codeAsked
}

// ask is the client: it asks for a while, and fails at the first error.
func (m misbehaver) ask(addr string) int {
	start := time.Now()
	client := &http.Client{Timeout: patience}
	for time.Since(start) < m.asking {
		if err := get(client, "http://"+addr+"/client"); err != nil {
			m.say("%v", err)
			return codeFailed
		}
		time.Sleep(time.Millisecond)
	}
	if err := json.NewEncoder(m.stdout).Encode(report{Elapsed: time.Since(start).Nanoseconds()}); err != nil {
		m.say("%v", err)
		return codeFailed
	}
	return 0
}

func get(client *http.Client, url string) error {
	r, err := client.Get(url)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("GET %s: no answer within %s", url, patience)
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	if err != nil || r.StatusCode != http.StatusOK || string(b) != body {
		return fmt.Errorf("GET %s: %s, %q, %w", url, r.Status, b, err)
	}
	return nil
}

// noCall is a number that no system call has: Documentation/process/adding-syscalls.rst
// gives them out from the lowest.
const noCall = 4000

// call makes a system call that does not exist.
func (m misbehaver) call() int {
	_, _, errno := syscall.RawSyscall(noCall, 0, 0, 0)
	m.say("system call %d: %v", noCall, errno)
	return codeFailed
}
