package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/sandbox"
)

var (
	secret  = bytes.Repeat([]byte("s"), leastSecret)
	another = bytes.Repeat([]byte("t"), leastSecret)
)

// TestSecret: both ends have it, or nothing runs.
func TestSecret(t *testing.T) {
	for name, c := range map[string]struct {
		agent, client []byte
		says          string // either end
	}{
		"both":           {secret, secret, ""},
		"neither":        {nil, nil, ""},
		"another":        {secret, another, "has not proved that it knows this agent's secret"},
		"only the agent": {secret, nil, "asks for a secret"},
		"only the tare":  {nil, secret, "does not ask for the secret"},
	} {
		t.Run(name, func(t *testing.T) {
			toAgent, fromClient := io.Pipe()
			toClient, fromAgent := io.Pipe()
			go func() {
				_ = Serve(context.Background(), toAgent, fromAgent, nil, Secret(c.agent))
				_ = fromAgent.Close()
			}()
			defer fromClient.Close()
			client, err := Connect(t.Context(), toClient, fromClient, WithSecret(c.client))
			if err == nil {
				_, err = client.Run(t.Context(), sandbox.Command{Args: []string{"true"}})
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestClientMustProve: a client without the secret tries all it can against an agent with
// one, including the agent's own proof and a proof of another session.
func TestClientMustProve(t *testing.T) {
	mine := bytes.Repeat([]byte{7}, nonceSize)
	for name, answer := range map[string]func(nonce []byte) helloBody{
		"nothing":         func([]byte) helloBody { return helloBody{} },
		"no nonce":        func(n []byte) helloBody { return helloBody{Proof: proof(secret, proverClient, n, nil)} },
		"the agent's":     func(n []byte) helloBody { return helloBody{Nonce: mine, Proof: proof(secret, proverAgent, n, mine)} },
		"another session": func([]byte) helloBody { return helloBody{Nonce: mine, Proof: proof(secret, proverClient, mine, mine)} },
		"cut": func(n []byte) helloBody {
			return helloBody{Nonce: mine, Proof: proof(secret, proverClient, n, mine)[:8]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, to := io.Pipe()
			from, out := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- Serve(t.Context(), in, out, nil, Secret(secret)) }()
			f, err := readFrame(from)
			var h helloBody
			if err != nil || f.decode(&h) != nil || len(h.Nonce) != nonceSize {
				t.Fatalf("%+v, %v", h, err)
			}
			b := answer(h.Nonce)
			b.Version = version
			if err := (&frameWriter{w: to}).json(frameHello, 0, b); err != nil {
				t.Fatal(err)
			}
			if f, err = readFrame(from); err != nil || f.typ != frameHello || !strings.Contains(string(f.payload), "not proved") {
				t.Errorf("%+v, %v", f, err)
			}
			if err := <-served; err == nil || !strings.Contains(err.Error(), "not proved") {
				t.Error(err)
			}
		})
	}
}

// TestAgentMustProve: the client accepts nothing but its proof from an agent that must give
// one.
func TestAgentMustProve(t *testing.T) {
	theirs := bytes.Repeat([]byte{7}, nonceSize)
	for name, answer := range map[string]func(w *frameWriter, nonce, clients []byte) error{
		"another frame": func(w *frameWriter, _, _ []byte) error { return w.json(frameReturn, 1, returnBody{}) },
		"nothing":       func(w *frameWriter, _, _ []byte) error { return w.json(frameHello, 0, helloBody{Version: version}) },
		"the client's": func(w *frameWriter, n, m []byte) error {
			return w.json(frameHello, 0, helloBody{Version: version, Proof: proof(secret, proverClient, n, m)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, to := io.Pipe()
			from, out := io.Pipe()
			go func() {
				w := &frameWriter{w: out}
				_ = w.json(frameHello, 0, helloBody{Version: version, Nonce: theirs})
				var h helloBody
				if f, err := readFrame(in); err == nil && f.decode(&h) == nil {
					_ = answer(w, theirs, h.Nonce)
				}
				_, _ = io.Copy(io.Discard, in)
			}()
			defer to.Close()
			if _, err := Connect(t.Context(), from, to, WithSecret(secret)); err == nil {
				t.Error("an agent without the secret is believed")
			}
			_ = from.Close()
		})
	}
}

// TestSecretFromEnv: the agent's commands see neither the secret nor its place.
func TestSecretFromEnv(t *testing.T) {
	file := t.TempDir() + "/secret"
	if err := os.WriteFile(file, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(SecretFile, file)
	got, err := SecretFromEnv()
	if err != nil || !bytes.Equal(got, secret) || os.Getenv(SecretFile) != "" {
		t.Errorf("%q, %v, %q", got, err, os.Getenv(SecretFile))
	}
	if got, err := SecretFromEnv(); got != nil || err != nil {
		t.Errorf("without one: %q, %v", got, err)
	}
	for _, size := range []int{0, leastSecret - 1, mostSecret + 1} {
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(SecretFile, file)
		want := fmt.Sprintf("the secret is %d bytes long; use 16 to 4096 random bytes", min(size, mostSecret))
		if size > mostSecret {
			want = "the secret is more than 4096 bytes long; use 16"
		}
		if _, err := SecretFromEnv(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestSecretOfADescriptor: a command does not inherit the descriptor that the secret came
// through.
func TestSecretOfADescriptor(t *testing.T) {
	file := t.TempDir() + "/secret"
	if err := os.WriteFile(file, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		fd, err := unix.Open(file, unix.O_RDONLY, 0) // without O_CLOEXEC, as who starts an agent hands it on
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(SecretFile, dir+strconv.Itoa(fd))
		if got, err := SecretFromEnv(); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("%q, %v", got, err)
		}
		if said, _ := exec.Command("cat", dir+strconv.Itoa(fd)).Output(); bytes.Contains(said, secret) {
			t.Errorf("a command reads the secret from %s%d", dir, fd)
		}
	}
}

// FuzzHello sends any first frames to an agent with a secret: nobody gets past it.
func FuzzHello(f *testing.F) {
	nonce := bytes.Repeat([]byte{1}, nonceSize)
	f.Add(byte(frameHello), []byte(`{"version":4}`))
	f.Add(byte(frameHello), []byte(`{"version":4,"nonce":"AAAA","proof":"AAAA"}`))
	f.Add(byte(frameStart), []byte(`{"args":["true"]}`))
	f.Fuzz(func(t *testing.T, typ byte, payload []byte) {
		b, err := appendFrame(nil, frameType(typ), 1, payload[:min(len(payload), maxSmall)])
		if err != nil {
			return
		}
		s := &server{out: newOutbox(io.Discard), secret: secret, nonce: nonce}
		if s.greeted(bytes.NewReader(b)) == nil {
			t.Error("somebody without the secret is believed")
		}
		c := &Client{secret: secret, trusted: make(chan struct{})}
		if _, err := c.hello(bytes.NewReader(b)); err == nil {
			if c.accepted(frame{typ: frameHello, payload: payload}) == nil {
				t.Error("an agent without the secret is believed")
			}
		}
	})
}

// TestSecretOfAProcess: the agent reads the secret, and its commands do not see from where.
func TestSecretOfAProcess(t *testing.T) {
	file := t.TempDir() + "/secret"
	if err := os.WriteFile(file, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mine := range [][]byte{secret, another} {
		in, out, _ := remoteProcess(t, SecretFile+"="+file)
		c, err := Connect(t.Context(), out, in, WithSecret(mine))
		if !bytes.Equal(mine, secret) {
			if err == nil {
				t.Error("another secret is as good")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if _, err := c.Run(t.Context(), sandbox.Command{Args: []string{"env"}, Stdout: &said}); err != nil || strings.Contains(said.String(), SecretFile) {
			t.Errorf("%v, %s", err, &said)
		}
	}
}
