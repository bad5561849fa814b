package ingress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"tare/ordered"
	"tare/param"
	"tare/record"
	"tare/workload"
	httpload "tare/workload/http"
	"tare/workload/ingress/routes"
)

// The parameters that only an existing controller has, and those that only the study's own HAProxy has.
func onlyExisting() []string {
	return []string{"address", "http-port", "https-port", "url-path", "controller"}
}

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
	r := generator(l)
	r.Outside = outside(v, list, all, l.At)
	return r, checkLoad(v, l.TLS != nil, processes)
}

// maxServers is from how many Services on some of the servers stand for all.
const maxServers = 50

// outside are the controller's pods, and those of the servers behind it. The study names the controller's, or the objects do: by its
// Service, its Gateways or its router. Otherwise the Service with the address has them.
func outside(v param.Values, list *routes.List, all []routes.Target, address string) []workload.Outside {
	var out []workload.Outside
	switch namespace, labels, _ := strings.Cut(v.Str("controller"), "/"); {
	case namespace != "":
		out = append(out, workload.Outside{Name: record.EndController, Given: true, Namespace: namespace, Labels: labels})
	case list.Service != "":
		out = append(out, workload.Outside{Name: record.EndController, Services: []string{list.Service}})
	case len(list.Pods) > 0:
		for _, p := range list.Pods {
			out = append(out, workload.Outside{Name: record.EndController, Namespace: p.Namespace, Labels: p.Labels})
		}
	default:
		out = append(out, workload.Outside{Name: record.EndController, Address: address})
	}
	var behind []string
	for i := range all {
		if behind = ordered.Add(behind, all[i].Services...); len(behind) >= maxServers {
			break
		}
	}
	if len(behind) > 0 {
		out = append(out, workload.Outside{Name: record.EndBackend, Services: behind})
	}
	return out
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

// podsRE is NAMESPACE/LABELS, with labels as kubectl's -l takes them.
var podsRE = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[A-Za-z0-9!][-A-Za-z0-9._/=!, ()]{0,500}$`)

func validPods(text string) error {
	if !podsRE.MatchString(text) {
		return fmt.Errorf("%q does not name pods; write NAMESPACE/LABELS, such as ingress/app=haproxy, with the labels that `kubectl get pods --show-labels` prints", text)
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
