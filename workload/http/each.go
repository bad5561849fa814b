package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/workload/inside"
	"tare/workload/inside/raw"
	"tare/workload/output"
)

// at is a host that answers all URLs of a load, whatever their host names are: an ingress.
type at struct {
	host          string
	plain, secure string // ports
}

// instead returns the address to connect to in place of the given one. If its port is that of https, the connection has TLS, with the name
// in the given address.
func (a *at) instead(address string, c *tls.Config) (string, *tls.Config) {
	name, port, err := net.SplitHostPort(address)
	if err != nil || port != "443" {
		return net.JoinHostPort(a.host, a.plain), nil
	}
	c = c.Clone()
	c.ServerName = name
	return net.JoinHostPort(a.host, a.secure), c
}

// newTargets reads URLs that requests take in turn.
func newTargets(each []string, host, ports string, body int64, timeout time.Duration, security TLS) (target, error) {
	plain, secure, two := strings.Cut(ports, ",")
	for _, p := range []string{plain, secure} {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 || !two {
			return target{}, fmt.Errorf("%w: --ports %q must be two ports, such as 80,443", inside.ErrUsage, ports)
		}
	}
	if host == "" || body < anyBody || timeout <= 0 || len(each) == 0 {
		return target{}, fmt.Errorf("%w: --each needs --at; --size and --timeout must not be negative", inside.ErrUsage)
	}
	t := target{body: body, dialer: dialer{timeout: timeout, at: &at{host, plain, secure}}}
	for _, raw := range each {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() != "" || u.Host == "" {
			return target{}, fmt.Errorf("%w: --each %q must be http://HOST/PATH or https://HOST/PATH", inside.ErrUsage, raw)
		}
		t.each = append(t.each, u)
	}
	t.url = t.each[0]
	if !slices.ContainsFunc(t.each, isSecure) {
		return t, nil
	}
	c, err := security.config()
	if err == nil && security.Resume {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(len(t.each))
	}
	t.tls = c
	return t, err
}

func isSecure(u *url.URL) bool { return u.Scheme == "https" }

// address returns the address of the target's own request, before at replaces it.
func (t target) address() string {
	if t.at == nil {
		return t.url.Host
	}
	if isSecure(t.url) {
		return t.url.Host + ":443"
	}
	return t.url.Host + ":80"
}

// exchanges makes an exchange for each URL. It returns the length of the answers, or 0 if their lengths differ, and the address of each.
func (t target) exchanges() (answer int64, peers []netip.AddrPort, err error) {
	if len(t.each) == 0 {
		answer, peer, err := t.exchange()
		return answer, []netip.AddrPort{peer}, err
	}
	for i, u := range t.each {
		one := t
		one.url = u
		n, peer, err := one.exchange()
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", u, err)
		}
		peers = append(peers, peer)
		if i == 0 {
			answer = n
		}
		if n != answer {
			answer = 0
		}
	}
	if t.body == anyBody { // the next answer may be another
		answer = 0
	}
	return answer, peers, nil
}

// request is what a load sends, in turn with others.
type request struct {
	url   string // for messages
	bytes []byte
	place int
}

// place is where connections go. It has one scheme, and one name in its TLS handshakes.
type place struct {
	address  string // for dial
	peer     raw.Addr
	secure   bool
	requests []int
}

// plan returns the requests of a load, and where they go. peers are of exchanges.
func (t target) plan(peers []netip.AddrPort) (requests []request, places []place) {
	index := map[string]int{}
	add := func(one target, what, host string, peer netip.AddrPort) {
		p, known := index[group(one.url)]
		if !known {
			p = len(places)
			index[group(one.url)] = p
			places = append(places, place{address: one.address(), peer: raw.AddrOf(peer), secure: isSecure(one.url)})
		}
		places[p].requests = append(places[p].requests, len(requests))
		requests = append(requests, request{what, one.bytes(host), p})
	}
	for i, u := range t.each {
		one := t
		one.url = u
		add(one, u.String(), u.Host, peers[i])
	}
	if len(t.each) > 0 {
		return requests, places
	}
	for _, h := range t.hosts {
		add(t, t.url.RequestURI(), h, peers[0])
	}
	if len(t.hosts) == 0 {
		add(t, t.url.RequestURI(), t.url.Host, peers[0])
	}
	return requests, places
}

// group is the same for URLs that may share a connection.
func group(u *url.URL) string {
	if isSecure(u) {
		return u.Host
	}
	return ""
}

// groups divides the target among processes of wrk. A process has one scheme, and one name in its TLS handshakes.
func (t target) groups() []target {
	if len(t.each) == 0 {
		return []target{t}
	}
	var out []target
	index := map[string]int{}
	for _, u := range t.each {
		i, known := index[group(u)]
		if !known {
			i = len(out)
			index[group(u)] = i
			one := t
			one.each, one.url = nil, u
			out = append(out, one)
		}
		out[i].each = append(out[i].each, u)
	}
	return out
}

// Processes returns how many processes of wrk a load of these URLs has: one for http, and one for each name of https.
func Processes(each []string) int {
	names := map[string]bool{}
	for _, u := range each {
		rest, secure := strings.CutPrefix(u, "https://")
		name, _, _ := strings.Cut(rest, "/")
		if !secure {
			name = ""
		}
		names[name] = true
	}
	return len(names)
}

// names returns the names and paths that wrk.lua takes in turn.
func (t target) names() []string {
	if len(t.each) == 0 {
		return t.hosts
	}
	var out []string
	for _, u := range t.each {
		out = append(out, u.Host+u.RequestURI())
	}
	return out
}

// environment returns the environment of wrk; nil: that of this process.
func (t target) environment() []string {
	if t.at == nil {
		return nil
	}
	port := t.at.plain
	if isSecure(t.url) {
		port = t.at.secure
	}
	return append(os.Environ(), "TARE_AT="+t.at.host+" "+port)
}

// spent is processor time.
type spent struct{ user, system time.Duration }

// all runs a process of wrk for each group of the target, at the same time, and judges their summaries. answer is as for judge.
func (c *closed) all(ctx context.Context, lua string, d time.Duration, every bool, answer int64) (summary, spent, error) {
	groups := c.target.groups()
	n := len(groups)
	if c.connections%(n*c.threads) != 0 {
		return summary{}, spent{}, fmt.Errorf("%w: --connections %d cannot be shared evenly by %d processes of wrk", inside.ErrUsage, c.connections, n)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		s   summary
		u   spent
		err error
	}
	results := make(chan result, n)
	for _, g := range groups {
		one := *c
		one.target, one.connections = g, c.connections/n
		go func() {
			s, u, err := one.wrk(ctx, lua, d, every)
			if err == nil {
				err = s.judge(one.target, answer, one.connections)
			}
			if err != nil && n > 1 {
				err = fmt.Errorf("%s: %w", g.url.Host, err)
			}
			results <- result{s, u, err}
		}()
	}
	var first error
	var all []summary
	var used spent
	for range n {
		r := <-results
		if r.err != nil && first == nil {
			first = r.err
			cancel()
		}
		all = append(all, r.s)
		used.user, used.system = used.user+r.u.user, used.system+r.u.system
	}
	if first != nil || n == 1 {
		return all[0], used, first
	}
	s, err := merge(all, c.connections/n)
	return s, used, err
}

// merge sums the summaries of several processes of wrk with so many connections each. The window is their mean, because they begin and end
// together except for the time that a process takes to start.
func merge(all []summary, connections int) (summary, error) {
	var sum summary
	h := newHistogram()
	for _, s := range all {
		sum.Duration += s.Duration / int64(len(all))
		sum.Requests, sum.Bytes = sum.Requests+s.Requests, sum.Bytes+s.Bytes
		pairs := s.Latency
		if perConnection := s.Requests / int64(connections); perConnection > 0 {
			var err error
			if pairs, err = uncorrect(pairs, s.Duration/perConnection); err != nil {
				return sum, fmt.Errorf("the latencies of wrk: %w", err)
			}
		}
		for _, p := range pairs {
			if p[0] < 0 || p[1] <= 0 || p[0] > math.MaxInt64/1000 {
				return sum, errors.New("the latencies of wrk are out of range")
			}
			if err := h.RecordValues(max(1, p[0]*1000), p[1]); err != nil {
				return sum, fmt.Errorf("the latencies of wrk: %w", err)
			}
		}
	}
	var err error
	sum.merged, err = output.Encode(h)
	return sum, err
}
