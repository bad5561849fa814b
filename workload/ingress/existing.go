package ingress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"tare/param"
	"tare/workload"
	httpload "tare/workload/http"
	"tare/workload/ingress/routes"
)

// The parameters that only an existing controller has, and those that only the study's own HAProxy has.
func onlyExisting() []string { return []string{"address", "http-port", "https-port", "url-path"} }

func onlyOwn() []string {
	return []string{"termination", "routes", "proxy-threads", "processes", "pin", "maxconn", "workers", "size"}
}

// maxURLs bounds the text of all URLs, in bytes: they are one argument of the client.
const maxURLs = 96 << 10

// existing returns the client that loads the existing controller of a cluster.
func existing(v param.Values) (workload.Role, error) {
	defaults, err := param.Fill(ingress{}.Params(), nil)
	if err != nil {
		return workload.Role{}, err //nolint:wrapcheck // it names the parameter
	}
	for _, name := range onlyOwn() {
		if v.Str(name) != defaults.Str(name) {
			return workload.Role{}, fmt.Errorf("%s is for the study's own HAProxy, but objects loads an existing controller; leave %s or objects out", name, name)
		}
	}
	list, all, err := selected(v)
	if err != nil {
		return workload.Role{}, err
	}
	l := loop(v)
	l.At, l.Ports = v.Str("address"), [2]int{v.Int("http-port"), v.Int("https-port")}
	if l.At == "" { // only the Service's address has the Service's ports
		l.At, l.Ports = list.Address, [2]int{cmp.Or(l.Ports[0], list.HTTP), cmp.Or(l.Ports[1], list.HTTPS)}
	}
	if l.At == "" {
		return workload.Role{}, errors.New("the address of the controller is not known; write address: IP, or add the controller's Service to objects")
	}
	l.Ports = [2]int{cmp.Or(l.Ports[0], 80), cmp.Or(l.Ports[1], 443)}
	bytes := 0
	for _, t := range all {
		u := t.URL()
		if more := v.Str("url-path"); more != "" {
			u = strings.TrimSuffix(u, "/") + more
		}
		bytes += len(u) + 1
		l.Each = append(l.Each, u)
	}
	if bytes > maxURLs {
		return workload.Role{}, fmt.Errorf("targets selects %d routes, whose URLs have %d bytes; select routes with at most %d", len(all), bytes, maxURLs)
	}
	if slices.ContainsFunc(all, hasTLS) {
		l.TLS = &httpload.TLS{Resume: v.Bool("resume"), Trust: httpload.TrustAny, Name: all[0].Host}
	}
	processes := 1
	if l.Kind == httpload.Wrk {
		processes = httpload.Processes(l.Each)
	}
	return generator(l), checkLoad(v, l.TLS != nil, processes)
}

func hasTLS(t routes.Target) bool { return t.TLS != routes.Plain }

// selected returns the objects of the file, and the targets that the regular expression selects.
func selected(v param.Values) (*routes.List, []routes.Target, error) {
	list, err := routes.Parse(v.Str(routes.Param))
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it has its place
	}
	expr, err := regexp.Compile(v.Str("targets"))
	if err != nil {
		return nil, nil, fmt.Errorf("targets %q is not a regular expression: %w", v.Str("targets"), err)
	}
	all := list.Select(expr)
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("targets %q selects none of the %d routes in objects, such as %s (%s); write .* for all of them", v.Str("targets"), len(list.Targets), list.Targets[0].Name, list.Targets[0].Host)
	}
	return list, all, nil
}

// secure reports whether a load has TLS. If the objects cannot be read, Roles says why.
func secure(v param.Values) bool {
	if v.Str(routes.Param) == "" {
		return v.Str("termination") != plain
	}
	_, all, err := selected(v)
	return err == nil && slices.ContainsFunc(all, hasTLS)
}

// Notes implements workload.Noter: the objects and rules that give no target.
func (ingress) Notes(v param.Values) []param.FileError {
	if v.Str(routes.Param) == "" {
		return nil
	}
	list, err := routes.Parse(v.Str(routes.Param))
	if err != nil {
		return nil // Roles says so
	}
	return list.Notes
}

var nameRE = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$`)

func validAddress(text string) error {
	if _, err := netip.ParseAddr(text); err != nil && !nameRE.MatchString(text) {
		return fmt.Errorf("%q is neither an IP address nor a name; write one such as 10.0.0.1, without a port", text)
	}
	return nil
}

var suffixRE = regexp.MustCompile(`^/[A-Za-z0-9._~!$&()*+=:@/?%-]{0,200}$`)

func validSuffix(text string) error {
	if !suffixRE.MatchString(text) {
		return fmt.Errorf("%q is not a path; write one such as /file.txt", text)
	}
	return nil
}
