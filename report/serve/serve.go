// Package serve shows the reports of all results folders in a directory to a
// browser on this machine, also while they are being written.
//
// The data path: 1. a request has the token, from the address that was printed or
// from the cookie that the first visit left, and names this server in Host; 2.
// the index lists the folders (list.go), each with its state and headline; 3. a
// report's page (package html) fetches its document (doc.go); it asks for the
// version every few seconds and for the document again when that has changed;
// 4. a document, and a line of the index, is built once for each state of its
// results (cache.go), one at a time, however many ask; 5. the series of single
// trials are read when they are looked at.
//
// What it is safe against: other users and web pages. A page elsewhere can make a
// browser send requests to 127.0.0.1, so Host is checked against DNS rebinding,
// the cookie is SameSite=Strict, and nothing but GET and HEAD is answered. Folders
// are found by listing alone: no part of a path ever comes from a request.
package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"tare/record"
	"tare/report/document"
	"tare/report/html"
)

// Source gives what is shown; the caller knows how results are analysed.
type Source struct {
	// Summary reads what the index shows of a results folder.
	Summary func(ctx context.Context, dir string) (*Summary, error)
	// Document builds the report of a results folder, without series.
	Document func(ctx context.Context, dir string) (*document.Document, error)
	// Series gives use what was sampled in one trial; fs.ErrNotExist: there is no such
	// trial. It bounds how many trials' series are in memory at once.
	Series func(ctx context.Context, dir string, trial record.Trial, use func([]record.Series)) error
}

// Server serves the results below one directory.
type Server struct {
	dir    string
	source Source
	token  string
	policy string // Content-Security-Policy of reports
	hosts  map[string]bool
	any    bool // Host is not checked: the server is open to other machines
	cookie string

	states    *states
	summaries *cache[summary]
	documents *cache[entry]
	patience  time.Duration // how long a request waits for others, and for the series of a trial
}

// Limits of a request. A document may take long to build and to send.
const (
	headerTime   = 5 * time.Second
	writeTime    = 2 * time.Minute
	idleTime     = 2 * time.Minute
	maxHeader    = 16 << 10
	shutdownTime = 3 * time.Second
)

// One document and one line of the index are built at once (cache), and Source.Series bounds the
// series: a hostile folder may cost 300 MB for each trial. A request that has waited this long
// is asked to come back, before a proxy gives up.
const (
	waitTime   = 45 * time.Second
	retryAfter = 10 // seconds
)

// errBusy: a request waited too long for others.
var errBusy = errors.New("the server is busy with other requests; try again in a moment")

// New makes a server of dir, which is a results folder or holds some.
func New(dir string, source Source) (*Server, error) {
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	scripts, err := html.ScriptPolicy()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, source: source, token: base64.RawURLEncoding.EncodeToString(raw),
		// Charts set styles of elements, so styles cannot be named by hash.
		policy: "default-src 'none'; script-src " + scripts + "; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; " +
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
	s.patience = waitTime
	s.states = newStates(readState)
	s.summaries = newCache(maxFolders, s.states.version, s.summarise)
	s.documents = newCache(maxKept, s.states.version, s.entry)
	return s, nil
}

// Listen opens the address, which must be of this machine alone unless remote is
// set, and returns the URL to visit, with the token.
func (s *Server) Listen(ctx context.Context, address string, remote bool) (net.Listener, string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("listen on %s: %w", address, err)
	}
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	if !remote && !at.Addr().Unmap().IsLoopback() {
		return nil, "", errors.Join(ErrRemote, l.Close())
	}
	host := at.String()
	if at.Addr().IsUnspecified() {
		host = net.JoinHostPort(reached(ownAddresses(), at.Addr().Is4()), fmt.Sprint(at.Port()))
	}
	s.any = remote
	s.hosts = names(at.Port())
	s.hosts[host] = true
	// Cookies know no ports: two servers must not take each other's.
	s.cookie = fmt.Sprintf("tare-%d", at.Port())
	return l, "http://" + host + "/?token=" + s.token, nil
}

// ownAddresses are those of the interfaces that are up, in the kernel's order:
// network cards come before bridges.
func ownAddresses() []netip.Addr {
	cards, err := net.Interfaces()
	if err != nil {
		return nil // the host's name is left
	}
	var out []netip.Addr
	for _, c := range cards {
		if c.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := c.Addrs()
		if err != nil {
			continue // gone since
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out = append(out, p.Addr())
			}
		}
	}
	return out
}

// reached is the host for the URL of a server that listens on every address:
// localhost would be another machine to the others. It is the first address that
// is no loopback, IPv4 if there is one (alone if v4), or else the host's name.
func reached(addrs []netip.Addr, v4 bool) string {
	for _, want4 := range []bool{true, false} {
		for _, a := range addrs {
			if a = a.Unmap(); a.IsGlobalUnicast() && a.Is4() == want4 && (want4 || !v4) {
				return a.String()
			}
		}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "localhost"
}

// names are those by which this machine is asked on a port.
func names(port uint16) map[string]bool {
	out := make(map[string]bool)
	for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
		out[fmt.Sprintf("%s:%d", name, port)] = true
		if port == 80 { // browsers leave it out
			out[name] = true
		}
	}
	return out
}

// ErrRemote is returned for an address that other machines can reach.
var ErrRemote = errors.New("other machines can reach this address")

// Serve answers until ctx ends, once. The listener is Listen's and is closed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.documents.close()
	defer s.summaries.close()
	h := &http.Server{Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := h.Shutdown(late)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close() // a browser that holds its connection does not hold us
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	switch {
	case !s.any && !s.hosts[r.Host]:
		http.Error(w, "this server does not go by the name that was asked for", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered", http.StatusMethodNotAllowed)
	case !s.admit(w, r):
		http.Error(w, "the token is missing or wrong: open the address that `tare serve` printed", http.StatusForbidden)
	default:
		s.route(w, r)
	}
}

// admit checks the token: in the address, then in the cookie.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	same := func(token string) bool { return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1 }
	if same(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // Secure would be refused: there is no TLS on loopback
		return true
	}
	c, err := r.Cookie(s.cookie)
	return err == nil && same(c.Value)
}

// route finds what is asked for: /, /r/NAME/ and below it doc, version, series.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		s.index(w, r)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/r/")
	name, what, slash := strings.Cut(rest, "/")
	f, found := folder{}, false
	if ok && slash {
		f, found = s.find(name)
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	switch what {
	case "":
		s.page(w, r, f)
	case "doc":
		s.doc(w, r, f)
	case "version":
		s.version(w, f)
	case "series":
		s.series(w, r, f)
	default:
		http.NotFound(w, r)
	}
}

// send answers with a page of HTML. It makes the whole page before it sends a byte. An error
// while making it gets its own answer. An error while sending it means that the client hung
// up, so nobody reads an answer.
func send(w http.ResponseWriter, write func(io.Writer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who hung up need not be told
}

// fail says what is wrong with a folder. Its text names files, to somebody who
// has the token.
func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, errBusy) {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
