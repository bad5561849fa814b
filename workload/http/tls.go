package httpload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/record"
	"tare/workload/inside"
)

// What a TLS trusts beside the PEM file of an authority.
const (
	TrustSystem = "system" // the authorities that the client's system trusts
	TrustAny    = "any"    // whatever the server shows
)

// TLS is how a Loop reaches a server that speaks TLS.
type TLS struct {
	Resume bool   // new connections resume a session, with the ticket of an earlier one
	Trust  string // TrustSystem, TrustAny, or a PEM file of certificates in the client's sandbox
	Name   string // of the server, in its certificate
}

// maxPEM bounds the file of certificates, in bytes. Debian's bundle has 220 kB.
const maxPEM = 4 << 20

// config is of crypto/tls. Only HTTP/1.1 is offered.
func (s TLS) config() (*tls.Config, error) {
	c := &tls.Config{ServerName: s.Name, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.Resume {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	switch s.Trust {
	case TrustSystem:
		return c, nil
	case TrustAny:
		c.InsecureSkipVerify = true // the user asked for it
		return c, nil
	}
	f, err := os.Open(s.Trust)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates to trust: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	pem, err := io.ReadAll(io.LimitReader(f, maxPEM))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates to trust: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: --trust %s has no certificate in PEM form", inside.ErrUsage, s.Trust)
	}
	return c, nil
}

// dialer opens connections, and shakes hands on them where the server speaks TLS.
type dialer struct {
	timeout time.Duration
	tls     *tls.Config // nil: plain HTTP
	at      *at         // nil: connections go where their address says
}

// dial opens a connection. took is how long the handshake took, without that of TCP; 0 of plain
// HTTP.
func (d *dialer) dial(ctx context.Context, address string) (conn net.Conn, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	secure := d.tls
	if d.at != nil {
		address, secure = d.at.instead(address, d.tls)
	}
	if conn, err = new(net.Dialer).DialContext(ctx, "tcp", address); err != nil {
		return nil, 0, fmt.Errorf("the server does not accept a connection: %w", err)
	}
	if secure == nil {
		return conn, 0, nil
	}
	shaken := tls.Client(&link{Conn: conn, fd: -1, timeout: d.timeout}, secure)
	begun := time.Now()
	if err := shaken.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, 0, handshakeError(err)
	}
	return shaken, time.Since(begun), nil
}

// handshakeError says what to do about a certificate that is not trusted.
func handshakeError(err error) error {
	var record tls.RecordHeaderError
	var wrong *tls.CertificateVerificationError
	switch {
	case errors.As(err, &record):
		return fmt.Errorf("the server does not speak TLS there: %w; write another port, or leave TLS out", err)
	case errors.As(err, &wrong):
		return fmt.Errorf("the server's certificate is not trusted: %w; set trust to the path of its authority's PEM file, server-name to the name in the certificate, or trust to any to skip the check (--insecure of tare weigh)", err)
	}
	return fmt.Errorf("the TLS handshake failed: %w", err)
}

// handshakes are those of a load. The connection that finds the answer's length is none of them.
type handshakes struct {
	mu      sync.Mutex
	took    *hdrhistogram.Histogram
	resumed int64
}

func (h *handshakes) note(conn net.Conn, took time.Duration) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	note(h.took, took)
	if secure.ConnectionState().DidResume {
		h.resumed++
	}
}

// shaken is the part of a report about handshakes, of warm-up and window.
type shaken struct {
	Handshakes int64   `json:"handshakes"`
	Resumed    int64   `json:"resumed"`
	P50        float64 `json:"p50_s"`
	P99        float64 `json:"p99_s"`
}

// tell adds the handshakes to the report.
func (h *handshakes) tell(r *report, resume bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.took.TotalCount()
	p := func(q float64) float64 { return float64(h.took.ValueAtPercentile(q)) * 1e-9 }
	r.TLS = &shaken{n, h.resumed, p(50), p(99)}
	if resume && h.resumed < n/2 {
		r.warn("http-not-resumed", "only %d of %d handshakes resumed a session: the server does not take its tickets back", h.resumed, n)
	}
}

func (s *shaken) sane() error {
	if s.Handshakes <= 0 || s.Resumed < 0 || s.Resumed > s.Handshakes || !(s.P50 >= 0 && s.P50 <= s.P99 && s.P99 < 1e6) {
		return fmt.Errorf("%d handshakes, %d resumed, of %g and %g s are out of range", s.Handshakes, s.Resumed, s.P50, s.P99)
	}
	return nil
}

// handshake is the response that TLS adds.
func handshake() record.Response {
	return record.Response{Name: "handshake_p50", Unit: record.Second, Better: record.Lower, Help: "median time of a TLS handshake, after that of TCP"}
}
