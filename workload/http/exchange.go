package httpload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"tare/workload/inside"
)

// target is the request, and what the answer must be.
type target struct {
	url   *url.URL
	body  int64      // bytes, or anyBody
	hosts []string   // for the header Host, in turn; none: the URL's
	each  []*url.URL // in the place of url and hosts, in turn; url is the first
	close bool       // it asks the server to close each connection after its answer
	dialer
}

// host is the header Host of the first request.
func (t target) host() string {
	if len(t.hosts) > 0 {
		return t.hosts[0]
	}
	return t.url.Host
}

// newTarget reads a URL. security is of one with https.
func newTarget(raw string, body int64, timeout time.Duration, security TLS) (target, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
		return target{}, fmt.Errorf("%w: --url %q must be http://HOST:PORT/PATH or https://HOST:PORT/PATH", inside.ErrUsage, raw)
	}
	if body < anyBody || timeout <= 0 {
		return target{}, fmt.Errorf("%w: --size and --timeout must not be negative", inside.ErrUsage)
	}
	t := target{url: u, body: body, dialer: dialer{timeout: timeout}}
	if u.Scheme == "https" {
		t.tls, err = security.config()
	}
	return t, err
}

// bytes are those of a request, the same as wrk's.
func (t target) bytes(host string) []byte {
	more := ""
	if t.close {
		more = "Connection: close\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", t.url.RequestURI(), host, more)
}

// exchange sends a request, and returns the length of the whole answer with its headers, and the address that
// the target has. A wrong answer is an error.
func (t target) exchange() (answer int64, peer netip.AddrPort, err error) {
	conn, _, err := t.dial(context.Background(), t.address())
	if err != nil {
		return 0, peer, err
	}
	defer conn.Close() //nolint:errcheck // what counts has been read
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		peer = a.AddrPort()
	}
	if err := conn.SetDeadline(time.Now().Add(t.timeout)); err != nil {
		return 0, peer, err
	}
	if _, err := conn.Write(t.bytes(t.host())); err != nil {
		return 0, peer, fmt.Errorf("the server does not accept a request: %w", err)
	}
	counted := &counter{r: conn}
	r := bufio.NewReader(counted)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, peer, fmt.Errorf("the server does not answer: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // as above
	n, err := io.Copy(io.Discard, resp.Body)
	if err := t.judge(t.url.RequestURI(), resp.StatusCode, n, err); err != nil {
		return 0, peer, err
	}
	return counted.n - int64(r.Buffered()), peer, nil
}

// judge returns an error for a wrong answer to GET what.
func (t target) judge(what string, status int, body int64, err error) error {
	switch {
	case status != http.StatusOK:
		return fmt.Errorf("GET %s answers with status %d, want 200", what, status)
	case err != nil:
		return fmt.Errorf("the answer to GET %s ends after %d of %d B: %w", what, body, t.body, err)
	case body != t.body && t.body != anyBody:
		return fmt.Errorf("the answer to GET %s has a body of %d B, want %d", what, body, t.body)
	}
	return nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
