package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/figures"
	httpload "tare/workload/http"
	"tare/workload/timed"
)

// NewService returns the workload service: a server of the user's own in the sandbox, and load on
// it from the other end.
func NewService() workload.Workload { return service{} }

type service struct{}

// Levels of the parameter tls.
const (
	tlsNone   = "none"
	tlsFull   = "full"
	tlsResume = "resume"
)

// Names of the roles.
const (
	serverRole = "server"
	clientRole = "client"
)

func (service) Name() string { return "service" }

func (service) About() string {
	return "your own server, and load on it: by a program of yours, or over HTTP by a built-in loop"
}

func (service) Params() []param.Param {
	out := []param.Param{
		{Name: "server", Type: param.String, Default: "python3 -m http.server 8080", Help: "program and arguments of the server, which stays in the foreground and listens on all addresses"},
		{Name: "ready", Type: param.String, Default: "http:8080/", Help: "when the server is ready: tcp:PORT accepts a connection, http:PORT/PATH is answered with status 200, output:TEXT begins a line that it prints"},
		{Name: "load", Type: param.String, Help: "program and arguments that load the server; {server} is its address; empty: the built-in loop, see http"},
		{Name: "http", Type: param.String, Default: "8080/", Help: "PORT/PATH that the built-in loop asks for"},
		{Name: "loop", Type: param.Enum, Default: httpload.Closed, Words: []string{httpload.Closed, httpload.Open}, Help: "built-in: closed, each connection sends its next request when it has an answer; open, requests at a rate, whatever the answers do"},
		{Name: "connections", Type: param.Int, Default: "10", Min: 1, Max: httpload.MaxConnections, Help: "built-in: at a time"},
		{Name: "rate", Type: param.Float, Offered: true, Default: "100", Min: 0.1, Max: httpload.MaxRate, Help: "built-in, open loop: requests a second over all connections"},
		{Name: "keep-alive", Type: param.Bool, Default: "true", Help: "built-in: a connection serves many requests; false: each has its own"},
		{Name: "tls", Type: param.Enum, Default: tlsNone, Words: []string{tlsNone, tlsFull, tlsResume}, Help: "built-in: none, plain HTTP; full, each connection makes a whole TLS handshake; resume, new connections resume a session"},
		{Name: "trust", Type: param.String, Default: httpload.TrustSystem, Help: "with tls: system, the authorities that this host trusts; the absolute path of a PEM file of certificates; any, no check"},
		{Name: "server-name", Type: param.String, Default: "localhost", Help: "with tls: the name in the server's certificate"},
		{Name: "duration", Type: param.Duration, Default: "3s", Min: 0.1, Max: 3000, Help: "built-in: measured time"},
		{Name: "warmup", Type: param.Duration, Default: "500ms", Min: 0, Max: 600, Help: "load before measuring begins; of a program, whole runs until it is over"},
		{Name: "repeats", Type: param.Int, Default: "1", Min: 1, Max: timed.MaxRuns, Help: "measured runs of load; the trial's figures are their medians"},
		{Name: "expect", Type: param.Duration, Default: "2s", Min: 0, Max: 86400, Help: "about how long one run of load takes, for the plan"},
		{Name: "timeout", Type: param.Duration, Default: "1m", Min: 0.01, Max: 86400, Help: "a run of load, or an answer, that takes longer fails the trial"},
		{Name: "exit", Type: param.String, Default: "0", Help: "exit codes of load that count as success, joined by commas, or any"},
		{Name: "load-image", Type: param.String, Default: volume.HostRoot, Help: "root file system of load: host, or an image's name"},
	}
	for _, p := range surroundings() {
		if p.Name != "network" && p.Name != "shell" {
			out = append(out, p)
		}
	}
	out = append(out, param.Param{Name: "shell", Type: param.String, Default: "none", Help: "true: /bin/sh runs server and load, or the shell of that name; none: there is no shell"})
	return append(out, figures.Params()...)
}

// Responses are the figures of the load program and the time of a run, or those of the built-in
// loop.
func (service) Responses(v param.Values) []record.Response {
	if v.Str("load") == "" {
		return httpload.LoopResponses(v.Str("loop"), v.Str("tls") != tlsNone)
	}
	wall := own()[0]
	wall.Help = "time of a run of load, from before its start to after its end"
	f, err := figures.Parse(v, taken()...)
	if err != nil {
		return []record.Response{wall}
	}
	return append(f.Responses(), wall)
}

func (s service) Roles(v param.Values) ([]workload.Role, error) {
	server, err := s.server(v)
	if err != nil {
		return nil, err
	}
	client, err := s.client(v)
	if err != nil {
		return nil, err
	}
	return []workload.Role{server, client}, nil
}

func (service) server(v param.Values) (workload.Role, error) {
	r := workload.Role{Name: serverRole, Mode: workload.Exec, Background: true, Lifecycle: true}
	args, err := words(v, serverRole)
	if err != nil {
		return r, err
	}
	p := timed.Runs{Command: args}
	if err := surround(v, &r, &p); err != nil {
		return r, err
	}
	if r.Args, err = p.Instead(); err != nil {
		return r, err
	}
	if err := ready(v.Str("ready"), &r); err != nil {
		return r, err
	}
	// The probe has no TLS: a server that takes connections must do.
	if port, _, err := portPath(v.Str("http")); err == nil && v.Str("tls") != tlsNone && r.Probe != nil && r.Probe.Port == port {
		r.Probe.Path = ""
	}
	return r, nil
}

// ready reads the parameter of that name.
func ready(text string, r *workload.Role) error {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "tcp":
		port, err := portOf(rest)
		if err != nil {
			return fmt.Errorf("ready: %w", err)
		}
		r.Probe = &workload.Probe{Port: port}
	case "http":
		port, path, err := portPath(rest)
		if err != nil {
			return fmt.Errorf("ready: %w", err)
		}
		r.Probe = &workload.Probe{Port: port, Path: path}
	case "output":
		if r.Ready = strings.TrimSpace(rest); r.Ready == "" {
			return errors.New("ready: output: needs the beginning of a line, such as output:Listening")
		}
		r.Networked = true
	default:
		return fmt.Errorf("ready: %q is not tcp:PORT, http:PORT/PATH or output:TEXT", text)
	}
	return nil
}

func portOf(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port; write a number from 1 to 65535", text)
	}
	return int(n), nil
}

func portPath(text string) (port int, path string, err error) {
	number, rest, _ := strings.Cut(text, "/")
	if port, err = portOf(number); err != nil {
		return 0, "", err
	}
	path = "/" + rest
	if u, err := url.ParseRequestURI(path); err != nil || u.Host != "" || strings.ContainsAny(path, "{} \r\n") {
		return 0, "", fmt.Errorf("%q is not a path of HTTP", path)
	}
	return port, path, nil
}

func (service) client(v param.Values) (workload.Role, error) {
	r := workload.Role{Name: clientRole, Mode: workload.Exec, Networked: true}
	warmup, limit := v.Duration("warmup"), v.Duration("timeout")
	if v.Str("load") == "" {
		if v.Str(figures.ParamFigures) != "" || v.Str(figures.ParamFormat) != "none" {
			return r, errors.New("figures and format read the output of load; write load, or leave them out")
		}
		port, path, err := portPath(v.Str("http"))
		if err != nil {
			return r, fmt.Errorf("http: %w", err)
		}
		l := httpload.Loop{
			Kind: v.Str("loop"), URL: "http://{server}:" + strconv.Itoa(port) + path, Connections: v.Int("connections"), Rate: v.Float("rate"),
			KeepAlive: v.Bool("keep-alive"), Warmup: warmup, Duration: v.Duration("duration"), Timeout: limit,
		}
		if v.Str("tls") != tlsNone {
			if l.TLS, err = secure(v, &r); err != nil {
				return r, err
			}
			l.URL = "https" + strings.TrimPrefix(l.URL, "http")
		}
		r.Args = l.Args()
		r.Warmup, r.Expect = warmup, v.Duration("duration")
		return r, nil
	}
	return r, loadRole(v, &r)
}

// secure reads what the parameters say of TLS, and gives the client the certificates to trust.
func secure(v param.Values, r *workload.Role) (*httpload.TLS, error) {
	t := &httpload.TLS{Resume: v.Str("tls") == tlsResume, Trust: v.Str("trust"), Name: v.Str("server-name")}
	if t.Name == "" {
		return nil, errors.New("server-name is empty; write the name that the server's certificate has")
	}
	switch t.Trust {
	case httpload.TrustAny:
	case httpload.TrustSystem:
		r.Image = volume.HostRoot
	default:
		var err error
		if t.Trust, err = beneath(trustVolume, t.Trust, r); err != nil {
			return nil, fmt.Errorf("%w; or write system or any", err)
		}
	}
	return t, nil
}

// loadRole sets the role of the load program.
func loadRole(v param.Values, r *workload.Role) error {
	args, err := words(v, "load")
	if err != nil {
		return err
	}
	p := timed.Runs{Command: args, Limit: v.Duration("timeout"), Repeats: v.Int("repeats"), Warmup: v.Duration("warmup")}
	if p.Exit, err = exits(v.Str("exit")); err != nil {
		return err
	}
	there := param.Values{}
	maps.Copy(there, v)
	there["image"], there["writable"] = v.Str("load-image"), "false"
	if err := surround(there, r, &p); err != nil {
		return err
	}
	f, err := figures.Parse(v, taken()...)
	if err != nil {
		return err
	}
	if !f.Empty() {
		p.Keep = kept
	}
	if r.Args, err = p.Args(); err != nil {
		return err
	}
	r.Networked = true
	r.Warmup, r.Expect = p.Warmup, time.Duration(p.Repeats)*v.Duration("expect")
	r.Within = min(time.Duration(p.Repeats+1)*p.Limit+p.Warmup, timed.MaxTime)
	return nil
}

func (service) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	if role == serverRole {
		return rd, nil
	}
	if v.Str("load") == "" {
		return httpload.ParseLoop(v.Str("loop"), v.Str("tls") != tlsNone, out)
	}
	runs, err := timed.ReadRuns(out)
	if err != nil {
		return rd, fmt.Errorf("service: %w", err)
	}
	ends := wall(&rd, runs)
	rd.Value(record.Runs, record.Count, float64(len(runs)))
	return rd, find(&rd, v, runs, ends)
}
