package serve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// hungUp is the answer to a client that is gone: nothing can be written. net/http
// logs a "superfluous WriteHeader" for each header after the first.
type hungUp struct {
	header  http.Header
	headers int
	writes  int
}

func (h *hungUp) Header() http.Header { return h.header }
func (h *hungUp) WriteHeader(int)     { h.headers++ }
func (h *hungUp) Write([]byte) (int, error) {
	if h.headers == 0 {
		h.headers = 1 // as net/http does
	}
	h.writes++
	return 0, errors.New("broken pipe")
}

// TestClientsHangUp: an answer that cannot be sent is not followed by another.
func TestClientsHangUp(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 2)
	var n atomic.Int64
	s, err := New(dir, source(&n, &n, &n))
	if err != nil {
		t.Fatal(err)
	}
	defer s.documents.close()
	defer s.summaries.close()
	s.any = true
	for _, path := range []string{"/", "/r/one/", "/r/one/doc", "/r/one/version", "/r/one/series?trial=1-1", "/r/none/"} {
		w := &hungUp{header: http.Header{}}
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+map[bool]string{true: "&", false: "?"}[path == "/r/one/series?trial=1-1"]+"token="+s.token, nil))
		if w.headers != 1 || w.writes == 0 {
			t.Errorf("%s: the header was sent %d times, over %d writes", path, w.headers, w.writes)
		}
	}
}
