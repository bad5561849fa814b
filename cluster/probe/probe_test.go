package probe

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

const token = "a token"

// dial connects to a probe on loopback.
func dial(t *testing.T, known string) (*Probe, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	go func() { _ = serve(ctx, l, token) }()
	conn, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	return Connect(ctx, conn, known)
}

// TestClock: a clock of this machine is not ahead of itself, within what Clock says.
func TestClock(t *testing.T) {
	p, err := dial(t, token)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ahead, within, err := p.Clock(t.Context())
	if err != nil || ahead.Abs() > within+time.Millisecond {
		t.Errorf("%s ahead within %s, %v", ahead, within, err)
	}
}

// TestReach: a place where nobody listens cannot be reached, and the reason arrives.
func TestReach(t *testing.T) {
	p, err := dial(t, token)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Reach(t.Context(), "127.77.0.1"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens there: %v", err)
	}
}

// TestStranger: a probe answers nobody who does not know the token.
func TestStranger(t *testing.T) {
	if p, err := dial(t, "b token"); err == nil {
		_, _, err = p.Clock(t.Context())
		if err == nil {
			t.Error("a stranger was answered")
		}
	}
}
