package routes

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"tare/param"
)

const objects = `apiVersion: v1
kind: List
items:
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: shop, namespace: web}
  spec:
    tls: [{hosts: [shop.example.com], secretName: s}]
    rules:
    - {host: shop.example.com, http: {paths: [{path: /cart, pathType: Prefix}, {path: /, pathType: Prefix}]}}
    - {host: plain.example.com, http: {paths: [{path: /, pathType: Prefix}]}}
    - {http: {paths: [{path: /, pathType: Prefix}]}}
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: through, namespace: web, annotations: {haproxy-ingress.github.io/ssl-passthrough: "true"}}
  spec: {rules: [{host: through.example.com, http: {paths: [{path: /, pathType: Prefix}]}}]}
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: again, namespace: web, annotations: {haproxy-ingress.github.io/secure-backends: "true"}}
  spec: {tls: [{}], rules: [{host: "*.again.example.com", http: {paths: [{path: /, pathType: Prefix}]}}]}
- apiVersion: gateway.networking.k8s.io/v1
  kind: Gateway
  metadata: {name: gw, namespace: infra}
  spec:
    listeners:
    - {name: web, protocol: HTTP, port: 80}
    - {name: secure, protocol: HTTPS, hostname: "*.example.org", port: 443}
- apiVersion: gateway.networking.k8s.io/v1
  kind: HTTPRoute
  metadata: {name: api}
  spec:
    parentRefs: [{name: gw, namespace: infra, sectionName: secure}]
    hostnames: [api.example.org, other.example.net]
    rules:
    - matches: [{path: {type: Exact, value: /v1}}, {path: {type: RegularExpression, value: "/v[0-9]"}}, {method: POST}, {headers: [{name: a, value: b}]}]
- apiVersion: gateway.networking.k8s.io/v1alpha2
  kind: TLSRoute
  metadata: {name: tls}
  spec: {hostnames: [tls.example.org]}
- apiVersion: route.openshift.io/v1
  kind: Route
  metadata: {name: r, namespace: apps}
  spec: {host: r.apps.example.com, path: /x, tls: {termination: reencrypt}}
- apiVersion: route.openshift.io/v1
  kind: Route
  metadata: {name: p, namespace: apps}
  spec: {host: p.apps.example.com}
- apiVersion: route.openshift.io/v1
  kind: Route
  metadata: {name: bad, namespace: apps}
  spec: {host: bad.apps.example.com, tls: {termination: middle}}
- apiVersion: v1
  kind: Service
  metadata: {name: haproxy, namespace: infra}
  spec: {clusterIP: 10.96.0.9, ports: [{name: http, port: 8080}, {name: https, port: 8443}, {name: stats, port: 1936}]}
`

// TestParse: the targets of each kind of object, the controller's address, and a reason for what gives none.
func TestParse(t *testing.T) {
	l, err := Parse(objects)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range l.Targets {
		got = append(got, x.Name+" "+x.URL()+" "+x.TLS)
	}
	want := `web/shop https://shop.example.com/cart edge
web/shop https://shop.example.com/ edge
web/shop http://plain.example.com/ none
web/through https://through.example.com/ passthrough
web/again https://tare.again.example.com/ reencrypt
default/api https://api.example.org/v1 edge
default/api http://other.example.net/v1 none
default/tls https://tls.example.org/ passthrough
apps/r https://r.apps.example.com/x reencrypt
apps/p http://p.apps.example.com/ none`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if l.Address != "10.96.0.9" || l.HTTP != 8080 || l.HTTPS != 8443 {
		t.Errorf("the controller is at %q, %d, %d", l.Address, l.HTTP, l.HTTPS)
	}
	notes := fmt.Sprint(l.Notes)
	for _, w := range []string{"without a host", `method "POST"`, "headers or a query", `type "RegularExpression"`, `termination "middle"`} {
		if !strings.Contains(notes, w) {
			t.Errorf("no note of %s in %s", w, notes)
		}
	}
	for expr, n := range map[string]int{"^web/": 5, "example[.]org$": 2, "^apps/r$|^default/tls$": 2, "nothing": 0} {
		if got := l.Select(regexp.MustCompile(expr)); len(got) != n {
			t.Errorf("%s selects %v", expr, got)
		}
	}
}

// TestKubectl: what a real API server has of each kind, as kubectl prints it.
func TestKubectl(t *testing.T) {
	text, err := os.ReadFile("testdata/kubectl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range l.Targets {
		got = append(got, x.Kind+" "+x.URL()+" "+x.TLS)
	}
	want := `Ingress https://again.tare.test/ reencrypt
Ingress https://edge.tare.test/ edge
Ingress https://pass.tare.test/ passthrough
Ingress http://plain.tare.test/ none
HTTPRoute https://api.tare.test/v1 edge
TLSRoute https://tls.tare.test/ passthrough
Route https://shop.tare.test/cart edge
Route https://through.tare.test/ passthrough`
	if strings.Join(got, "\n") != want || len(l.Notes) != 1 || l.Address != "10.96.148.226" || l.HTTP != 8080 || l.HTTPS != 8443 {
		t.Errorf("got\n%s\nwith the notes %v, at %q", strings.Join(got, "\n"), l.Notes, l.Address)
	}
}

// TestRefused: what is no file of routes has a place and a reason.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":              "no object gives a target",
		"a: [":          "not YAML",
		"- 1":           "not a Kubernetes object",
		"a: &x 1":       "anchors",
		"metadata: {}":  "no kind",
		"kind: Pod\n":   "an object of the kind Pod is not a route",
		"kind: Ingress": `group ""`,
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {rules: [{host: 'a b', http: {paths: [{}]}}]}":        `"a b" is not a host name`,
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {rules: [{host: a.b, http: {paths: [{path: a b}]}}]}": "not a path",
		"kind: Service\nspec: {clusterIP: None}": "no clusterIP",
		"kind: List\nitems: 3":                   "items is not a list",
		strings.Repeat("[", 200):                 "",
	} {
		_, err := Parse(text)
		var at *param.FileError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) || at.Line < 1 || at.Column < 1 {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(objects)
	f.Add("kind: List\nitems: [{kind: Route}]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		l, err := Parse(text)
		var at *param.FileError
		if err != nil && (!errors.As(err, &at) || at.Line < 1) {
			t.Errorf("%v has no place", err)
		}
		if err != nil {
			return
		}
		for _, x := range l.Targets {
			if len(x.Host) > 253 || strings.ContainsAny(x.URL(), " \n\t,\"'`\\") || x.Path[0] != '/' {
				t.Errorf("%q cannot be put into a command", x.URL())
			}
		}
	})
}

// TestBehind: the Services behind a route, and the pods of a controller that the objects name.
func TestBehind(t *testing.T) {
	list, err := Parse(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: web}
spec: {rules: [{host: a.example.com, http: {paths: [{path: /, backend: {service: {name: cart}}}]}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: unused, namespace: infra}
spec: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: api, namespace: web}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  hostnames: [b.example.com]
  rules: [{backendRefs: [{name: one}, {name: two, namespace: other}, {name: file, kind: Storage}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: tls, namespace: web}
spec: {hostnames: [c.example.com], rules: [{backendRefs: [{name: three}]}]}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: r, namespace: apps}
spec: {host: d.example.com, to: {kind: Service, name: four}, alternateBackends: [{kind: Service, name: five}]}
status: {ingress: [{routerName: default}, {routerName: default}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, target := range list.Targets {
		got = append(got, target.Host+": "+strings.Join(target.Services, " "))
	}
	const want = "a.example.com: web/cart, b.example.com: web/one other/two, c.example.com: web/three, d.example.com: apps/five apps/four"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("%s, want %s", all, want)
	}
	const pods = "[{infra gateway.networking.k8s.io/gateway-name=gw} {openshift-ingress ingresscontroller.operator.openshift.io/deployment-ingresscontroller=default}]"
	if all := fmt.Sprint(list.Pods); all != pods {
		t.Errorf("%s, want %s", all, pods)
	}
}
