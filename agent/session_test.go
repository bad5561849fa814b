package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// patience bounds the waits of a test, on a very busy machine too.
const patience = 20 * time.Second

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s: not %s", patience, what)
		}
	}
}

// raw is an agent and the stream of a client that the test plays. Its hello has been read.
type raw struct {
	*frameWriter
	to     *io.PipeWriter
	from   *io.PipeReader
	served chan error
}

func serveRaw(t *testing.T, traits ...Trait) raw {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	r := raw{frameWriter: &frameWriter{w: to}, to: to, from: from, served: make(chan error, 1)}
	go func() { r.served <- Serve(context.Background(), in, out, nil, traits...) }()
	if f, err := readFrame(from); err != nil || f.typ != frameHello {
		t.Fatalf("%+v, %v", f, err)
	}
	t.Cleanup(func() { _, _ = to.Close(), from.Close() })
	return r
}

// send works if the agent reads, whatever it writes.
func (r raw) send(t *testing.T, typ frameType, id uint32, body any) {
	t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- r.json(typ, id, body) }()
	select {
	case err := <-sent:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatalf("the agent does not read a frame of type %d", typ)
	}
}

func (r raw) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.served:
		return err
	case <-time.After(patience):
		t.Fatal("the agent does not end")
		return nil
	}
}

// TestNothingIsDoneBeforeHello: a client that begins with another frame is refused, and has
// started nothing.
func TestNothingIsDoneBeforeHello(t *testing.T) {
	file := t.TempDir() + "/made"
	for typ, body := range map[frameType]any{
		frameStart:  startBody{Args: []string{"touch", file}},
		frameSignal: signalBody{Signal: 9},
		frameCall:   callBody{Op: opTime},
		frameGo:     goBody{},
		frameRoom:   roomBody{},
		frameExit:   exitBody{},
	} {
		r := serveRaw(t)
		r.send(t, typ, 1, body)
		_ = r.to.Close()
		if err := r.end(t); !errors.Is(err, errFrame) {
			t.Errorf("type %d: %v", typ, err)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a command was started")
	}
}

// TestHelloIsSaidOnce: the client says hello only once, and with the agent's version.
func TestHelloIsSaidOnce(t *testing.T) {
	r := serveRaw(t)
	r.send(t, frameHello, 0, helloBody{Version: version})
	r.send(t, frameHello, 0, helloBody{Version: version})
	if err := r.end(t); !errors.Is(err, errFrame) {
		t.Errorf("twice: %v", err)
	}
	r = serveRaw(t)
	r.send(t, frameHello, 0, helloBody{Version: version - 1})
	f, err := readFrame(r.from)
	var h helloBody
	if err != nil || f.typ != frameHello || f.decode(&h) != nil || !strings.Contains(h.Error, "use the same binary") {
		t.Errorf("%+v, %v", f, err)
	}
	if err := r.end(t); err == nil || !strings.Contains(err.Error(), "use the same binary") {
		t.Errorf("another version: %v", err)
	}
}

// TestSilentClient: the agent does not wait for a hello for ever.
func TestSilentClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveRaw(t)
		begun := time.Now()
		if err := <-r.served; err == nil || !strings.Contains(err.Error(), "did not say hello") || time.Since(begun) != helloWithin {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		_ = r.to.Close()
	})
}

// TestHelloThatNobodyReads: on a network, nobody can keep an agent in its hello. On other streams it
// waits: a saved machine does.
func TestHelloThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _, _ = here.Close(), there.Close() }()
		begun := time.Now()
		if err := Serve(t.Context(), here, here, nil); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != helloWithin {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		r, w := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- Serve(t.Context(), r, w, nil) }()
		time.Sleep(10 * helloWithin)
		select {
		case err := <-served:
			t.Errorf("a saved machine: %v", err)
		default:
		}
		_ = r.Close()
		<-served
	})
}

// TestDeafClient: a client that reads nothing ends its session.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveRaw(t)
		r.send(t, frameHello, 0, helloBody{Version: version})
		for range 3 { // a slow one does not
			r.send(t, frameCall, 1, callBody{Op: opTime})
			time.Sleep(deaf - time.Second)
			if _, err := readFrame(r.from); err != nil {
				t.Fatal(err)
			}
		}
		r.send(t, frameCall, 1, callBody{Op: opTime})
		begun := time.Now()
		if err := <-r.served; !errors.Is(err, errDeaf) || time.Since(begun) > deaf {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		_, _ = r.to.Close(), r.from.Close()
	})
}

// TestDeafAgent is the same from the other end.
func TestDeafAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, fromClient := hostile(t)
		begun := time.Now()
		_, err := c.Run(t.Context(), sandbox.Command{Args: []string{"true"}})
		if err == nil || !strings.Contains(err.Error(), "has read nothing") || time.Since(begun) > deaf {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		_ = fromClient.Close()
	})
}

// TestDeafClientIsHeard: signals and the end of the stream arrive while nothing is read.
func TestDeafClientIsHeard(t *testing.T) {
	r := serveRaw(t)
	dir := t.TempDir()
	exists := func(name string) func() bool {
		return func() bool { _, err := os.Stat(dir + "/" + name); return err == nil }
	}
	r.send(t, frameHello, 0, helloBody{Version: version})
	r.send(t, frameStart, 1, startBody{Args: []string{"sleep", "600"}})
	for range 5 {
		r.send(t, frameCall, 2, callBody{Op: opTime})
	}
	r.send(t, frameStart, 3, startBody{Args: []string{"sh", "-c", fmt.Sprintf("cd %s; trap 'echo > term; exit' TERM; echo > up; yes & while :; do sleep 0.02; done", dir)}})
	until(t, "up", exists("up"))
	r.send(t, frameSignal, 3, signalBody{Signal: int(unix.SIGTERM)})
	until(t, "signalled", exists("term"))
	r.send(t, frameSignal, 1, signalBody{Signal: int(unix.SIGKILL)})
	_ = r.to.Close()
	if err := r.end(t); err != nil {
		t.Errorf("the end of the stream: %v", err)
	}
}

// TestFloodOfQuestions: the answers that a client asks for but does not read are bounded.
func TestFloodOfQuestions(t *testing.T) {
	r := serveRaw(t)
	r.send(t, frameHello, 0, helloBody{Version: version})
	op := callBody{Op: strings.Repeat("x", maxText)}
	flooded := make(chan int)
	go func() {
		n := 0
		for ; n < 10*mostUnread/maxText && r.json(frameCall, 1, op) == nil; n++ {
			select {
			case err := <-r.served:
				r.served <- err
				flooded <- n
				return
			default:
			}
		}
		flooded <- n
	}()
	if err := r.end(t); !errors.Is(err, errUnread) {
		t.Error(err)
	}
	_ = r.to.CloseWithError(io.ErrClosedPipe)
	select {
	case n := <-flooded:
		if n > 2*mostUnread/maxText {
			t.Errorf("%d questions of %d bytes", n, maxText)
		}
	case <-time.After(patience):
		t.Error("the agent neither reads nor ends")
	}
}

// stalled is a listener that does not take its output.
type stalled struct {
	came, more chan struct{}
	once       sync.Once
	got        int
}

func (s *stalled) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.came) })
	<-s.more
	s.got += len(p)
	return len(p), nil
}

// TestStalledListenerHoldsBackItsCommandAlone: it delays only its own command and loses no
// output, neither what the command has yet to write, nor what was in transit at its end.
func TestStalledListenerHoldsBackItsCommandAlone(t *testing.T) {
	c, _, _ := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	var held []*stalled
	for _, size := range []int{8 << 20, outputRoom + 40<<10} { // blocks in its pipe; ends, and its pipe is full
		s := &stalled{came: make(chan struct{}), more: make(chan struct{})}
		held = append(held, s)
		all.Go(func() {
			e, err := c.Run(ctx, sandbox.Command{Args: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}, Stdout: s})
			if err != nil || e.Code != 0 || s.got != size {
				t.Errorf("%+v, %v, %d bytes of %d", e, err, s.got, size)
			}
		})
		<-s.came
	}
	var out bytes.Buffer
	if e, err := c.Run(ctx, sandbox.Command{Args: []string{"echo", "hello"}, Stdout: &out}); err != nil || out.String() != "hello\n" {
		t.Errorf("another command: %+v, %v, %q", e, err, &out)
	}
	if err := c.Call(ctx, opTime, nil, nil); err != nil {
		t.Errorf("a call: %v", err)
	}
	time.Sleep(holdOn + holdOn/5) // longer than the wait for processes that only hold a pipe
	for _, s := range held {
		close(s.more)
	}
	all.Wait()
}

// TestStalledCommandCanBeKilled.
func TestStalledCommandCanBeKilled(t *testing.T) {
	r := serveRaw(t)
	r.send(t, frameHello, 0, helloBody{Version: version})
	r.send(t, frameStart, 1, startBody{Args: []string{"yes"}})
	for sent := 0; sent < outputRoom-2*(maxOutput+frameCost); { // no room is given back
		f, err := readFrame(r.from)
		if err != nil {
			t.Fatal(err)
		}
		sent += cost(len(f.payload))
	}
	r.send(t, frameSignal, 1, signalBody{Signal: int(unix.SIGKILL)})
	for {
		f, err := readFrame(r.from)
		var e exitBody
		if err != nil || f.typ == frameExit && (f.decode(&e) != nil || e.Signal != "SIGKILL") {
			t.Fatalf("%+v, %v", e, err)
		}
		if f.typ == frameExit {
			return
		}
	}
}

// TestOutputBeyondTheRoom: an agent that sends more than the client has room for is refused.
func TestOutputBeyondTheRoom(t *testing.T) {
	c, fw, reader := hostile(t)
	ids := starts(reader)
	s := &stalled{came: make(chan struct{}), more: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), sandbox.Command{Args: []string{"x"}, Stdout: s})
		failed <- err
	}()
	id := <-ids
	go func() {
		for range 2 * outputRoom / frameCost { // of nothing but their beginnings
			if fw.bytes(frameStdout, id, nil) != nil {
				return
			}
		}
	}()
	select {
	case <-c.gone:
	case <-time.After(patience):
		t.Fatal("the client keeps all of it")
	}
	close(s.more)
	if err := <-failed; !errors.Is(err, errFrame) {
		t.Error(err)
	}
}

// TestLateOutput: what a command's own children write after its end arrives.
func TestLateOutput(t *testing.T) {
	c, _, _ := pair(t)
	var out bytes.Buffer
	e, err := c.Run(t.Context(), sandbox.Command{Args: []string{"sh", "-c", "(sleep 0.1; echo late) & echo soon"}, Stdout: &out})
	if err != nil || e.Code != 0 || out.String() != "soon\nlate\n" {
		t.Errorf("%+v, %v, %q", e, err, &out)
	}
}
