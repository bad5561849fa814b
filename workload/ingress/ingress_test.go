package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/inside"
	"tare/workload/workloadtest"
)

func cases() []workloadtest.Case {
	refused := func(name string, v param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: v, Refused: true}
	}
	out := func(name string, v param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: v, Outputs: map[string]string{client: "testdata/" + name + ".json"}}
	}
	return []workloadtest.Case{
		out("plain", param.Values{"warmup": "300ms", "duration": "300ms", "connections": "4", "routes": "3"}),
		out("edge", param.Values{"warmup": "300ms", "duration": "300ms", "connections": "4", "termination": "edge"}),
		out("reencrypt-open", param.Values{"warmup": "300ms", "duration": "500ms", "connections": "4", "termination": "reencrypt",
			"load": "open", "rate": "100", "keep-alive": "false", "resume": "true"}),
		refused("open without a rate", param.Values{"load": "open"}),
		refused("a rate for wrk", param.Values{"rate": "10"}),
		refused("a delay in the open loop", param.Values{"load": "open", "rate": "10", "delay": "1ms"}),
		refused("wrk would leave connections out", param.Values{"threads": "3"}),
		refused("wrk does not resume", param.Values{"resume": "true", "termination": "edge"}),
		refused("nothing to resume", param.Values{"resume": "true", "load": "open", "rate": "10"}),
		refused("several names in one handshake", param.Values{"termination": "passthrough", "routes": "2"}),
		refused("wrk does not name a route", param.Values{"termination": "passthrough", "routes": "2", "targets": "^r1[.]"}),
		refused("wrk counts in milliseconds", param.Values{"delay": "1500us"}),
		refused("no such route", param.Values{"targets": "^r7[.]", "routes": "7"}),
		refused("not an expression", param.Values{"targets": "("}),
		refused("objects that are none", param.Values{"objects": "kind: Pod"}),
		refused("objects without an address", param.Values{"objects": routed}),
		refused("objects with a termination", param.Values{"objects": routed, "address": "10.0.0.1", "termination": "edge"}),
		refused("no such object", param.Values{"objects": routed, "address": "10.0.0.1", "targets": "^x/"}),
		refused("connections that processes of wrk cannot share", param.Values{"objects": routed, "address": "10.0.0.1", "connections": "9"}),
		refused("an address without objects", param.Values{"address": "10.0.0.1"}),
		refused("a controller without objects", param.Values{"controller": "ingress/app=haproxy"}),
		refused("not a processor", param.Values{"pin": "0,2"}),
	}
}

// routed are objects of a cluster.
const routed = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: web}
spec:
  tls: [{hosts: [shop.example.com]}]
  rules:
  - {host: shop.example.com, http: {paths: [{path: /cart}, {path: /}]}}
  - {host: plain.example.com, http: {paths: [{path: /}]}}
`

// TestExisting: the load on a controller that exists has one role, and asks for the objects' URLs there.
func TestExisting(t *testing.T) {
	v := workloadtest.Fill(t, New(), param.Values{"objects": routed, "address": "10.0.0.1", "http-port": "8080", "url-path": "/file.txt", "load": "open", "rate": "10"})
	r, err := New().Roles(v)
	if err != nil || len(r) != 1 || r[0].Image != "" {
		t.Fatalf("%v, %+v", err, r)
	}
	got := strings.Join(r[0].Args, " ")
	for _, want := range []string{"--each https://shop.example.com/cart/file.txt https://shop.example.com/file.txt http://plain.example.com/file.txt --at 10.0.0.1 --ports 8080,443", "--rate 10"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if all := New().Responses(v); all[len(all)-1].Name != "handshake_p50" {
		t.Errorf("the load has TLS, and the responses %v", all)
	}
	v["targets"] = "plain"
	if all := New().Responses(v); all[len(all)-1].Name == "handshake_p50" {
		t.Errorf("the load has no TLS, and the responses %v", all)
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases()...) }

// TestTargets: the regular expression chooses among the routes.
func TestTargets(t *testing.T) {
	v := workloadtest.Fill(t, New(), param.Values{"routes": "12", "targets": "^r1[.]|r11"})
	got, err := targets(v)
	if err != nil || strings.Join(got, " ") != "r1.tare.test r11.tare.test" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPresent: a processor that does not exist is refused. HAProxy itself would ignore it.
func TestPresent(t *testing.T) {
	var has unix.CPUSet
	if err := unix.SchedGetaffinity(0, &has); err != nil {
		t.Fatal(err)
	}
	for n := range 1024 {
		if err := present([]int{n}); (err == nil) != has.IsSet(n) {
			t.Errorf("processor %d: %v", n, err)
		}
	}
}

// TestConfigurations: what each kind of termination writes.
func TestConfigurations(t *testing.T) {
	for termination, want := range map[string][]string{
		plain:       {"mode http", "bind :8080\n", "req.hdr(host)", "server nginx 10.0.0.1:8080\n"},
		edge:        {"mode http", "bind :8443 ssl crt /d/site.pem alpn http/1.1\n", "server nginx 10.0.0.1:8080\n"},
		passthrough: {"mode tcp", "bind :8443\n", "req.ssl_sni", "server nginx 10.0.0.1:8443\n"},
		reencrypt:   {"mode http", "bind :8443 ssl crt", "server nginx 10.0.0.1:8443 ssl verify none\n"},
	} {
		conf, err := newBetween("/d", termination, "10.0.0.1", 2)
		if err != nil {
			t.Fatal(err)
		}
		conf.Threads, conf.MaxConn, conf.CPUs = 2, 77, []int{0, 2}
		dir := t.TempDir()
		if err := fill(dir, "x", haproxyText, conf); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "x"))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range append(want, "maxconn 77\n", "nbthread 2\n", "cpu-map 1/all 0 2\n", "backend b0\n", "backend b1\n") {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s: no %q in\n%s", termination, w, b)
			}
		}
	}
	if _, err := newBetween("/d", "all", "h", 1); err == nil {
		t.Error("a termination that there is not was taken")
	}
	conf, _ := newBetween("/d", edge, "h", 2)
	if got := string(conf.routesMap()); got != "r0.tare.test b0\nr1.tare.test b1\n" {
		t.Errorf("the map is %q", got)
	}
}

// TestOutside: the pods that a load on an existing controller passes through, by what names the controller's.
func TestOutside(t *testing.T) {
	const behind = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: shop, namespace: web}\nspec: {rules: [{host: a.example.com, http: {paths: [{path: /, backend: {service: {name: cart}}}]}}]}\n"
	const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: haproxy, namespace: infra}\nspec: {clusterIP: 10.96.0.9, ports: [{port: 80}]}\n"
	const gateway = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: gw, namespace: infra}\nspec: {}\n---\napiVersion: gateway.networking.k8s.io/v1\n" +
		"kind: HTTPRoute\nmetadata: {name: r, namespace: web}\nspec: {parentRefs: [{name: gw, namespace: infra}], hostnames: [b.example.com]}\n"
	servers := workload.Outside{Name: record.EndBackend, Services: []string{"web/cart"}}
	for name, c := range map[string]struct {
		v    param.Values
		want workload.Outside
	}{
		"the study": {param.Values{"objects": behind + service, "controller": "infra/app=haproxy,tier=web"}, workload.Outside{Name: record.EndController, Given: true, Namespace: "infra", Labels: "app=haproxy,tier=web"}},
		"a Service": {param.Values{"objects": behind + service}, workload.Outside{Name: record.EndController, Services: []string{"infra/haproxy"}}},
		"a Gateway": {param.Values{"objects": behind + gateway, "address": "10.0.0.1"}, workload.Outside{Name: record.EndController, Namespace: "infra", Labels: "gateway.networking.k8s.io/gateway-name=gw"}},
		"nothing":   {param.Values{"objects": behind, "address": "10.0.0.1"}, workload.Outside{Name: record.EndController, Address: "10.0.0.1"}},
	} {
		roles, err := New().Roles(workloadtest.Fill(t, New(), c.v))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(roles[0].Outside), fmt.Sprint([]workload.Outside{c.want, servers}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, text := range []string{"app=haproxy", "/app=haproxy", "infra/", "In_fra/a=b"} {
		if validPods(text) == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// TestCertificate: a TLS server can show it.
func TestCertificate(t *testing.T) {
	pem, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.X509KeyPair(pem, pem)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Leaf.VerifyHostname(route(3)); err != nil {
		t.Error(err)
	}
}

// TestUsage: wrong arguments start nothing.
func TestUsage(t *testing.T) {
	for _, args := range []string{"", "envoy", "nginx --workers x", "nginx more", "haproxy --pin x", "haproxy --termination all"} {
		err := command(context.Background(), strings.Fields(args), io.Discard, io.Discard)
		if !errors.Is(err, inside.ErrUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestTogether: when one of several processes ends, the others do too, and it is an error; they end
// quietly when they are told to.
func TestTogether(t *testing.T) {
	script := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// A shell stands in for HAProxy. Its -f switches globbing off, so it runs the file as a script.
	stays, ends := script("stays", "exec sleep 1000\n"), script("ends", "exit 3\n")
	err := together(context.Background(), "/bin/sh", []string{stays, ends, stays}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("one ended with 3: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := together(ctx, "/bin/sh", []string{stays, stays}, io.Discard, io.Discard); err != nil {
		t.Errorf("told to end: %v", err)
	}
}
