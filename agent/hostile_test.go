package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"tare/sandbox"
)

// frameWriter is the test's side of the stream.
type frameWriter struct{ w io.Writer }

func (fw *frameWriter) bytes(t frameType, id uint32, payload []byte) error {
	b, err := appendFrame(nil, t, id, payload)
	if err == nil {
		_, err = fw.w.Write(b)
	}
	return err
}

func (fw *frameWriter) json(t frameType, id uint32, body any) error {
	b, err := appendBody(nil, t, id, body)
	if err == nil {
		_, err = fw.w.Write(b)
	}
	return err
}

// hostile connects a client to an agent that is played by the test: what it writes
// to the returned writer the client reads; what the client writes is in the reader.
func hostile(t testing.TB) (*Client, *frameWriter, *io.PipeReader) {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	fw := &frameWriter{w: fromAgent}
	said := make(chan error, 1)
	go func() { said <- fw.json(frameHello, 0, helloBody{Version: version}) }()
	c, err := Connect(t.Context(), toClient, fromClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-said; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = fromAgent.Close(), toAgent.Close() })
	return c, fw, toAgent
}

// starts reads what a client says, for the number of each command that it starts.
func starts(r io.Reader) <-chan uint32 {
	ids := make(chan uint32, 1)
	go func() {
		for f, err := readFrame(r); err == nil; f, err = readFrame(r) {
			if f.typ == frameStart {
				ids <- f.id
			}
		}
	}()
	return ids
}

// TestDeafAgentHoldsUpNobody: it reads nothing, not even the hello.
func TestDeafAgentHoldsUpNobody(t *testing.T) {
	c, _, _ := hostile(t)
	within := func(what string, f func(context.Context)) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); f(ctx) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for an agent that is deaf", what)
		}
	}
	for range queued + 3 { // more than the queue takes
		within("Ask", func(context.Context) { c.Guest().Ask(); c.guest.mu.Lock(); c.guest.asked = false; c.guest.mu.Unlock() })
	}
	within("Call", func(ctx context.Context) {
		if err := c.Call(ctx, "x", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call: %v", err)
		}
	})
	within("Clock", func(ctx context.Context) { _, _ = c.Clock(ctx) })
	within("Run", func(ctx context.Context) {
		if _, err := c.Run(ctx, sandbox.Command{Args: []string{"true"}}); err == nil {
			t.Error("a command ran")
		}
	})
}

// TestHostileAgent: what it says without being asked, or says twice, or that cannot
// be, changes nothing and is not kept.
func TestHostileAgent(t *testing.T) {
	c, fw, reader := hostile(t)
	started := starts(reader)
	var errs bytes.Buffer
	result := make(chan sandbox.Exit, 1)
	gate := sandbox.NewGate(2)
	go func() {
		e, err := c.Run(t.Context(), sandbox.Command{Args: []string{"true"}, Stderr: &errs, Gate: gate})
		if err != nil {
			t.Error(err)
		}
		result <- e
	}()
	id := <-started
	send := func(typ frameType, id uint32, body any) {
		t.Helper()
		if err := fw.json(typ, id, body); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(1000) {
		send(frameReturn, 1e6+i, returnBody{Error: "unasked"})
		send(frameExit, 1e6+i, exitBody{Code: 1})
		send(frameStdout, 1e6+i, "x")
		send(frameReady, id, struct{}{}) // it must not open the gate for the other command
	}
	if !gate.Moment().IsZero() {
		t.Error("one command that says ready twice opened a gate of two")
	}
	send(frameExit, id, exitBody{Code: 3, Signal: strings.Repeat("S", 1000), User: -5, System: 7, Start: 12, Error: strings.Repeat("e", maxSmall/2)})
	send(frameExit, id, exitBody{Code: 4})
	if e := <-result; e.Code != 3 || len(e.Signal) > maxSignal || e.User != 0 || e.System != 7 || !e.Start.IsZero() || errs.Len() > maxText+100 {
		t.Errorf("%+v, %d bytes of error", e, errs.Len())
	}
	sample, err := json.Marshal(samplesBody{[]sampleBody{{At: 1, CPUs: []sampleCPU{{Number: 0}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * maxReadings {
		c.guest.answered(returnBody{Body: sample}, 1, time.Now(), time.Now())
	}
	c.mu.Lock()
	left := len(c.cmds) + len(c.asks)
	c.mu.Unlock()
	// The gate's call for the time may still wait for its answer.
	if got, _ := c.Guest().Take(); len(got) > maxReadings || left > 1 {
		t.Errorf("%d readings are kept, %d questions", len(got), left)
	}
}

// FuzzClient is an agent that says anything after its hello, to a client that has
// asked for everything.
func FuzzClient(f *testing.F) {
	seed := func(frames ...func(*frameWriter)) {
		var b bytes.Buffer
		for _, frame := range frames {
			frame(&frameWriter{w: &b})
		}
		f.Add(b.Bytes())
	}
	for id := range uint32(3) {
		seed(
			func(w *frameWriter) { _ = w.json(frameReady, id, struct{}{}) },
			func(w *frameWriter) { _ = w.bytes(frameStdout, id, []byte("text")) },
			func(w *frameWriter) { _ = w.json(frameReturn, id, returnBody{Body: json.RawMessage(`{"ns":1}`)}) },
			func(w *frameWriter) { _ = w.json(frameExit, id, exitBody{Code: 1, Start: 1}) },
		)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		said := &script{asked: make(chan struct{}), rest: bytes.NewReader(data)}
		if err := (&frameWriter{w: &said.hello}).json(frameHello, 0, helloBody{Version: version}); err != nil {
			t.Fatal(err)
		}
		c, err := Connect(t.Context(), said, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		c.Guest().Ask()
		ended := make(chan struct{}, 2)
		go func() {
			_, _ = c.Run(t.Context(), sandbox.Command{Args: []string{"x"}, Gate: sandbox.NewGate(1)})
			ended <- struct{}{}
		}()
		go func() { _ = c.Call(t.Context(), "x", nil, nil); ended <- struct{}{} }()
		close(said.asked)
		for range 2 {
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("the client waits for a stream that has ended")
			}
		}
		readings, _ := c.Guest().Take() // it may have said anything
		for _, r := range readings {
			if r.At.IsZero() {
				t.Error("a reading without a time")
			}
		}
	})
}

// script is what an agent sends: first its hello, and the rest once it was asked, whether the
// client reads it or not.
type script struct {
	hello bytes.Buffer
	asked chan struct{}
	rest  io.Reader
}

func (s *script) Read(p []byte) (int, error) {
	if s.hello.Len() > 0 {
		return s.hello.Read(p)
	}
	<-s.asked
	return s.rest.Read(p)
}

// FuzzServer is a client that says anything, but for starts and signals: what those
// do is the command's.
func FuzzServer(f *testing.F) {
	for _, op := range []string{opTime, opSample, "none"} {
		f.Add(byte(frameCall), []byte(`{"op":"`+op+`","body":{"a":1}}`))
	}
	f.Add(byte(frameCall), []byte(`{"op":"sample","body":{"count":2,"every_ns":1000000000}}`))
	f.Add(byte(frameCall), []byte(`{"op":"sample","body":{"count":-1}}`))
	f.Add(byte(frameHello), []byte(`{"version":4}`))
	f.Add(byte(frameGo), []byte(`{"at_ns":-1}`))
	f.Add(byte(frameRoom), []byte(`{"bytes":-1}`))
	f.Fuzz(func(t *testing.T, typ byte, payload []byte) {
		if frameType(typ) == frameStart || frameType(typ) == frameSignal || len(payload) > maxSmall {
			return
		}
		var out bytes.Buffer
		s := &server{out: newOutbox(&out), ops: Operations{opTime: tell}, running: map[uint32]*command{}}
		s.samples = &batch{figures: &sampler{root: "testdata/two"}, answer: s.answer}
		err := s.take(frame{typ: frameType(typ), id: 7, payload: payload})
		if closed := errors.Join(s.samples.close(), s.out.output(nil)); closed != nil { // then nothing more is written
			t.Fatal(closed)
		}
		if err != nil {
			return
		}
		if out.Len() > 0 {
			if back, err := readFrame(&out); err != nil || back.typ != frameReturn || back.id != 7 {
				t.Fatalf("%+v, %v", back, err)
			}
		}
	})
}

// TestOutputBeforeTheStart: an agent may guess the number of a command that the client is
// about to start. It is for the race detector.
func TestOutputBeforeTheStart(t *testing.T) {
	c, fw, fromClient := hostile(t)
	started := starts(fromClient)
	begun := make(chan struct{})
	go func() {
		piece := make([]byte, maxOutput-frameCost)
		for n := 0; ; n++ {
			if n == 1 {
				close(begun)
			}
			if fw.bytes(frameStdout, 1, piece) != nil {
				return
			}
			select {
			case <-started:
				_ = fw.json(frameExit, 1, exitBody{})
				return
			default:
			}
		}
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, _ = c.Run(ctx, sandbox.Command{Args: []string{"true"}})
}
