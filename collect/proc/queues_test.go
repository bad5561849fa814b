package proc

import (
	"net"
	"os"
	"testing"

	"tare/record"
	"tare/sandbox"
)

// TestQueues: connections that a program has not accepted are counted, of an end that is not the trial's alone.
func TestQueues(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const many = 3
	for range many {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	o := Options{Members: func(string) ([]int, error) { return []int{os.Getpid()}, nil }, Paths: func(string, string) (string, bool) { return "", false }, Way: Files, Self: -1}
	for _, outside := range []bool{true, false} {
		p, err := NewWith(o).Open(t.Context(), []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "controller"}, Cgroups: []string{"x"}, Outside: outside}})
		if err != nil {
			t.Fatal(err)
		}
		list, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		got := -1.0
		for _, s := range list {
			if s.Name == record.QueuedConnections && s.Labels.Get(record.LabelEndpoint) == "controller" {
				got = s.Value
			}
		}
		if want := map[bool]float64{true: many, false: -1}[outside]; got != want {
			t.Errorf("outside %v: %g wait, want %g", outside, got, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestListening(t *testing.T) {
	for line, want := range map[string]int{
		"   0: 00000000:1F90 00000000:0000 0A 00000000:0000001F 00:00000000 00000000     0        0 77 1 0000 100 0 0 10 0":  31,
		"   1: 0100007F:1F90 0100007F:9999 01 00000000:00000005 00:00000000 00000000     0        0 78 1 0000 20 4 30 10 -1": -1,
		"garbage": -1,
	} {
		n, inode, is := listening(line)
		if !is {
			n = -1
		}
		if n != want || is && inode != "77" {
			t.Errorf("%q: %d of %q, want %d", line, n, inode, want)
		}
	}
}
