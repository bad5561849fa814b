// Package ingress is the workload ingress: HAProxy between clients and a server, as an ingress tier
// of a cluster has it.
//
// The data path: 1. Roles writes the commands of three roles (roles.go): nginx behind, HAProxy
// between, and the generator of load in front, which is package http's; 2. `tare internal ingress`
// writes the configuration and the certificate of the first two in their sandboxes, and starts them
// (start.go, config.go, haproxy.cfg, nginx.conf); 3. Parse reads the client's report.
//
// With the parameter objects there is only the generator: it loads the ingress controller of a cluster (existing.go), which serves
// the routes that package routes finds in the file.
//
// The parameters are those of the published ingress benchmark of OpenShift's scalability team, under
// Tare's names; docs/workloads/ingress.md has both.
package ingress

import (
	"fmt"
	"io"
	"regexp"
	"strconv"

	"tare/param"
	"tare/record"
	"tare/workload"
	httpload "tare/workload/http"
	"tare/workload/ingress/routes"
)

// Where TLS ends.
const (
	plain       = "none"
	edge        = "edge"        // at the proxy
	passthrough = "passthrough" // at the server
	reencrypt   = "reencrypt"   // at the proxy, which opens TLS of its own to the server
)

// Bounds of the parameters.
const (
	maxRoutes = 2000 // whose names fit into one argument of the client
	maxFile   = 64 << 20
	maxTime   = 3000 // seconds
)

// New returns the workload.
func New() workload.Workload { return ingress{} }

type ingress struct{}

// Name is ingress.
func (ingress) Name() string { return "ingress" }

// About is one sentence.
func (ingress) About() string {
	return "HAProxy in front of nginx, under load by wrk or at a rate: what an ingress costs in a sandbox"
}

// Params are the load's, the routes', the proxy's and the server's.
func (ingress) Params() []param.Param {
	return []param.Param{
		{Name: "load", Type: param.Enum, Default: httpload.Wrk, Words: []string{httpload.Wrk, httpload.Open},
			Help: "wrk: each connection sends its next request when it has an answer; open: requests are due at a rate, even if answers are late (tare itself)"},
		{Name: "connections", Type: param.Int, Default: "50", Min: 1, Max: httpload.MaxConnections, Help: "of the clients together; in the open loop at most so many"},
		{Name: "threads", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "of wrk; they share the connections evenly"},
		{Name: "rate", Type: param.Float, Offered: true, Default: "0", Min: 0, Max: httpload.MaxRate, Help: "open loop: requests a second over all connections"},
		{Name: "keep-alive", Type: param.Bool, Default: "true", Help: "a connection serves many requests; false: each has its own"},
		{Name: "resume", Type: param.Bool, Default: "false", Help: "open loop with TLS: new connections resume a session"},
		{Name: "delay", Type: param.Duration, Default: "0s", Min: 0, Max: 60, Help: "wrk: the longest pause before a request, in milliseconds; each is drawn evenly"},
		{Name: "warmup", Type: param.Duration, Default: "1s", Min: 0, Max: 600, Help: "load before measuring begins"},
		{Name: "duration", Type: param.Duration, Default: "5s", Min: 0.1, Max: maxTime, Help: "measured time"},
		{Name: "timeout", Type: param.Duration, Default: "5s", Min: 1, Max: 60, Help: "time limit for each answer; the trial fails if an answer takes longer"},
		{Name: "termination", Type: param.Enum, Default: plain, Words: []string{plain, edge, passthrough, reencrypt},
			Help: "where TLS ends: nowhere, at the proxy, at the server behind it, or at both"},
		{Name: "routes", Type: param.Int, Default: "1", Min: 1, Max: maxRoutes, Help: "names that the proxy tells apart, each with a backend of its own"},
		{Name: "targets", Type: param.String, Default: ".*", Help: "regular expression: the routes that requests take in turn; they are named r0.tare.test, r1.tare.test and so on; of objects, NAMESPACE/NAME or the host must match"},
		{Name: "proxy-threads", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "of each process of HAProxy (nbthread)"},
		{Name: "processes", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "of HAProxy; they share its port (SO_REUSEPORT)"},
		{Name: "pin", Type: param.String, Default: "none", Help: "processors of HAProxy, joined by +: one process has all of them, several take them in turn; none: as the scheduler likes"},
		{Name: "maxconn", Type: param.Int, Default: "2000", Min: 1, Max: 100000, Help: "connections that each process of HAProxy serves at once; more of them wait"},
		{Name: "workers", Type: param.Int, Default: "2", Min: 1, Max: 512, Help: "processes of nginx"},
		{Name: "size", Type: param.Size, Default: "128", Min: 1, Max: maxFile, Help: "of the file that nginx serves"},
		{Name: routes.Param, Type: param.File, Help: "Ingress, HTTPRoute, TLSRoute and Route objects of a cluster, whose controller is loaded instead of HAProxy and nginx"},
		{Name: "address", Type: param.String, Valid: validAddress, Help: "with objects: the controller's address or name; without it, that of the Service in the file"},
		{Name: "controller", Type: param.String, Valid: validPods, Help: "with objects: the controller's pods, as NAMESPACE/LABELS, whose processors --observe reads; default: the pods that the objects or the address lead to"},
		{Name: "http-port", Type: param.Int, Default: "0", Min: 0, Max: 65535, Help: "with objects: the controller's port for HTTP; 0: that of the Service in the file, or 80"},
		{Name: "https-port", Type: param.Int, Default: "0", Min: 0, Max: 65535, Help: "with objects: the controller's port for TLS; 0: that of the Service in the file, or 443"},
		{Name: "url-path", Type: param.String, Valid: validSuffix, Help: "with objects: what requests add to the path of each route, such as /file.txt"},
	}
}

// Responses are those of the load.
func (ingress) Responses(v param.Values) []record.Response {
	return httpload.LoopResponses(v.Str("load"), secure(v))
}

// Parse reads the client's report. What the servers print is not parsed.
func (ingress) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	if role != client {
		return record.Reading{}, nil
	}
	return httpload.ParseLoop(v.Str("load"), secure(v), out)
}

// route is the name of the i-th route. The top-level domain is reserved for tests (RFC 6761).
func route(i int) string { return "r" + strconv.Itoa(i) + ".tare.test" }

// targets are the routes that the regular expression selects.
func targets(v param.Values) ([]string, error) {
	expr, err := regexp.Compile(v.Str("targets"))
	if err != nil {
		return nil, fmt.Errorf("targets %q is not a regular expression: %w", v.Str("targets"), err)
	}
	var out []string
	for i := range v.Int("routes") {
		if name := route(i); expr.MatchString(name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("targets %q selects none of the routes %s to %s; write .* for all of them", v.Str("targets"), route(0), route(v.Int("routes")-1))
	}
	return out, nil
}
