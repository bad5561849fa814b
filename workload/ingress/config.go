package ingress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed haproxy.cfg
var haproxyText string

//go:embed nginx.conf
var nginxText string

// between is what HAProxy's configuration says.
type between struct {
	Dir      string // of the map and the certificate
	Mode     string // http, or tcp where it does not end TLS
	Port     int
	Ends     bool   // TLS, with a certificate
	Again    bool   // it speaks TLS to the server
	Server   string // HOST:PORT
	Threads  int
	MaxConn  int
	CPUs     []int    // none: any
	Backends []string // one a route
}

// newBetween is the configuration for a kind of termination.
func newBetween(dir, termination, host string, routes int) (between, error) {
	b := between{Dir: dir, Mode: "http", Port: securePort}
	behind := plainPort
	switch termination {
	case plain:
		b.Port = plainPort
	case edge:
		b.Ends = true
	case passthrough:
		b.Mode, behind = "tcp", securePort
	case reencrypt:
		b.Ends, b.Again, behind = true, true, securePort
	default:
		return b, fmt.Errorf("termination %q must be %s, %s, %s or %s", termination, plain, edge, passthrough, reencrypt)
	}
	b.Server = net.JoinHostPort(host, strconv.Itoa(behind))
	for i := range routes {
		b.Backends = append(b.Backends, "b"+strconv.Itoa(i))
	}
	return b, nil
}

// routesMap is a map file of HAProxy: a route and its backend a line.
func (b between) routesMap() []byte {
	var out strings.Builder
	for i, name := range b.Backends {
		_, _ = fmt.Fprintln(&out, route(i), name)
	}
	return []byte(out.String())
}

// behind is what the configuration of nginx says.
type behind struct {
	Dir           string // of the certificate
	Workers       int
	Plain, Secure int // ports
}

// fill writes a configuration into dir.
func fill(dir, name, text string, data any) error {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return fmt.Errorf("the template of %s: %w", name, err)
	}
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		return fmt.Errorf("the template of %s: %w", name, err)
	}
	return write(dir, name, []byte(out.String()))
}

func write(dir, name string, b []byte) error {
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	return nil
}

// certificate returns a key and a certificate for all routes in PEM form, which it has signed
// itself: no client checks it. It has an elliptic key (P-256), as certificates on the Web mostly have.
func certificate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tare.test"}, DNSNames: []string{"*.tare.test"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(365 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}
