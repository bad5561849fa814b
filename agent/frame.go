package agent

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tare/sandbox"
)

// version of the protocol. Both sides send it in their hello and refuse any other: both
// come from one build, so they never need to negotiate.
const version = 5

// maxPayload bounds one frame, so that a hostile or faulty peer cannot make the other side
// allocate more. maxSmall bounds the frames of short types, and maxText each text that a
// user sees.
const (
	maxPayload = 1 << 20
	maxSmall   = 64 << 10
	maxText    = 4 << 10
)

type frameType byte

const (
	frameHello  frameType = 1  // either way, first: helloBody
	frameStart  frameType = 2  // to the agent: startBody
	frameSignal frameType = 3  // to the agent: signalBody
	frameStdout frameType = 4  // from the agent: bytes
	frameStderr frameType = 5  // from the agent: bytes
	frameExit   frameType = 6  // from the agent: exitBody
	frameCall   frameType = 7  // to the agent: callBody
	frameReturn frameType = 8  // from the agent: returnBody
	frameReady  frameType = 9  // from the agent, of a gated command: no body
	frameGo     frameType = 10 // to the agent, of a gated command: goBody
	frameRoom   frameType = 11 // to the agent, of a command's output: roomBody
)

// frameLast is the highest type.
const frameLast = frameRoom

// most returns the longest payload of this type, in bytes.
func (t frameType) most() uint32 {
	switch t {
	case frameStart, frameCall, frameReturn:
		return maxPayload
	default:
		return maxSmall
	}
}

// frame is one message. On the wire: payload length (4 bytes, big endian),
// type (1), command id (4, big endian), payload.
type frame struct {
	typ     frameType
	id      uint32
	payload []byte
}

// helloBody is the first frame of both sides. An agent that refuses a client sends a second hello with the Error.
type helloBody struct {
	Version int    `json:"version"`
	Pid     int    `json:"pid,omitempty"` // the agent's
	Error   string `json:"error,omitempty"`
}

type startBody struct {
	Args []string     `json:"args"`
	Env  []string     `json:"env,omitempty"`
	Dir  string       `json:"dir,omitempty"`
	User sandbox.User `json:"user,omitzero"`
	Gate bool         `json:"gate,omitempty"` // get ready, say so, and wait for frameGo
}

// goBody says when a gated command starts, by the sandbox's clock.
type goBody struct {
	At int64 `json:"at_ns"`
}

type signalBody struct {
	Signal int `json:"signal"`
}

// roomBody lets the agent send this many more bytes of a command's output, see window.
type roomBody struct {
	Bytes int `json:"bytes"`
}

// exitBody says how a command ended. Error is set if it could not be started. User and
// System are nanoseconds of CPU. Start is when a gated command started, by the sandbox's
// clock. OOM: the sandbox's own kernel killed a process for lack of memory meanwhile.
type exitBody struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	User   int64  `json:"user_ns"`
	System int64  `json:"system_ns"`
	Start  int64  `json:"start_ns,omitempty"`
	OOM    bool   `json:"oom,omitempty"`
	Error  string `json:"error,omitempty"`
}

// callBody asks for an operation. returnBody answers with the operation's result or the
// text of an error.
type callBody struct {
	Op   string          `json:"op"`
	Body json.RawMessage `json:"body,omitempty"`
}

type returnBody struct {
	Error string          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

const headerSize = 9

var errFrame = errors.New("agent: malformed frame")

// noiseError says what something other than the agent wrote to the agent's channel:
// usually a runtime that prints an error on standard output.
type noiseError struct {
	what string
	head []byte // the first bytes in place of a frame, at most noiseMost
}

func (e *noiseError) Error() string {
	return fmt.Sprintf("%v: %s; something other than the agent wrote to its channel: %q", errFrame, e.what, e.head)
}

func (e *noiseError) Unwrap() error { return errFrame }

// noiseMost bounds what an error quotes, in bytes. noiseWait is how long the client waits
// for the rest: a program writes its error at once.
const (
	noiseMost = 200
	noiseWait = 200 * time.Millisecond
)

// withNoise adds to a noiseError what follows on r. It does not wait for the end of r,
// because the program may go on writing. The goroutine that it leaves behind ends with r.
func withNoise(err error, r io.Reader) error {
	var noise *noiseError
	if !errors.As(err, &noise) {
		return err
	}
	chunks := make(chan []byte)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(chunks)
		for left := noiseMost - len(noise.head); left > 0; {
			buf := make([]byte, left)
			n, err := r.Read(buf)
			select {
			case chunks <- buf[:n]:
			case <-stop:
				return
			}
			if left -= n; err != nil {
				return
			}
		}
	}()
	full := &noiseError{what: noise.what, head: bytes.Clone(noise.head)}
	t := time.NewTimer(noiseWait)
	defer t.Stop()
	for {
		select {
		case b, more := <-chunks:
			if !more {
				return full
			}
			full.head = append(full.head, b...)
		case <-t.C:
			return full
		}
	}
}

func readFrame(r io.Reader) (frame, error) {
	var h [headerSize]byte
	// Every frame begins with 0 (see maxPayload). Bytes that begin otherwise are noise, not a
	// frame cut short.
	if got, err := io.ReadFull(r, h[:]); errors.Is(err, io.ErrUnexpectedEOF) && h[0] != 0 {
		return frame{}, &noiseError{what: "cut short", head: h[:got]}
	} else if err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(h[:4])
	f := frame{typ: frameType(h[4]), id: binary.BigEndian.Uint32(h[5:])}
	if f.typ < frameHello || f.typ > frameLast {
		return frame{}, &noiseError{what: fmt.Sprintf("type %d", h[4]), head: h[:]}
	}
	if n > f.typ.most() {
		return frame{}, &noiseError{what: fmt.Sprintf("%d bytes, more than %d", n, f.typ.most()), head: h[:]}
	}
	f.payload = make([]byte, n)
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return frame{}, fmt.Errorf("agent: frame cut short: %w", err)
	}
	return f, nil
}

// appendFrame adds a frame to dst.
func appendFrame(dst []byte, t frameType, id uint32, payload []byte) ([]byte, error) {
	if len(payload) > int(t.most()) {
		return dst, fmt.Errorf("%w: a payload of %d bytes, more than %d", errFrame, len(payload), t.most())
	}
	return append(appendHeader(dst, t, id, len(payload)), payload...), nil
}

func appendHeader(dst []byte, t frameType, id uint32, size int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(size)) //nolint:gosec // bounded by the caller
	dst = append(dst, byte(t))
	return binary.BigEndian.AppendUint32(dst, id)
}

// appendBody adds a frame whose payload is JSON to dst.
func appendBody(dst []byte, t frameType, id uint32, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return dst, fmt.Errorf("agent: %w", err)
	}
	return appendFrame(dst, t, id, b)
}

// text returns the part of the peer's text that may be shown.
func text(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + " [cut]"
	}
	return s
}

func (f frame) decode(body any) error {
	if err := json.Unmarshal(f.payload, body); err != nil {
		return fmt.Errorf("%w: type %d: %w", errFrame, f.typ, err)
	}
	return nil
}
