package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/sandbox"
)

// pair connects a client to an agent through pipes, as a sandbox does.
func pair(t *testing.T) (*Client, io.Closer, <-chan error) {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := Serve(context.Background(), toAgent, fromAgent, nil)
		_ = fromAgent.Close()
		served <- err
	}()
	c, err := Connect(t.Context(), toClient, fromClient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fromClient.Close() })
	return c, fromClient, served
}

func TestRunReportsOutputAndExit(t *testing.T) {
	c, _, _ := pair(t)
	var out, errs bytes.Buffer
	e, err := c.Run(t.Context(), sandbox.Command{
		Args: []string{"sh", "-c", "echo out $GREETING; echo err >&2; exit 3"},
		Env:  []string{"GREETING=hello"}, Stdout: &out, Stderr: &errs,
	})
	if err != nil || e.Code != 3 || out.String() != "out hello\n" || errs.String() != "err\n" {
		t.Fatalf("exit %+v, error %v, stdout %q, stderr %q", e, err, out.String(), errs.String())
	}
}

func TestRunTellsTheSignal(t *testing.T) {
	c, _, _ := pair(t)
	e, err := c.Run(t.Context(), sandbox.Command{Args: []string{"sh", "-c", "kill -SEGV $$"}})
	if err != nil || e.Signal != "SIGSEGV" || e.Code != 139 {
		t.Fatalf("exit %+v, error %v", e, err)
	}
}

// TestBrief: a message names the command, and does not quote a script in full.
func TestBrief(t *testing.T) {
	for want, args := range map[string][]string{
		`"sleep 1"`: {"sleep", "1"},
		`"sh -c ` + strings.Repeat("x", 42) + `"...`: {"sh", "-c", strings.Repeat("x", 500)},
		`"` + strings.Repeat("x", 47) + `"...`:       {strings.Repeat("x", 47) + "ü"},
		`"a\nb"`:                                     {"a\nb"},
	} {
		if got := brief(args); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

func TestRunOfAMissingProgram(t *testing.T) {
	c, _, _ := pair(t)
	var errs bytes.Buffer
	e, err := c.Run(t.Context(), sandbox.Command{Args: []string{"/no/such"}, Stderr: &errs})
	if err != nil || e.Code != 127 || !strings.Contains(errs.String(), "no such file") {
		t.Fatalf("exit %+v, error %v, stderr %q", e, err, errs.String())
	}
}

func TestRunIsConcurrentAndLargeOutputIsWhole(t *testing.T) {
	c, _, _ := pair(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var out bytes.Buffer
			e, err := c.Run(t.Context(), sandbox.Command{Args: []string{"head", "-c", "3000000", "/dev/zero"}, Stdout: &out})
			if err != nil || e.Code != 0 || out.Len() != 3000000 {
				t.Errorf("exit %+v, error %v, %d bytes", e, err, out.Len())
			}
		})
	}
	wg.Wait()
}

func TestContextEndsACommandThatIgnoresSIGTERM(t *testing.T) {
	c, _, _ := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	var once sync.Once
	go func() { <-ready; cancel() }()
	e, err := c.Run(ctx, sandbox.Command{
		Args:   []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"},
		Stdout: writerFunc(func(p []byte) (int, error) { once.Do(func() { close(ready) }); return len(p), nil }),
	})
	if err != nil || e.Signal != "SIGKILL" {
		t.Fatalf("exit %+v, error %v", e, err)
	}
}

func TestEndOfStreamKillsCommands(t *testing.T) {
	c, stream, served := pair(t)
	started := make(chan struct{})
	var once sync.Once
	result := make(chan error, 1)
	go func() {
		_, err := c.Run(context.Background(), sandbox.Command{
			Args:   []string{"sh", "-c", "echo up; sleep 600"},
			Stdout: writerFunc(func(p []byte) (int, error) { once.Do(func() { close(started) }); return len(p), nil }),
		})
		result <- err
	}()
	<-started
	_ = stream.Close()
	select {
	case err := <-served:
		if err != nil {
			t.Fatalf("Serve: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the agent goes on after its stream ended")
	}
	if err := <-result; err == nil || !strings.Contains(err.Error(), "sandbox ended") {
		t.Fatalf("Run returned %v", err)
	}
}

func TestConnectRefusesNoise(t *testing.T) {
	_, err := Connect(t.Context(), strings.NewReader("Kernel panic - not syncing"), io.Discard)
	if err == nil {
		t.Fatal("noise was taken for an agent")
	}
}

// TestNoiseIsQuoted: what a runtime prints instead of a frame reaches the user,
// bounded, also when the runtime lives on and closes nothing.
func TestNoiseIsQuoted(t *testing.T) {
	const complaint = "unknown option --bundle"
	for name, text := range map[string]string{"whole": complaint, "shorter than a frame": "no luck", "endless": strings.Repeat(complaint, 1000)} {
		for _, ends := range []bool{true, false} {
			r, w := io.Pipe()
			go func() {
				_, _ = io.WriteString(w, text)
				if ends {
					_ = w.Close()
				}
			}()
			if !ends && len(text) < headerSize {
				continue // nothing tells it from the start of a frame
			}
			_, err := Connect(t.Context(), r, io.Discard)
			_ = r.Close()
			if err == nil || !errors.Is(err, errFrame) || !strings.Contains(err.Error(), strconv.Quote(text[:min(len(text), noiseMost)])) {
				t.Errorf("%s, ends %v: %v", name, ends, err)
			}
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	fw := &frameWriter{w: &b}
	_ = fw.json(frameStart, 7, startBody{Args: []string{"true"}})
	f.Add(b.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := (&frameWriter{w: &again}).bytes(fr.typ, fr.id, fr.payload); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Fatalf("frame changed: %x became %x", data, again.Bytes())
		}
	})
}
