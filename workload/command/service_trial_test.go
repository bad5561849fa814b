package command

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

// redis is a server of the host, with its own generator of load.
func redis() param.Values {
	return param.Values{
		"server": "redis-server --save '' --protected-mode no --bind 0.0.0.0 --port 6400", "ready": "tcp:6400",
		"load": "redis-benchmark -h {server} -p 6400 -q -t get -n 2000", "warmup": "1ms",
		"figures": `rate[1/s]='GET: ([0-9.]+) requests' p50[ms]='p50=([0-9.]+)'`,
	}
}

// TestServices: servers with load from outside, one of them in each sandbox.
func TestServices(t *testing.T) {
	http := func(more ...string) param.Values {
		v := param.Values{"server": "/usr/bin/python3 -m http.server 8080 --directory /etc/apt", "duration": "1s", "warmup": "100ms", "connections": "2"}
		for i := 0; i < len(more); i += 2 {
			v[more[i]] = more[i+1]
		}
		return v
	}
	b := trialtest.New(t, NewService(), redis())
	for name, v := range map[string]param.Values{
		"redis": redis(),
		"ready": {"server": redis()["server"] + " --loglevel notice", "ready": "output:* Ready", "shell": "sh", "warmup": "0s",
			"load": "sleep 0.1; redis-benchmark -h {server} -p 6400 -q -t get -n 100 | tr '\\r' '\\n'", "figures": `rate[1/s]='GET: ([0-9.]+) requests'`},
		"closed":     http(),
		"open":       http("loop", "open", "rate", "50"),
		"keep-alive": http("keep-alive", "false"),
		"tls":        secureServer(t),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "ready" { // redis-server has the time and its number before the text
				v["server"] += " | while read -r pid role rest; do echo \"${rest#*'* '}\"; case $rest in *Ready*) echo '* Ready';; esac; done"
			}
			kinds := []string{trialtest.GVisor}
			if name == "redis" {
				kinds = trialtest.Kinds()
			}
			b.In(t, kinds, v, serverRole, func(t *testing.T, tr *record.Trial) {
				rate, _ := tr.Sample("rate")
				t.Logf("rate %.0f/s", rate)
				if rate < 1 {
					t.Errorf("rate = %g", rate)
				}
				took, has := tr.Sample("handshake_p50")
				resumed := slices.ContainsFunc(tr.Samples, func(s record.Sample) bool { return s.Name == "resumed" && s.Value >= 1 })
				if has != (name == "tls") || has && (took <= 0 || !resumed) {
					t.Errorf("handshakes of %g s, resumed: %v", took, resumed)
				}
			})
		})
	}
}

// TestPostgres: the image's server makes a database, says that it is ready once it is, and answers.
func TestPostgres(t *testing.T) {
	v := param.Values{"server": "/app/postgres", "image": "postgres", "ready": "output:LOG:  database system is ready", "warmup": "0s", "load-image": "postgres",
		"load": "/app/pgbench -h {server} -U postgres -n -S -c 2 -t 20 postgres", "figures": `rate[1/s]='tps = ([0-9.]+)'`}
	trialtest.New(t, NewService(), v).In(t, []string{trialtest.GVisor}, v, serverRole, func(t *testing.T, tr *record.Trial) {
		if rate, ok := tr.Sample("rate"); !ok || rate <= 0 {
			t.Errorf("rate = %g", rate)
		}
	})
}

// secureServer is one of files with TLS, whose key and certificate are mounted.
func secureServer(t *testing.T) param.Values {
	const program = "import http.server, ssl\n" +
		"s = http.server.ThreadingHTTPServer(('0.0.0.0', 8443), http.server.SimpleHTTPRequestHandler)\n" +
		"c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('/srv/cert.pem', '/srv/key.pem')\n" +
		"s.socket = c.wrap_socket(s.socket, server_side=True); s.serve_forever()\n"
	s := httptest.NewTLSServer(nil)
	s.Close()
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"server.py": []byte(program), "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return param.Values{"server": "/usr/bin/python3 /srv/server.py", "cwd": "/srv", "mounts": dir + ":/srv:ro", "ready": "http:8443/", "http": "8443/server.py",
		"tls": "resume", "keep-alive": "false", "trust": filepath.Join(dir, "cert.pem"), "server-name": "example.com", "duration": "1s", "warmup": "100ms", "connections": "2"}
}

// TestServiceFailures: a server that ends, or is never ready, and load that fails.
func TestServiceFailures(t *testing.T) {
	with := func(more ...string) param.Values {
		v := redis()
		for i := 0; i < len(more); i += 2 {
			v[more[i]] = more[i+1]
		}
		return v
	}
	b := trialtest.New(t, NewService(), redis())
	for name, c := range map[string]struct {
		v    param.Values
		says string
	}{
		"ends":    {with("server", "sh -c 'echo the reason >&2; exit 3'"), "the reason"},
		"missing": {with("server", "no-such-server"), "no-such-server"},
		"load":    {with("load", "sh -c 'echo the reason >&2; exit 4'"), "the reason"},
		"figure":  {with("figures", "x=(never)"), `nothing in the output matches "(never)"`},
		// Some versions of redis-benchmark go on for ever after a refused connection.
		"refused": {with("load", "redis-benchmark -h {server} -p 6401 -q -t get -n 10", "timeout", "5s"), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := []string{trialtest.GVisor}
			if name == "ends" {
				kinds = []string{"process", trialtest.GVisor}
			}
			for _, kind := range kinds {
				tr := b.Trial(t, c.v, kind, serverRole)
				if tr.Failure == nil || !strings.Contains(strings.ToLower(tr.Failure.Reason+tr.Failure.Tail), c.says) {
					t.Errorf("%s: %+v, want %q", kind, tr.Failure, c.says)
				}
			}
		})
	}
}
