package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"slices"
	"testing"
	"time"
)

// parse reads a certificate of a pair, after a check that the key is its own.
func parse(t *testing.T, p pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(p.cert, p.key); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(p.cert)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	ca, err := newAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	server, err := ca.sign(now, subject{"kube-apiserver", "", []string{"127.0.0.1", "kubernetes"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.sign(now, subject{"admin", "system:masters", nil})
	if err != nil {
		t.Fatal(err)
	}
	s, c := parse(t, server), parse(t, client)
	for host, ok := range map[string]bool{"127.0.0.1": true, "kubernetes": true, "127.0.0.2": false} {
		if _, err := s.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
	for kind, ok := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageClientAuth: true, x509.ExtKeyUsageServerAuth: false} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{kind}}); (err == nil) != ok {
			t.Errorf("the client's certificate, usage %v: %v", kind, err)
		}
	}
	if c.Subject.CommonName != "admin" || len(c.Subject.Organization) != 1 || c.Subject.Organization[0] != "system:masters" {
		t.Errorf("the client is %s", c.Subject)
	}
	if s.SerialNumber.Cmp(c.SerialNumber) == 0 {
		t.Error("two certificates have one number")
	}
	if _, err := s.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(lifetime + time.Hour)}); err == nil {
		t.Error("a certificate lives for ever")
	}
}

// Every file that the commands name exists, and only root reads it.
func TestMakePKI(t *testing.T) {
	l := &lab{places: places{run: t.TempDir(), bin: t.TempDir()}}
	if err := l.makePKI(time.Now(), "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	c, err := l.commands()
	if err != nil {
		t.Fatal(err)
	}
	paths := named(slices.Concat(c.Control, c.Virt), l.run)
	if len(paths) < 10 {
		t.Errorf("the commands name %v", paths)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	b, err := os.ReadFile(l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
	}
	if err := json.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	if c := config.Clusters[0].Cluster; c.Server != "https://127.0.0.1:1" || !x509.NewCertPool().AppendCertsFromPEM(c.CA) {
		t.Errorf("the kubeconfig has %+v", c)
	}
}
