package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime of every certificate. A cluster for tests lives for hours.
const lifetime = 30 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte // of cert
}

// pair is a certificate and its private key, both PEM.
type pair struct{ cert, key []byte }

// subject is whom a certificate is for.
type subject struct {
	name  string // CN: the user, as Kubernetes sees it
	group string // O: the user's group; "" for none
	hosts []string
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(now, subject{name: "lab"})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

func newTemplate(now time.Time, s subject) (*x509.Certificate, error) {
	const bits = 120
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), bits))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.name},
		NotBefore:    now.Add(-time.Hour), // clocks of virtual machines jump
		NotAfter:     now.Add(lifetime),
	}
	if s.group != "" {
		t.Subject.Organization = []string{s.group}
	}
	for _, h := range s.hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t, nil
}

// sign makes a key and a certificate for a client, and for a server on the subject's hosts.
func (a *authority) sign(now time.Time, s subject) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	t, err := newTemplate(now, s)
	if err != nil {
		return pair{}, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := encodeKey(key)
	return pair{encode("CERTIFICATE", der), keyPEM}, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encode("PRIVATE KEY", der), err
}

// kubeconfig is a kubeconfig file with everything in it: JSON, which is YAML too.
func (a *authority) kubeconfig(server string, p pair) ([]byte, error) {
	type object = map[string]any
	return json.MarshalIndent(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []object{{"name": "lab", "cluster": object{"server": server, "certificate-authority-data": a.pem}}},
		"users":    []object{{"name": "lab", "user": object{"client-certificate-data": p.cert, "client-key-data": p.key}}},
		"contexts": []object{{"name": "lab", "context": object{"cluster": "lab", "user": "lab"}}},
	}, "", "  ")
}

// makePKI writes the keys and certificates of the cluster, and a kubeconfig for each of its
// programs. The file names are those that config.go uses.
func (l *lab) makePKI(now time.Time, server string) error {
	ca, err := newAuthority(now)
	if err != nil {
		return err
	}
	caKey, err := encodeKey(ca.key)
	if err != nil {
		return err
	}
	files := map[string][]byte{l.pki("ca.crt"): ca.pem, l.pki("ca.key"): caKey}
	const masters = "system:masters"
	inside := "https://" + firstService + ":" + apiPort
	all := []struct {
		name   string // of its .crt and .key; "": none
		config string // path of its kubeconfig; "": none
		server string
		subject
	}{
		{name: "apiserver", subject: subject{"kube-apiserver", "", []string{controlAddress, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc", firstService}}},
		{name: "accounts", subject: subject{name: "accounts"}},
		{name: "kubelet-client", subject: subject{"kube-apiserver", masters, nil}},
		{config: l.kubeconfig(), server: server, subject: subject{"admin", masters, nil}},
		{config: l.pki("controller-manager.conf"), server: inside, subject: subject{"system:kube-controller-manager", "", nil}},
		{config: l.pki("scheduler.conf"), server: inside, subject: subject{"system:kube-scheduler", "", nil}},
		{name: "virt-api", config: l.pki("virt-api.conf"), server: inside, subject: subject{kubeVirtAccount + "apiserver", "", []string{controlAddress}}},
		{name: "virt-controller", config: l.pki("virt-controller.conf"), server: inside, subject: subject{kubeVirtAccount + "controller", "", []string{controlAddress}}},
		{config: l.pki("tools.conf"), server: inside, subject: subject{"lab", masters, nil}},
	}
	for _, s := range all {
		p, err := ca.sign(now, s.subject)
		if err != nil {
			return err
		}
		if s.name != "" {
			files[l.pki(s.name+".crt")], files[l.pki(s.name+".key")] = p.cert, p.key
		}
		if s.config != "" {
			if files[s.config], err = ca.kubeconfig(s.server, p); err != nil {
				return err
			}
		}
	}
	for _, n := range nodes() {
		p, err := ca.sign(now, subject{"system:node:" + n.name, "system:nodes", []string{n.address, n.name}})
		if err != nil {
			return err
		}
		files[l.node(n, "etc", "kubelet.crt")], files[l.node(n, "etc", "kubelet.key")] = p.cert, p.key
		files[l.node(n, "etc", "ca.crt")] = ca.pem
		if files[l.node(n, "etc", "kubeconfig")], err = ca.kubeconfig(inside, p); err != nil {
			return err
		}
	}
	for path, content := range files {
		if err := writeFile(path, content); err != nil {
			return fmt.Errorf("cannot write a certificate: %w", err)
		}
	}
	return nil
}
