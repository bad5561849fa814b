package agent

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// TestOutboxKeepsFramesWhole: what is queued while others are written changes nothing of
// these, also after a write of so much that its room is not kept.
func TestOutboxKeepsFramesWhole(t *testing.T) {
	var o *outbox
	busy := false
	o = newOutbox(writerFunc(func(p []byte) (int, error) {
		if !busy {
			return len(p), nil
		}
		busy = false
		before := bytes.Clone(p)
		if err := o.say(frameReturn, 7, returnBody{Error: "said meanwhile"}); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(before, p) {
			t.Errorf("while %q was written it became %q", before, p)
		}
		return len(p), nil
	}))
	for _, size := range []int{10, 2 * maxSmall, 10} {
		busy = size == 10
		if err := o.say(frameReturn, 1, returnBody{Error: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
		if err := o.output(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSayDoesNotWait: what others have queued meanwhile does not fit into a pipe at once,
// and is left to the goroutine that may wait.
func TestSayDoesNotWait(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := newOutbox(w)
	o.turn <- struct{}{} // somebody writes
	for range 40 {
		if err := o.say(frameReturn, 1, returnBody{Error: strings.Repeat("x", shortWrite/2)}); err != nil {
			t.Fatal(err)
		}
	}
	<-o.turn
	if o.outputNow() {
		t.Error("more than a pipe takes was written")
	}
	go func() { _, _ = o.output(nil), w.Close() }()
	if b, err := io.ReadAll(r); err != nil || len(b) < 20*shortWrite {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
