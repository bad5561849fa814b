package ingress

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/workload"
	httpload "tare/workload/http"
	"tare/workload/ingress/routes"
)

// Roles of the workload. The proxy is the server of the clients: it is isolated unless a study says
// otherwise.
const (
	backend = "backend"
	proxy   = "server"
	client  = "client"
)

// Ports of nginx and of HAProxy. Each has its own network.
const (
	plainPort  = 8080
	securePort = 8443
)

// Roles returns nginx and HAProxy in the background, and a client.
func (i ingress) Roles(v param.Values) ([]workload.Role, error) {
	if v.Str(routes.Param) != "" {
		r, err := existing(v)
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", i.Name(), err)
		}
		return []workload.Role{r}, nil
	}
	hosts, err := targets(v)
	if err == nil {
		err = check(v, hosts)
	}
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", i.Name(), err)
	}
	return []workload.Role{backendRole(v), proxyRole(v), clientRole(v, hosts)}, nil
}

// check refuses parameters that cannot be run, or would measure something else.
func check(v param.Values, hosts []string) error {
	for _, name := range onlyExisting() {
		if text := v.Str(name); text != "" && text != "0" {
			return fmt.Errorf("%s is for an existing controller; write objects: FILE, or leave %s out", name, name)
		}
	}
	if err := checkLoad(v, v.Str("termination") != plain, 1); err != nil {
		return err
	}
	if v.Str("termination") == passthrough && len(hosts) > 1 {
		return fmt.Errorf("termination passthrough has one name a client (SNI), but targets selects %d routes; write targets: '^r0[.]'", len(hosts))
	}
	if v.Str("termination") == passthrough && v.Str("load") != httpload.Open && hosts[0] != route(0) {
		return errors.New("termination passthrough finds a route by the name in the handshake (SNI), and wrk does not send one; write load: open, or targets: '^r0[.]'")
	}
	_, err := pins(v.Str("pin"))
	return err
}

// checkLoad refuses a load that cannot be made with so many processes of wrk.
func checkLoad(v param.Values, secure bool, processes int) error {
	open := v.Str("load") == httpload.Open
	n, threads := v.Int("connections"), v.Int("threads")
	switch {
	case open && v.Float("rate")*v.Duration("duration").Seconds() < 1:
		return fmt.Errorf("load open sends no request within duration %s at rate %s; raise one of them", v.Str("duration"), v.Str("rate"))
	case !open && v.Float("rate") > 0:
		return errors.New("rate is for load open; leave rate at 0, or write load: open")
	case v.Duration("delay")%time.Millisecond != 0:
		return fmt.Errorf("delay %s is not a whole number of milliseconds, which wrk needs", v.Str("delay"))
	case open && v.Duration("delay") > 0:
		return errors.New("delay is for load wrk; in the open loop, rate says when requests are sent")
	case !open && n%(threads*processes) != 0 && processes > 1:
		return fmt.Errorf("connections %d cannot be shared evenly by %d processes of wrk, one for plain HTTP and one for each name with TLS, of threads %d; write %d, or select fewer with targets",
			n, processes, threads, (n/(threads*processes)+1)*threads*processes)
	case !open && n%threads != 0:
		// wrk gives each thread connections/threads of them, and drops the rest.
		return fmt.Errorf("threads %d cannot share connections %d evenly; wrk would leave %d of them out", threads, n, n%threads)
	case v.Bool("resume") && (!open || !secure):
		return errors.New("resume needs load open and a termination with TLS: wrk does not resume sessions")
	}
	return nil
}

// pins reads the numbers of processors in the parameter pin. The text "none" gives no numbers.
func pins(text string) ([]int, error) {
	if text == "none" {
		return nil, nil
	}
	var out []int
	for _, word := range strings.Split(text, "+") {
		n, err := strconv.ParseUint(word, 10, 12)
		if err != nil {
			return nil, fmt.Errorf("pin %q is not a list of processors; write none, 0 or 0+2", text)
		}
		out = append(out, int(n))
	}
	return out, nil
}

func backendRole(v param.Values) workload.Role {
	return workload.Role{
		Name: backend, Mode: workload.Exec, Background: true, Image: "nginx",
		Before: []string{"/tare", "internal", "http", "file", "--path", "/tmp/html/" + file, "--size", strconv.FormatInt(v.Size("size"), 10)},
		Args:   []string{"/tare", "internal", "ingress", "nginx", "--workers", v.Str("workers")},
		// It answers on both ports as soon as on one.
		Probe: &workload.Probe{Port: plainPort, Path: "/" + file, Size: v.Size("size")},
	}
}

func proxyRole(v param.Values) workload.Role {
	r := workload.Role{
		Name: proxy, Mode: workload.Exec, Background: true, Image: "haproxy",
		Args: []string{"/tare", "internal", "ingress", "haproxy", "--backend", "{" + backend + "}", "--termination", v.Str("termination"),
			"--routes", v.Str("routes"), "--threads", v.Str("proxy-threads"), "--processes", v.Str("processes"), "--pin", v.Str("pin"), "--maxconn", v.Str("maxconn")},
		Probe: &workload.Probe{Port: securePort}, // the probe has no TLS: a proxy that takes connections must do
	}
	if v.Str("termination") == plain {
		r.Probe = &workload.Probe{Port: plainPort, Path: "/" + file, Size: v.Size("size")}
	}
	return r
}

func clientRole(v param.Values, hosts []string) workload.Role {
	l := loop(v)
	l.URL, l.Hosts, l.Body = "http://{"+proxy+"}:"+strconv.Itoa(plainPort)+"/"+file, hosts, v.Size("size")
	if v.Str("termination") != plain {
		l.URL = "https://{" + proxy + "}:" + strconv.Itoa(securePort) + "/" + file
		l.TLS = &httpload.TLS{Resume: v.Bool("resume"), Trust: httpload.TrustAny, Name: hosts[0]}
	}
	return generator(l)
}

// loop is what all loads have.
func loop(v param.Values) httpload.Loop {
	return httpload.Loop{
		Kind: v.Str("load"), Connections: v.Int("connections"), Threads: v.Int("threads"), Delay: v.Duration("delay"), Rate: v.Float("rate"), KeepAlive: v.Bool("keep-alive"),
		Warmup: v.Duration("warmup"), Duration: v.Duration("duration"), Timeout: v.Duration("timeout"),
	}
}

func generator(l httpload.Loop) workload.Role {
	r := workload.Role{Name: client, Mode: workload.Exec, Args: l.Args(), Warmup: l.Warmup, Expect: l.Duration}
	if l.Kind == httpload.Wrk {
		r.Image = httpload.WrkImage
		r.Expect += httpload.WrkEnd
	}
	return r
}
