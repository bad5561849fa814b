package httpload

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/record"
)

// secure serves good answers with TLS, by the certificate of example.com that httptest has, and
// returns the file of its authority.
func secure(t *testing.T, change func(*tls.Config)) (url, authority string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { good(w) }))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	change(s.TLS)
	s.StartTLS()
	t.Cleanup(s.Close)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(authority, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, authority
}

// TestTLS: each connection shakes hands, resumes where it shall, and is timed.
func TestTLS(t *testing.T) {
	same := func(*tls.Config) {}
	for name, c := range map[string]struct {
		server             func(*tls.Config)
		flags              []string
		connections, fresh bool // a handshake a connection, of which a busy host may lose some, or one a request
		resumed            bool
		warning            string
	}{
		"kept":      {server: same, connections: true},
		"fresh":     {server: same, flags: []string{"--keep-alive=false"}, fresh: true},
		"resumed":   {server: same, flags: []string{"--keep-alive=false", "--resume"}, fresh: true, resumed: true},
		"1.2":       {server: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, flags: []string{"--keep-alive=false", "--resume"}, fresh: true, resumed: true},
		"open":      {server: same, flags: []string{"--keep-alive=false", "--resume", "--rate", "200"}, fresh: true, resumed: true},
		"no ticket": {server: func(c *tls.Config) { c.SessionTicketsDisabled = true }, flags: []string{"--keep-alive=false", "--resume"}, fresh: true, warning: "http-not-resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			url, authority := secure(t, c.server)
			r, failed := client(t, "loop", url, append([]string{"--connections", "3", "--trust", authority, "--server-name", "example.com"}, c.flags...)...)
			if failed != "" {
				t.Fatal(failed)
			}
			s := r.TLS
			if s == nil || s.sane() != nil || s.P50 <= 0 {
				t.Fatalf("%+v", s)
			}
			if c.connections && s.Handshakes > r.Requests/10 || c.fresh && s.Handshakes < r.Requests {
				t.Errorf("%d handshakes for %d requests", s.Handshakes, r.Requests)
			}
			if c.resumed && s.Resumed < s.Handshakes-3 || !c.resumed && s.Resumed > 0 {
				t.Errorf("%d of %d handshakes resumed a session", s.Resumed, s.Handshakes)
			}
			var codes []string
			for _, w := range r.Warnings {
				if !slices.Contains([]string{"http-client-busy", "http-overload", record.GeneratorLate}, w.Code) {
					codes = append(codes, w.Code)
				}
			}
			if got := strings.Join(codes, " "); got != c.warning {
				t.Errorf("warnings %q, want %q", got, c.warning)
			}
		})
	}
}

// TestTrust: a certificate that is not trusted, or of another name, gives no figure unless the user
// takes any.
func TestTrust(t *testing.T) {
	url, authority := secure(t, func(*tls.Config) {})
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { good(w) }))
	defer plain.Close()
	for name, c := range map[string]struct {
		url   string
		flags []string
		want  string // "": it works
	}{
		"authority":  {url, []string{"--trust", authority, "--server-name", "example.com"}, ""},
		"any":        {url, []string{"--trust", "any"}, ""},
		"system":     {url, nil, "the server's certificate is not trusted"},
		"other name": {url, []string{"--trust", authority, "--server-name", "example.org"}, "not example.org; set trust to the path"},
		"no TLS":     {"https" + strings.TrimPrefix(plain.URL, "http"), []string{"--trust", "any"}, "does not speak TLS there"},
		"no file":    {url, []string{"--trust", authority + "x"}, "cannot read the certificates to trust"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := client(t, "loop", c.url, append([]string{"--duration", "200ms"}, c.flags...)...)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q in it", got, c.want)
			}
		})
	}
}
