package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/record"
	"tare/report/document"
	"tare/store"
)

// TestBusy: a request that has waited too long, for series or for a document, is asked to come
// back.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	results(t, filepath.Join(dir, "one"), 2)
	var n atomic.Int64
	src := source(&n, &n, &n)
	begun, goOn, build := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
	series, doc := src.Series, src.Document
	src.Series = func(ctx context.Context, dir string, x record.Trial, use func([]record.Series)) error {
		return series(ctx, dir, x, func(all []record.Series) { begun <- struct{}{}; <-goOn; use(all) })
	}
	src.Document = func(ctx context.Context, dir string) (*document.Document, error) {
		<-build
		return doc(ctx, dir)
	}
	s, err := New(dir, src)
	if err != nil {
		t.Fatal(err)
	}
	defer s.documents.close()
	defer s.summaries.close()
	s.any, s.patience = true, 50*time.Millisecond
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"token="+s.token, nil))
		return w
	}
	busy := func(path string) {
		t.Helper()
		if w := get(path); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d, %v, %s", path, w.Code, w.Header(), w.Body)
		}
	}
	busy("/r/one/doc?")
	close(build)
	s.patience = time.Minute
	if w := get("/r/one/doc?"); w.Code != http.StatusOK {
		t.Fatalf("the document that was being built: %d, %s", w.Code, w.Body)
	}
	var reading sync.WaitGroup
	for range store.MaxReading {
		reading.Go(func() {
			if w := get("/r/one/series?trial=1-1&"); w.Code != http.StatusOK {
				t.Errorf("series: %d, %s", w.Code, w.Body)
			}
		})
	}
	for range store.MaxReading {
		<-begun
	}
	s.patience = 50 * time.Millisecond
	for range 3 {
		busy("/r/one/series?trial=1-1&")
	}
	close(goOn)
	reading.Wait()
	s.patience = time.Minute
	if w := get("/r/one/series?trial=1-1&"); w.Code != http.StatusOK {
		t.Errorf("after the others: %d", w.Code)
	}
}
