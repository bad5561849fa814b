// Command probe is the one program of the lab's images: a pod's pause process, and what the
// checks run in pods.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// run is one of: pause; serve (HTTP on port 8080); site (HTTP on port 8080, and with TLS on 8443); burn DURATION; get URL; write FILE TEXT;
// read FILE; uname.
func run(args []string) error {
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch arg(0) {
	case "pause":
		return pause()
	case "serve":
		fmt.Println("serving")
		s := http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			name, _ := os.Hostname()
			fmt.Fprintln(w, name)
		})}
		return s.ListenAndServe()
	case "site":
		return site()
	case "burn":
		d, err := time.ParseDuration(arg(1))
		for begun := time.Now(); err == nil && time.Since(begun) < d; {
			continue // costs CPU time
		}
		return err
	case "get":
		return get(arg(1))
	case "write":
		f, err := os.OpenFile(arg(1), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(arg(2))
		return err
	case "read":
		return read(arg(1))
	case "uname":
		var u syscall.Utsname
		err := syscall.Uname(&u)
		for _, c := range u.Release {
			if c == 0 {
				break
			}
			fmt.Printf("%c", c)
		}
		fmt.Println()
		return err
	}
	return fmt.Errorf("unknown command %q", arg(0))
}

// site serves one short answer with and without TLS. The certificate is its own.
func site() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return err
	}
	answer := []byte(strings.Repeat("x", siteBytes))
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	ended := make(chan error, 1)
	plain := http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute, Handler: handler}
	secure := http.Server{
		Addr: ":8443", ReadHeaderTimeout: time.Minute, Handler: handler,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12},
	}
	go func() { ended <- plain.ListenAndServe() }()
	go func() { ended <- secure.ListenAndServeTLS("", "") }()
	return <-ended
}

// siteBytes is the size of the answer, as the default of the workload ingress.
const siteBytes = 128

// pause waits to be ended, and reaps what is left to it.
func pause() error {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range c {
		if s != syscall.SIGCHLD {
			break
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	return nil
}

func get(url string) error {
	c := http.Client{Timeout: 5 * time.Second}
	r, err := c.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	_, err = io.Copy(os.Stdout, r.Body)
	return err
}

// read prints the first bytes of a file or block device.
func read(file string) error {
	f, err := os.Open(file) //nolint:gosec // the check's own file
	if err != nil {
		return err
	}
	const most = 64
	_, err = io.CopyN(os.Stdout, f, most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}
