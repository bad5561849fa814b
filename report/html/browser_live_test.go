package html_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tare/record"
	"tare/report/document"
	"tare/report/html"
)

// server is a live report's other end: what it serves can be changed.
type server struct {
	mu      sync.Mutex
	doc     *document.Document
	version string
	down    bool
	asked   []string
}

func (s *server) set(d *document.Document, version string, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doc, s.version, s.down = d, version, down
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path)
	if s.down && r.URL.Path != "/r/" {
		http.Error(w, "the results cannot be read", http.StatusInternalServerError)
		return
	}
	var err error
	switch r.URL.Path {
	case "/r/":
		err = html.WriteLive(w, s.doc, "./")
	case "/r/doc":
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		err = html.Encode(w, s.doc)
	case "/r/version":
		err = json.NewEncoder(w).Encode(map[string]string{"version": s.version})
	case "/r/series":
		var seq, attempt int
		if _, err = fmt.Sscanf(r.URL.Query().Get("trial"), "%d-%d", &seq, &attempt); err == nil {
			var lines document.TrialSeries
			lines, err = document.Lines(&record.Trial{Seq: seq, Attempt: attempt}, func(tr *record.Trial, use func([]record.Series)) error { use(made(tr, strings.ToUpper)); return nil })
			if err == nil {
				err = json.NewEncoder(w).Encode(lines)
			}
		}
	default:
		http.NotFound(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// TestLiveReportFollows: new results come in while filter, focus, what is unfolded
// and open, and the place in the page stay.
func TestLiveReportFollows(t *testing.T) {
	less, more := shape{workloads: 2, sizes: 2}.document(t), shape{workloads: 3, sizes: 2}.document(t)
	for _, d := range []*document.Document{less, more} {
		d.Live, d.Series = true, nil
	}
	s := &server{doc: less, version: "1"}
	srv := httptest.NewServer(s)
	defer srv.Close()
	b := browse(t)
	b.goTo(srv.URL + "/r/")
	if n := len(shown(b)); n != len(compared(less)) {
		t.Fatalf("%d rows, want %d", n, len(compared(less)))
	}
	tick(b, "sandbox", "runsc")
	b.do(`document.querySelector(".pick").open = false; document.querySelector('#asked details').open = true; document.querySelector(".figures tbody tr:nth-child(3)").focus(); scrollTo({top: 900, behavior: "instant"});`)
	// A series is fetched when it is wanted.
	b.wait("the server's series", `document.getElementById("series").innerText.includes("SENTRY") || (document.getElementById("series").scrollIntoView(), false)`)
	b.do(`scrollTo({top: 900, behavior: "instant"})`)
	state := `[document.activeElement.dataset.key ?? "", scrollY, location.hash, document.querySelector('#asked details').open]`
	before := eval[[]any](b, state)
	s.set(more, "2", false)
	b.wait("the new results", `document.documentElement.dataset.version === "2"`)
	if after := eval[[]any](b, state); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the state was %v and is %v", before, after)
	}
	if n, want := len(shown(b)), 3*2*4; n != want {
		t.Errorf("%d rows pass the filter, want %d", n, want)
	}
	// Open details stay open and show the new figures.
	key := shown(b)[0]
	b.do(`Tare.open(` + quote(key) + `)`)
	s.set(less, "3", false)
	b.wait("the old results", `document.documentElement.dataset.version === "3"`)
	if !eval[bool](b, `!!document.querySelector("dialog[open]") && Tare.state.open === `+quote(key)) {
		t.Error("the details have closed")
	}
	b.quiet(srv.URL + "/r/")
	// A server that fails is said to, and what was shown stays; it comes back.
	s.set(less, "3", true)
	b.wait("the failure to be said", `document.getElementById("problem").innerText.includes("cannot be read")`)
	if n := len(shown(b)); n != 2*2*4 {
		t.Errorf("%d rows while the server fails", n)
	}
	s.set(more, "4", false)
	b.wait("the server to be back", `document.documentElement.dataset.version === "4" && document.getElementById("problem").hidden`)
}

// TestLiveReportThatCannotLoad says why, and goes on asking.
func TestLiveReportThatCannotLoad(t *testing.T) {
	s := &server{doc: small(t), version: "1", down: true}
	srv := httptest.NewServer(s)
	defer srv.Close()
	b := browse(t)
	b.goTo(srv.URL + "/r/")
	if got := eval[string](b, `document.getElementById("problem").innerText`); !strings.Contains(got, "500") || !strings.Contains(got, "cannot be read") {
		t.Errorf("the page says %q", got)
	}
	s.set(s.doc, "1", false)
	b.wait("the report", `document.documentElement.dataset.ready === "yes" && document.getElementById("problem").hidden`)
	if n := len(shown(b)); n != len(compared(s.doc)) {
		t.Errorf("%d rows, want %d", n, len(compared(s.doc)))
	}
}
