package netload

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// The control connection carries lines of JSON, over TCP to the server's port:
//
//	client: config               server: answer (token, UDP ports) or an error
//	client: data connections, each beginning with a hello; server: answer when all are there
//	client: begin, end, stop     server: report, after stop
//
// The first byte distinguishes a data connection from a control connection.

const (
	opBegin = "begin" // the warm-up is over
	opEnd   = "end"   // measuring is over
	opStop  = "stop"  // send no more, and report

	helloMagic = 'T'
	helloSize  = 16
	handshake  = 10 * time.Second // for each step before and after the load
	controlMax = 32 << 20         // bytes of one session's control connection
)

type order struct {
	Op      string  `json:"op"`
	N       int     `json:"n,omitempty"`       // of a profile: the transaction, from 0
	Strands []tally `json:"strands,omitempty"` // of a profile's finish
}

type answer struct {
	Error  string  `json:"error,omitempty"`
	Token  uint64  `json:"token,omitempty"`
	Ports  []int   `json:"udp_ports,omitempty"`
	Report *report `json:"report,omitempty"`

	Listen  []listening `json:"listen,omitempty"`  // of a profile: the strands' ports
	Strands []tally     `json:"strands,omitempty"` // of a profile: what they sent
}

// wire is one end of a control connection.
type wire struct {
	conn net.Conn
	enc  *json.Encoder
	dec  *json.Decoder
}

func newWire(c net.Conn, first []byte) *wire {
	r := io.MultiReader(&byteReader{first}, c)
	return &wire{c, json.NewEncoder(c), json.NewDecoder(io.LimitReader(r, controlMax))}
}

// byteReader returns bytes again that were read to inspect them.
type byteReader struct{ b []byte }

func (r *byteReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

func (w *wire) send(v any) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(handshake)); err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	if err := w.enc.Encode(v); err != nil {
		return fmt.Errorf("writing to the control connection: %w", err)
	}
	return nil
}

func (w *wire) receive(v any, within time.Duration) error {
	if err := w.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return fmt.Errorf("control connection: %w", err)
	}
	if err := w.dec.Decode(v); err != nil {
		return fmt.Errorf("reading from the control connection: %w", err)
	}
	return nil
}

// reply receives an answer. An answer with the server's error is an error.
func (w *wire) reply(within time.Duration) (answer, error) {
	var a answer
	if err := w.receive(&a, within); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, fmt.Errorf("the server refuses: %s", a.Error)
	}
	return a, nil
}

// hello begins a data connection: the magic byte, the connection's index and
// the session's token.
func hello(token uint64, index int) []byte {
	b := make([]byte, helloSize)
	b[0] = helloMagic
	binary.LittleEndian.PutUint32(b[4:], uint32(index)) //nolint:gosec // below maxConnections
	binary.LittleEndian.PutUint64(b[8:], token)
	return b
}

func parseHello(b []byte) (token uint64, index int) {
	return binary.LittleEndian.Uint64(b[8:]), int(binary.LittleEndian.Uint32(b[4:]))
}
