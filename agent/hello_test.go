package agent

import (
	"bytes"
	"io"
	"testing"
)

// FuzzHello sends any first frames: only a hello of the same version begins a session, and
// the client takes no second one.
func FuzzHello(f *testing.F) {
	f.Add(byte(frameHello), []byte(`{"version":4}`))
	f.Add(byte(frameHello), []byte(`{"version":5,"error":"no"}`))
	f.Add(byte(frameStart), []byte(`{"args":["true"]}`))
	f.Fuzz(func(t *testing.T, typ byte, payload []byte) {
		b, err := appendFrame(nil, frameType(typ), 1, payload[:min(len(payload), maxSmall)])
		if err != nil {
			return
		}
		first, err := readFrame(bytes.NewReader(b))
		var h helloBody
		same := err == nil && first.typ == frameHello && first.decode(&h) == nil && h.Version == version
		s, c := &server{out: newOutbox(io.Discard)}, &Client{}
		if (s.greeted(bytes.NewReader(b)) == nil) != same {
			t.Errorf("the agent begins a session: %t, want %t", !same, same)
		}
		if _, err := c.hello(bytes.NewReader(b)); (err == nil) != same {
			t.Errorf("the client begins a session: %v, want %t", err, same)
		}
		if c.refused(first) == nil {
			t.Error("the client takes a second hello")
		}
	})
}
