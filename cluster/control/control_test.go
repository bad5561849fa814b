package control

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tare/internal/begun"
)

// study is a hub that listens on loopback, and who may speak to it.
func study(t *testing.T) (h *Hub, at string, agent, user Identity, users chan net.Conn) {
	t.Helper()
	coordinator, agent, user, err := NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	users = make(chan net.Conn, 1)
	if h, err = NewHub(coordinator, func(c net.Conn) { users <- c }); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { _ = h.Serve(l) }()
	return h, l.Addr().String(), agent, user, users
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// echo checks that two connections are the ends of one.
func echo(t *testing.T, a, b net.Conn) {
	t.Helper()
	go func() { _, _ = io.WriteString(a, "hello") }()
	got := make([]byte, 5)
	if _, err := io.ReadFull(b, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	_, _ = a.Close(), b.Close()
}

// closed checks that the other side ends a connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = c.Close()
}

// TestAgent: the agent that is expected arrives, once.
func TestAgent(t *testing.T) {
	h, at, agent, _, _ := study(t)
	token, arrived, forget := h.Expect("t1-server")
	defer forget()
	c, err := Dial(within(t), agent, at, "t1-server", token, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	there := <-arrived
	if there.Addr.String() != "127.0.0.1" {
		t.Error(there.Addr)
	}
	if ran := there.At.Sub(there.Began); ran <= 0 || ran > begun.Ago() {
		t.Errorf("the agent says that it has run for %s, of %s", ran, begun.Ago())
	}
	echo(t, c, there)
	token, arrived, forget = h.Expect("t1-client")
	defer forget()
	if c, err = Dial(within(t), agent, at, "t1-client", token, "10.1.2.3"); err != nil {
		t.Fatal(err)
	}
	if there = <-arrived; there.Addr.IsValid() {
		t.Errorf("an address is believed that nothing comes from: %s", there.Addr)
	}
	echo(t, c, there)
	again, err := Dial(within(t), agent, at, "t1-server", token, "10.1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, again)
}

// TestStrangers: who is not expected, or does not know the token, gets nothing.
func TestStrangers(t *testing.T) {
	h, at, agent, user, users := study(t)
	token, arrived, forget := h.Expect("a")
	defer forget()
	for _, who := range [][2]string{{"a", "guess"}, {"b", token}, {"a", ""}, {"", token}, {strings.Repeat("a", maxGreeting), token}} {
		c, err := Dial(within(t), agent, at, who[0], who[1], "10.1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		closed(t, c)
	}
	_, other, stranger, err := NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []Identity{other, stranger} {
		id.CA = agent.CA                // so that only the hub can refuse
		raw, err := net.Dial("tcp", at) //nolint:noctx // loopback
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Join(within(t), id, raw); err == nil { // TLS 1.3: the client hears of a refusal at its first read
			closed(t, c)
		}
		_ = raw.Close()
	}
	raw, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:noctx // an attacker does not care
	if err == nil {
		closed(t, raw)
	}
	mine, err := net.Dial("tcp", at) //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	c, err := Join(within(t), user, mine)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, c, <-users)
	select {
	case <-arrived:
		t.Error("a stranger arrived")
	case <-users:
		t.Error("a stranger is a user")
	default:
	}
}

// TestImpostor: an agent, or another study's coordinator, is no coordinator.
func TestImpostor(t *testing.T) {
	coordinator, _, _, err := NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	_, agent, user, err := NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]Identity{"another study's": coordinator, "an agent's": agent} {
		c, err := id.config()
		if err != nil {
			t.Fatal(err)
		}
		l, err := tls.Listen("tcp", "127.0.0.1:0", c)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
		}()
		raw, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // loopback
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Join(within(t), user, raw); err == nil {
			t.Errorf("%s certificate passes for the coordinator's", name)
		}
		_, _ = raw.Close(), l.Close()
	}
}

// TestForgotten: who arrives when nobody waits any more is sent away.
func TestForgotten(t *testing.T) {
	h, at, agent, _, _ := study(t)
	token, _, forget := h.Expect("late")
	forget()
	c, err := Dial(within(t), agent, at, "late", token, "10.1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, c)
}

// FuzzGreeting: a greeting is a name and a token, or an error, and no byte after it is read.
func FuzzGreeting(f *testing.F) {
	for _, s := range []string{"a b 10.0.0.1\nrest", "a b\n", "a\n", "\n", " \n", "a b c\n", "a b ::1\n", "a b ::1 1500\n", "a b ::1 -1\n", "a b ::1 99999999999999999999\n", strings.Repeat("x", 2*maxGreeting)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		said, err := readLine(r)
		var name, token string
		var addr netip.Addr
		var age time.Duration
		if err == nil {
			name, token, addr, age, err = parseGreeting(said)
		}
		if line, _, _ := bytes.Cut(in, []byte("\n")); err == nil && (!bytes.HasPrefix(line, []byte(name+" "+token+" ")) || !addr.IsValid() || age < 0 || r.Len() != len(in)-len(line)-1) {
			t.Errorf("%q: %q %q %s, %d bytes left", in, name, token, addr, r.Len())
		}
		if len(in)-r.Len() > maxGreeting {
			t.Errorf("%d bytes were read", len(in)-r.Len())
		}
	})
}
