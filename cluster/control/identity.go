// Package control connects the parts of a study on a cluster: agents in pods dial the coordinator,
// and so does the user's tare. Both prove their identity with certificates that are valid for this
// study only (TLS 1.3, RFC 8446).
//
// The data path: 1. NewStudy makes the certificates, and a Secret takes them to the pods; 2. Hub
// accepts connections in the coordinator's pod; 3. Dial connects an agent, User a user;
// 4. the hub gives an agent's connection to whoever expects that sandbox.
//
// docs/design/0019-threat-model.md says who may connect to whom.
package control

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Common names of certificates: whom each one is for.
const (
	Coordinator = "coordinator"
	Agent       = "agent"
	User        = "user"
)

// Identity is a party's certificate and key, and the authority that it trusts: PEM (RFC 7468).
type Identity struct{ CA, Cert, Key []byte }

// validity is how long a study may take. Clocks of two machines may differ by slack.
const (
	validity = 30 * 24 * time.Hour
	slack    = time.Hour
)

// NewStudy creates the identities of a study. It discards the key of the authority that signs
// them.
func NewStudy() (coordinator, agent, user Identity, err error) {
	ca := template(1, "tare study")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return
	}
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for i, who := range []struct {
		name string
		use  x509.ExtKeyUsage
		into *Identity
	}{{Coordinator, x509.ExtKeyUsageServerAuth, &coordinator}, {Agent, x509.ExtKeyUsageClientAuth, &agent}, {User, x509.ExtKeyUsageClientAuth, &user}} {
		c := template(int64(i)+2, who.name)
		c.DNSNames, c.KeyUsage, c.ExtKeyUsage = []string{who.name}, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{who.use}
		if *who.into, err = sign(c, ca, key, root); err != nil {
			return
		}
	}
	return
}

func template(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-slack), NotAfter: now.Add(validity)}
}

func sign(c, ca *x509.Certificate, by *ecdsa.PrivateKey, root []byte) (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, key.Public(), by)
	if err != nil {
		return Identity{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Identity{}, err
	}
	return Identity{CA: root, Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}, nil
}

// Files returns the identity as the files of a Secret.
func (id Identity) Files() map[string][]byte {
	return map[string][]byte{"ca.crt": id.CA, "tls.crt": id.Cert, "tls.key": id.Key}
}

// ReadIdentity reads the files of Files from a directory.
func ReadIdentity(dir string) (id Identity, err error) {
	for name, into := range map[string]*[]byte{"ca.crt": &id.CA, "tls.crt": &id.Cert, "tls.key": &id.Key} {
		b, rerr := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the pod's manifest names the directory
		*into, err = b, errors.Join(err, rerr)
	}
	return id, err
}

// config is for both ends of a connection. Each checks that the other has a certificate of the
// same study.
func (id Identity) config() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(id.Cert, id.Key)
	if err != nil {
		return nil, fmt.Errorf("the study's certificate is damaged: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(id.CA) {
		return nil, errors.New("the study's certificate authority is damaged")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ServerName: Coordinator,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
