package agent

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The handshake of a session. Nothing else happens before it is complete.
//
// 1. The agent says hello: its version, and a nonce if it has a secret. 2. The client
// refuses another version, and answers with its own. It answers a nonce with its own nonce
// and the proof that it knows the secret. 3. The agent refuses another version or a wrong
// proof with a second hello that says why, and ends. It answers a correct proof with its
// own proof.
//
// A proof is the HMAC-SHA256 (RFC 2104) of the side that gives it and both nonces, so it
// cannot be used again or sent back as the answer. It authenticates the other end but does
// not protect what follows: a stream over a network must be in TLS.

// helloWithin is how long the client has for its hello, after the agent's, and how long it may
// take to read the agent's from a network.
const helloWithin = 30 * time.Second

// nonceSize is the length of a nonce; leastSecret and mostSecret bound the length of a
// secret. All are in bytes.
const (
	nonceSize   = 32
	leastSecret = 16
	mostSecret  = 4 << 10
)

// refusedWithin is how long an agent that refuses a client tries to tell it.
const refusedWithin = time.Second

// SecretFile is the environment variable that names the file with the session's
// secret, such as /dev/fd/3. Without it there is no secret.
const SecretFile = "TARE_AGENT_SECRET_FILE" //nolint:gosec // the name of a variable, not a secret

// SecretFromEnv reads the secret that SecretFile names, 16 to 4096 bytes, and removes
// the variable, so that no command inherits it, and closes the descriptor if it names
// one. It is nil without the variable.
func SecretFromEnv() ([]byte, error) {
	name := os.Getenv(SecretFile)
	if name == "" {
		return nil, nil
	}
	if err := os.Unsetenv(SecretFile); err != nil {
		return nil, err
	}
	f, err := os.Open(name) //nolint:gosec // the program that starts the agent names it
	if err != nil {
		return nil, fmt.Errorf("cannot read the agent's secret (%s): %w", SecretFile, err)
	}
	defer f.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(f, mostSecret+1))
	dir, base := filepath.Split(name)
	if fd, ferr := strconv.Atoi(base); ferr == nil && fd > 2 && (dir == "/dev/fd/" || dir == "/proc/self/fd/") {
		err = errors.Join(err, unix.Close(fd))
	}
	if err == nil && (len(b) < leastSecret || len(b) > mostSecret) {
		length := strconv.Itoa(len(b))
		if len(b) > mostSecret { // the rest was not read
			length = "more than " + strconv.Itoa(mostSecret)
		}
		err = fmt.Errorf("the secret is %s bytes long; use %d to %d random bytes", length, leastSecret, mostSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the agent's secret from %s: %w", strconv.Quote(name), err)
	}
	return b, nil
}

// newNonce is nil without a secret: early in a guest's boot, random bytes may have to be
// waited for.
func newNonce(secret []byte) []byte {
	if secret == nil {
		return nil
	}
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// The sides that give a proof.
const (
	proverAgent  = "agent"
	proverClient = "client"
)

func proof(secret []byte, prover string, agentNonce, clientNonce []byte) []byte {
	m := hmac.New(sha256.New, secret)
	for _, part := range [][]byte{[]byte("tare " + strconv.Itoa(version) + " " + prover + "\n"), agentNonce, clientNonce} {
		_, _ = m.Write(part) // a hash never fails
	}
	return m.Sum(nil)
}

// proves reports whether the sender of a hello knows the secret.
func (h *helloBody) proves(secret []byte, prover string, agentNonce, clientNonce []byte) bool {
	return len(agentNonce) == nonceSize && len(clientNonce) == nonceSize && hmac.Equal(h.Proof, proof(secret, prover, agentNonce, clientNonce))
}

// hello is the agent's first frame.
func (s *server) hello() ([]byte, error) {
	s.nonce = newNonce(s.secret)
	return appendBody(nil, frameHello, 0, helloBody{Version: version, Pid: os.Getpid(), Nonce: s.nonce})
}

// greeted waits for the client's hello and accepts or refuses it.
func (s *server) greeted(r io.Reader) error {
	late := time.AfterFunc(helloWithin, func() {
		s.out.end(fmt.Errorf("agent: the client did not say hello within %s", helloWithin))
	})
	f, err := readFrame(r)
	if err != nil {
		return err
	}
	late.Stop()
	var h helloBody
	if f.typ != frameHello {
		return fmt.Errorf("%w: the client's first frame has type %d, not hello", errFrame, f.typ)
	}
	if err := f.decode(&h); err != nil {
		return err
	}
	switch {
	case h.Version != version:
		err = fmt.Errorf("the client speaks version %d, this agent %d; use the same binary", h.Version, version)
	case s.secret == nil && h.Nonce != nil:
		err = errors.New("the client asks for a secret, and this agent has none; give it the client's secret")
	case s.secret == nil:
		return nil
	case !h.proves(s.secret, proverClient, s.nonce, h.Nonce):
		err = errors.New("the client has not proved that it knows this agent's secret; give both the same secret")
	default:
		return s.out.say(frameHello, 0, helloBody{Version: version, Proof: proof(s.secret, proverAgent, s.nonce, h.Nonce)})
	}
	s.say(frameHello, 0, helloBody{Version: version, Error: err.Error()})
	s.out.settle(refusedWithin)
	return fmt.Errorf("agent: %w", err)
}

// hello takes the agent's first frame and makes the client's.
func (c *Client) hello(r io.Reader) ([]byte, error) {
	f, err := readFrame(r)
	if err != nil {
		return nil, fmt.Errorf("the agent in the %s did not say hello: %w", c.place, withNoise(err, r))
	}
	var h helloBody
	if f.typ != frameHello {
		return nil, fmt.Errorf("%w: the first frame has type %d", errFrame, f.typ)
	}
	if err := f.decode(&h); err != nil {
		return nil, err
	}
	switch {
	case h.Version != version:
		return nil, fmt.Errorf("the agent in the %s speaks version %d, this tare %d; use the same binary", c.place, h.Version, version)
	case c.secret == nil && h.Nonce != nil:
		return nil, fmt.Errorf("the agent in the %s asks for a secret, and this tare has none; give both the same secret", c.place)
	case c.secret != nil && len(h.Nonce) != nonceSize:
		return nil, fmt.Errorf("the agent in the %s does not ask for the secret: it is another agent, or was started without the secret; start it with the same secret", c.place)
	}
	mine := helloBody{Version: version}
	if c.secret != nil {
		mine.Nonce = newNonce(c.secret)
		mine.Proof = proof(c.secret, proverClient, h.Nonce, mine.Nonce)
		c.nonces = [2][]byte{h.Nonce, mine.Nonce}
	}
	return appendBody(nil, frameHello, 0, mine)
}

// accepted handles the agent's second hello: its proof, or the reason why it refuses.
func (c *Client) accepted(f frame) error {
	var h helloBody
	if err := f.decode(&h); err != nil {
		return err
	}
	if h.Error != "" {
		return fmt.Errorf("the agent in the %s refuses this tare: %s", c.place, text(h.Error))
	}
	if c.secret == nil || c.isTrusted() || !h.proves(c.secret, proverAgent, c.nonces[0], c.nonces[1]) {
		return fmt.Errorf("the agent in the %s has not proved that it knows the secret; give both the same secret", c.place)
	}
	close(c.trusted)
	return nil
}

// isTrusted reports whether the agent may send more than hello.
func (c *Client) isTrusted() bool {
	select {
	case <-c.trusted:
		return true
	default:
		return false
	}
}
