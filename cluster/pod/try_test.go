package pod

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"tare/sandbox"
)

// room is a kind of sandbox of which only one fits at a time. It is gone when the test says so.
type room struct {
	sandbox.Kind
	sandbox.Instance
	taken atomic.Bool
	gone  chan error
}

func (*room) Name() string { return "My_Class" }

func (r *room) Start(_ context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	if spec.Name != "t1-check-my-class" || r.taken.Load() {
		return nil, errors.New(spec.Name + ": there is no room")
	}
	r.taken.Store(true)
	return r, nil
}

func (*room) Exec(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return sandbox.Exit{}, nil
}

func (r *room) Stop(context.Context) error {
	err := <-r.gone
	r.taken.Store(false)
	return err
}

// TestTry: it does not wait for the end of the sandbox that it tried, unless the next one finds no room; Tried waits.
func TestTry(t *testing.T) {
	s := &Study{ID: "t1"}
	k := &room{gone: make(chan error)}
	if err := s.Try(t.Context(), k); err != nil || !k.taken.Load() {
		t.Fatal(err)
	}
	go func() { k.gone <- nil }()
	if err := s.Try(t.Context(), k); err != nil {
		t.Errorf("the second one: %v", err)
	}
	go func() { k.gone <- errors.New("it stays") }()
	if err := s.Tried(); err == nil || !strings.Contains(err.Error(), "it stays") {
		t.Errorf("%v", err)
	}
	if err := s.Tried(); err != nil {
		t.Errorf("nothing is left: %v", err)
	}
}
