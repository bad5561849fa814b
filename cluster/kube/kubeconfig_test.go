package kube

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnusable: each kubeconfig that names no cluster has its reason, and the next step.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		f, err := os.CreateTemp(dir, "config")
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	const two = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: work, context: {cluster: c}}, {name: home, context: {cluster: c}}, {name: torn, context: {cluster: none}}]\n"
	for want, w := range map[string]Where{
		"there is no kubeconfig " + filepath.Join(dir, "none") + "; give another with --kubeconfig FILE": {Kubeconfig: filepath.Join(dir, "none")},
		"is a directory; correct it, or give another with --kubeconfig FILE":                             {Kubeconfig: dir},
		"yaml: line 1: did not find expected node content; correct it":                                   {Kubeconfig: write("foo: [")},
		`" is not a kubeconfig; give another with --kubeconfig FILE`:                                     {Kubeconfig: write("root:x:0:0\n")},
		"has no context, and so names no cluster":                                                        {Kubeconfig: write("")},
		`the kubeconfig has no context "nope"; give --context with one of "home", "torn", "work"`:        {Kubeconfig: write(two), Context: "nope"},
		`the kubeconfig has no current context; give --context with one of "home", "torn", "work"`:       {Kubeconfig: write(two)},
		`cannot use context "torn" of the kubeconfig: `:                                                  {Kubeconfig: write(two), Context: "torn"},
	} {
		if _, err := FromKubeconfig(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestPullAdvice: an image that cannot be pulled is named, with its registry and what to do.
func TestPullAdvice(t *testing.T) {
	for message, want := range map[string]string{
		"failed to resolve image: r:5000/app:1: not found":                                   "from the registry r:5000; check its name and tag",
		"pull access denied, repository does not exist: authorization failed: no basic auth": "imagePullSecret",
		"http: server gave HTTP response to HTTPS client":                                    "trust this registry",
		"dial tcp: lookup r on 10.0.0.1:53: no such host":                                    "that the nodes reach it",
		"no match for platform in manifest: not found":                                       "no variant for the node's processor",
		"unexpected status from HEAD request: 502 Bad Gateway":                               "overloaded",
		"anything": "check the reference",
	} {
		err := cannotPull("pod", "r:5000/app:1", "node1", "ErrImagePull", message)
		if got := err.Error(); !strings.HasPrefix(got, "node node1 cannot pull the image r:5000/app:1 from the registry r:5000; ") || !strings.Contains(got, want) || !strings.Contains(got, message) {
			t.Errorf("%s: %s", message, got)
		}
	}
	for image, want := range map[string]string{"redis:7": "docker.io", "me/app": "docker.io", "localhost/app": "localhost", "ghcr.io/me/app@sha256:1": "ghcr.io"} {
		if got := registryOf(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// TestAdvice: what to do about a server's certificate depends on what is wrong with it.
func TestAdvice(t *testing.T) {
	h := httptest.NewTLSServer(http.NotFoundHandler())
	defer h.Close()
	pem := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	trusted := base64.StdEncoding.EncodeToString(pem)
	for _, c := range [][3]string{{"", "example.com", "the kubeconfig's certificate-authority does not match this API server"}, {trusted, "nobody.invalid", "set tls-server-name beside it"}} {
		ca, name, want := c[0], c[1], c[2]
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, tls-server-name: %s, certificate-authority-data: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", h.URL, name, ca)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := FromKubeconfig(Where{Kubeconfig: file})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	expired := fmt.Errorf("get: %w", x509.CertificateInvalidError{Reason: x509.Expired})
	if got := Advice(expired); !strings.Contains(got, "renew the") {
		t.Error(got)
	}
	if got := Advice(errors.New("connection refused")); got != Unreached {
		t.Error(got)
	}
}
