// Package routes finds the requests that an ingress controller routes: the targets of Ingress, HTTPRoute, TLSRoute and OpenShift's Route objects.
//
// The data path: 1. Parse reads the objects, as `kubectl get -o yaml` writes them, and takes the TLS of routes from Gateways and
// the controller's address from its Service; 2. each kind of object gives targets: the host, the path and where TLS ends; 3. an object or rule
// without a target gives a note with its place and the reason.
//
// References: k8s.io/api/networking/v1, sigs.k8s.io/gateway-api/apis (v1, v1alpha2), github.com/openshift/api/route/v1. Only fields that
// decide about a request are read, and each of them is checked; so no module with these types is needed.
package routes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/internal/yamlcheck"
	"tare/ordered"
	"tare/param"
)

// Param is the parameter that holds the objects.
const Param = "objects"

// Where TLS ends, as seen from the client. All but Plain are HTTPS.
const (
	Plain       = "none"
	Edge        = "edge"
	Passthrough = "passthrough"
	Reencrypt   = "reencrypt"
)

// Bounds of a file.
const (
	MaxTargets = 2000
	maxObjects = 5000
	maxNotes   = 20
	maxPath    = 1024 // bytes
)

// Target is one request that a controller routes.
type Target struct {
	Kind string // of the object
	Name string // NAMESPACE/NAME of the object
	Host string // for the header Host and, with TLS, for SNI
	Path string
	TLS  string
	// Services are those that the controller sends the request to, as NAMESPACE/NAME.
	Services []string
}

// URL is what a client asks for.
func (t Target) URL() string {
	if t.TLS == Plain {
		return "http://" + t.Host + t.Path
	}
	return "https://" + t.Host + t.Path
}

// List has the targets of a file.
type List struct {
	Targets []Target // in the file's order, each URL once
	Address string   // of the Service in the file; "" if there is none
	HTTP    int      // ports of that Service; 0: it has none
	HTTPS   int
	Service string            // NAMESPACE/NAME of that Service
	Pods    []Pods            // of controllers that the objects name: those of Gateways and of OpenShift's routers
	Notes   []param.FileError // objects and rules that give no target, and why
}

// Pods are the pods of a namespace with these labels, in kubectl's words for -l.
type Pods struct{ Namespace, Labels string }

// Select returns the targets whose object (NAMESPACE/NAME) or host the expression matches.
func (l *List) Select(expr *regexp.Regexp) []Target {
	var out []Target
	for _, t := range l.Targets {
		if expr.MatchString(t.Name) || expr.MatchString(t.Host) {
			out = append(out, t)
		}
	}
	return out
}

// Parse reads objects in YAML or JSON: several documents, or Lists of them. An error is a *param.FileError.
func Parse(text string) (*List, error) {
	p := &parser{gateways: map[string]bool{}, listeners: map[string][]listener{}, backendTLS: map[string]bool{}, seen: map[string]bool{}, list: &List{}}
	docs, err := yamlcheck.Documents(param.FileError{Param: Param}, text, nil, maxObjects)
	if err != nil {
		return nil, err //nolint:wrapcheck // it has its place
	}
	for _, n := range docs {
		p.add(n)
	}
	for _, o := range p.objects {
		p.context(o)
	}
	for _, o := range p.objects {
		p.read(o)
	}
	if p.err == nil && len(p.list.Targets) == 0 {
		p.nothing()
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.list, nil
}

// listener is what a Gateway says of a port.
type listener struct{ name, host, protocol, mode string }

type parser struct {
	list       *List
	objects    []*yaml.Node
	gateways   map[string]bool       // NAMESPACE/NAME
	listeners  map[string][]listener // by NAMESPACE/NAME of the Gateway
	backendTLS map[string]bool       // Services, NAMESPACE/NAME, that a BackendTLSPolicy names
	seen       map[string]bool       // URLs
	err        error
}

func (p *parser) fail(n *yaml.Node, instead, what string, args ...any) {
	if p.err == nil {
		p.err = &param.FileError{Param: Param, Line: max(1, n.Line), Column: max(1, n.Column), What: fmt.Sprintf(what, args...), Instead: instead}
	}
}

// skip notes why an object, or a part of it, gives no target.
func (p *parser) skip(n *yaml.Node, instead, what string, args ...any) {
	if len(p.list.Notes) < maxNotes {
		p.list.Notes = append(p.list.Notes, param.FileError{Param: Param, Line: max(1, n.Line), Column: max(1, n.Column), What: fmt.Sprintf(what, args...), Instead: instead})
	}
}

func (p *parser) nothing() {
	e := &param.FileError{Param: Param, Line: 1, Column: 1, What: "no object gives a target", Instead: "write Ingress, HTTPRoute, TLSRoute or Route objects"}
	if len(p.list.Notes) > 0 {
		first := p.list.Notes[0]
		e.Line, e.Column, e.What, e.Instead = first.Line, first.Column, "no object gives a target: "+first.What, first.Instead
	}
	p.err = e
}

// add takes an object, or those of a List.
func (p *parser) add(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write objects with kind, metadata and spec", "this is not a Kubernetes object")
		return
	}
	kind := word(n, "kind")
	items := get(n, "items")
	if !strings.HasSuffix(kind, "List") || items == nil {
		if p.objects = append(p.objects, n); len(p.objects) > maxObjects {
			p.fail(n, "select some with kubectl's -l or -n", "there are more than %d objects", maxObjects)
		}
		return
	}
	if items.Kind != yaml.SequenceNode {
		p.fail(items, "write a list of objects", "items is not a list")
		return
	}
	for _, o := range items.Content {
		if p.err == nil {
			p.add(o)
		}
	}
}

// context reads the objects that routes refer to.
func (p *parser) context(o *yaml.Node) {
	name := nameOf(o)
	switch word(o, "kind") {
	case "Gateway":
		for _, l := range elements(get(o, "spec", "listeners")) {
			p.listeners[name] = append(p.listeners[name], listener{word(l, "name"), word(l, "hostname"), word(l, "protocol"), word(l, "tls", "mode")})
		}
		p.gateways[name] = true
	case "BackendTLSPolicy":
		for _, t := range elements(get(o, "spec", "targetRefs")) {
			p.backendTLS[space(o)+"/"+word(t, "name")] = true
		}
	case "Service":
		p.service(o)
	}
}

func (p *parser) pods(of Pods) { p.list.Pods = ordered.Add(p.list.Pods, of) }

// service takes the controller's address and ports.
func (p *parser) service(o *yaml.Node) {
	if p.list.Address != "" {
		p.fail(o, "leave all but the controller's Service out", "there are two Services")
		return
	}
	at := word(o, "spec", "clusterIP")
	if at == "" || at == "None" {
		p.fail(o, "give the controller's address as address", "Service %s has no clusterIP", nameOf(o))
		return
	}
	p.list.Address, p.list.Service = at, nameOf(o)
	for _, port := range elements(get(o, "spec", "ports")) {
		var n int
		if v := get(port, "port"); v == nil || v.Decode(&n) != nil || n < 1 || n > 65535 {
			p.fail(port, "write a port from 1 to 65535", "a port of Service %s is out of range", nameOf(o))
			return
		}
		switch name := word(port, "name"); {
		case name == "http" || n == 80:
			p.list.HTTP = n
		case name == "https" || n == 443:
			p.list.HTTPS = n
		}
	}
}

// read takes the targets of an object.
func (p *parser) read(o *yaml.Node) {
	if p.err != nil {
		return
	}
	kind := word(o, "kind")
	group, _, _ := strings.Cut(word(o, "apiVersion"), "/")
	want := map[string]string{"Ingress": "networking.k8s.io", "HTTPRoute": gatewayGroup, "TLSRoute": gatewayGroup, "Route": "route.openshift.io"}[kind]
	if want != "" && group != want {
		p.skip(o, "write apiVersion: "+want+"/...", "%s %s is of the group %q, which is not read", kind, nameOf(o), group)
		return
	}
	switch kind {
	case "Ingress":
		p.ingress(o)
	case "HTTPRoute":
		p.httpRoute(o)
	case "TLSRoute":
		p.tlsRoute(o)
	case "Route":
		p.route(o)
	case "Gateway", "BackendTLSPolicy", "Service":
	case "":
		p.fail(o, "write kind: Ingress, HTTPRoute, TLSRoute or Route", "the object has no kind")
	default:
		p.skip(o, "leave it out", "an object of the kind %.60s is not a route", kind)
	}
}

const gatewayGroup = "gateway.networking.k8s.io"

// hostRE is a DNS name, perhaps with a wildcard for its first label.
var hostRE = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)

// pathRE has the characters of a path (RFC 3986) that need no quotes in a command or a script.
var pathRE = regexp.MustCompile(`^/[A-Za-z0-9._~!$&()*+=:@/%-]*$`)

// target adds a target, if its host and its path can be requested.
func (p *parser) target(at, o *yaml.Node, host, path, tls string, services ...string) {
	what := word(o, "kind") + " " + nameOf(o)
	if path == "" {
		path = "/"
	}
	switch {
	case p.err != nil:
		return
	case host == "":
		p.skip(at, "give it a host", "%s has a rule without a host, so no name leads to this rule alone", what)
		return
	case len(host) > 253 || !hostRE.MatchString(host):
		p.skip(at, "write a DNS name", "%s: %.80q is not a host name", what, host)
		return
	case len(path) > maxPath || !pathRE.MatchString(path):
		p.skip(at, "write a path such as /shop", "%s: %.80q is not a path that can be requested", what, path)
		return
	}
	if rest, wild := strings.CutPrefix(host, "*."); wild {
		host = "tare." + rest
	}
	t := Target{word(o, "kind"), nameOf(o), host, path, tls, services}
	if p.seen[t.URL()] {
		return // the controller serves one of them
	}
	if p.seen[t.URL()] = true; len(p.list.Targets) == MaxTargets {
		p.fail(at, "select some with kubectl's -l or -n", "there are more than %d targets", MaxTargets)
		return
	}
	p.list.Targets = append(p.list.Targets, t)
}

// passes and again return annotations that say where an Ingress controller ends TLS, because an Ingress has no field for it. With passes, only
// the server ends it. With again, the controller ends it and starts it again.
func passes() map[string]string {
	return map[string]string{
		"nginx.ingress.kubernetes.io/ssl-passthrough": "true", "haproxy-ingress.github.io/ssl-passthrough": "true", "haproxy.org/ssl-passthrough": "true",
		"ingress.kubernetes.io/ssl-passthrough": "true", "route.openshift.io/termination": "passthrough",
	}
}

func again() map[string]string {
	return map[string]string{
		"nginx.ingress.kubernetes.io/backend-protocol": "https", "haproxy-ingress.github.io/backend-protocol": "h1-ssl", "haproxy.org/server-ssl": "true",
		"haproxy-ingress.github.io/secure-backends": "true", "ingress.kubernetes.io/secure-backends": "true", "route.openshift.io/termination": "reencrypt",
	}
}

// Annotations are the names of those that Parse reads.
func Annotations() []string {
	return append(slices.Sorted(maps.Keys(passes())), slices.Sorted(maps.Keys(again()))...)
}

func annotated(o *yaml.Node, with map[string]string) bool {
	for name, value := range with {
		if strings.EqualFold(word(o, "metadata", "annotations", name), value) {
			return true
		}
	}
	return false
}

func (p *parser) ingress(o *yaml.Node) {
	secure := map[string]bool{}
	all := false // a tls entry without hosts is of all
	for _, t := range elements(get(o, "spec", "tls")) {
		hosts := elements(get(t, "hosts"))
		all = all || len(hosts) == 0
		for _, h := range hosts {
			secure[h.Value] = true
		}
	}
	rules := elements(get(o, "spec", "rules"))
	if len(rules) == 0 {
		p.skip(o, "give it a rule with a host", "Ingress %s has no rules", nameOf(o))
	}
	for _, r := range rules {
		host, tls := word(r, "host"), Plain
		switch {
		case annotated(o, passes()):
			tls = Passthrough
		case !all && !secure[host]:
		case annotated(o, again()):
			tls = Reencrypt
		default:
			tls = Edge
		}
		paths := elements(get(r, "http", "paths"))
		if len(paths) == 0 {
			p.skip(r, "give it http.paths", "Ingress %s has a rule without paths", nameOf(o))
		}
		for _, path := range paths {
			p.target(path, o, host, word(path, "path"), tls, behind(o, get(path, "backend", "service"))...)
		}
	}
}

func (p *parser) route(o *yaml.Node) {
	tls := word(o, "spec", "tls", "termination")
	switch {
	case get(o, "spec", "tls") == nil:
		tls = Plain
	case tls != Edge && tls != Passthrough && tls != Reencrypt:
		p.skip(o, "write edge, passthrough or reencrypt", "Route %s: the termination %.40q is not known", nameOf(o), tls)
		return
	}
	for _, by := range elements(get(o, "status", "ingress")) {
		// The pods of OpenShift's ingress operator.
		if router := word(by, "routerName"); router != "" {
			p.pods(Pods{"openshift-ingress", "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=" + router})
		}
	}
	p.target(o, o, word(o, "spec", "host"), word(o, "spec", "path"), tls, behind(o, append(elements(get(o, "spec", "alternateBackends")), get(o, "spec", "to"))...)...)
}

// parents returns the listeners that a route belongs to. It returns none if the file does not have the Gateway.
func (p *parser) parents(o *yaml.Node) []listener {
	var out []listener
	for _, r := range elements(get(o, "spec", "parentRefs")) {
		in := word(r, "namespace")
		if in == "" {
			in = space(o)
		}
		if name := word(r, "name"); p.gateways[in+"/"+name] {
			// Controllers that start a proxy for each Gateway label its pods so (https://gateway-api.sigs.k8s.io/geps/gep-1762).
			p.pods(Pods{in, "gateway.networking.k8s.io/gateway-name=" + name})
		}
		section := word(r, "sectionName")
		for _, l := range p.listeners[in+"/"+word(r, "name")] {
			if section == "" || section == l.name {
				out = append(out, l)
			}
		}
	}
	return out
}

// serves reports whether a listener's host name has room for a route's.
func (l listener) serves(host string) bool {
	rest, wild := strings.CutPrefix(l.host, "*")
	return l.host == "" || host == l.host || wild && strings.HasSuffix(host, rest)
}

func (p *parser) httpRoute(o *yaml.Node) {
	parents := p.parents(o)
	hosts := elements(get(o, "spec", "hostnames"))
	if len(hosts) == 0 { // it has those of its listeners
		for _, l := range parents {
			if l.host != "" {
				hosts = append(hosts, &yaml.Node{Kind: yaml.ScalarNode, Value: l.host, Line: o.Line, Column: o.Column})
			}
		}
	}
	if len(hosts) == 0 {
		p.skip(o, "give it hostnames", "HTTPRoute %s has no hostnames", nameOf(o))
		return
	}
	rules := elements(get(o, "spec", "rules"))
	for _, h := range hosts {
		tls := Plain
		for _, l := range parents {
			if l.protocol == "HTTPS" && l.serves(h.Value) {
				tls = Edge
			}
		}
		if len(rules) == 0 {
			p.target(h, o, h.Value, "/", tls)
		}
		for _, r := range rules {
			p.httpRule(o, r, h.Value, tls)
		}
	}
}

// httpRule takes the paths of a rule.
func (p *parser) httpRule(o, r *yaml.Node, host, tls string) {
	for _, b := range elements(get(r, "backendRefs")) {
		in := word(b, "namespace")
		if in == "" {
			in = space(o)
		}
		if tls == Edge && p.backendTLS[in+"/"+word(b, "name")] {
			tls = Reencrypt
		}
	}
	matches := elements(get(r, "matches"))
	services := behind(o, elements(get(r, "backendRefs"))...)
	if len(matches) == 0 {
		p.target(r, o, host, "/", tls, services...)
	}
	for _, m := range matches {
		kind := word(m, "path", "type")
		switch method := word(m, "method"); {
		case method != "" && method != "GET":
			p.skip(m, "leave it out", "HTTPRoute %s has a match for the method %.20q; only GET is sent", nameOf(o), method)
		case len(elements(get(m, "headers"))) > 0 || len(elements(get(m, "queryParams"))) > 0:
			p.skip(m, "leave it out", "HTTPRoute %s has a match for headers or a query, which are not sent", nameOf(o))
		case kind != "" && kind != "PathPrefix" && kind != "Exact":
			p.skip(m, "write PathPrefix or Exact", "HTTPRoute %s has a path of the type %.40q, from which tare cannot make a path", nameOf(o), kind)
		default:
			p.target(m, o, host, word(m, "path", "value"), tls, services...)
		}
	}
}

func (p *parser) tlsRoute(o *yaml.Node) {
	hosts := elements(get(o, "spec", "hostnames"))
	if len(hosts) == 0 {
		p.skip(o, "give it hostnames", "TLSRoute %s has no hostnames", nameOf(o))
	}
	for _, h := range hosts {
		tls := Passthrough
		for _, l := range p.parents(o) {
			if l.protocol == "TLS" && l.mode == "Terminate" && l.serves(h.Value) {
				tls = Edge
			}
		}
		var services []string
		for _, r := range elements(get(o, "spec", "rules")) {
			services = append(services, behind(o, elements(get(r, "backendRefs"))...)...)
		}
		p.target(h, o, h.Value, "/", tls, services...)
	}
}

// behind returns the Services that an object's references name. References to other kinds are left out.
func behind(o *yaml.Node, refs ...*yaml.Node) []string {
	var out []string
	for _, r := range refs {
		name, in := word(r, "name"), word(r, "namespace")
		if in == "" {
			in = space(o)
		}
		if kind := word(r, "kind"); name != "" && (kind == "" || kind == "Service") {
			out = ordered.Add(out, in+"/"+name)
		}
	}
	return out
}

// get returns the value at a path of keys, and nil if there is none.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var found *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				found = n.Content[i+1]
			}
		}
		n = found
	}
	if n != nil && n.Tag == "!!null" {
		return nil
	}
	return n
}

// word returns the scalar at a path of keys, and "" if there is none.
func word(n *yaml.Node, path ...string) string {
	if v := get(n, path...); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// elements returns the elements of a sequence, and none of other nodes.
func elements(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func space(o *yaml.Node) string {
	if s := word(o, "metadata", "namespace"); s != "" {
		return s
	}
	return "default"
}

func nameOf(o *yaml.Node) string { return space(o) + "/" + word(o, "metadata", "name") }
