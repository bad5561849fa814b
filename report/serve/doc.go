package serve

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"tare/record"
	"tare/report/document"
	"tare/report/html"
)

// maxKept is how many documents stay in memory: each has up to three megabytes.
const maxKept = 8

// entry is a built document of one state of a folder.
type entry struct {
	version string
	study   string
	answer  []document.Sentence
	trials  map[[2]int]int // seq and attempt to the row in Document.Trials
	windows [][]float64    // by row
	data    []byte         // gzip
}

func (s *Server) entry(ctx context.Context, f folder, version string) (*entry, error) {
	d, err := s.source.Document(ctx, f.path)
	if err != nil {
		return nil, err
	}
	d.Live = true
	d.Dir = f.name
	e := &entry{version: version, study: cmp.Or(d.Study.Name, f.name), answer: d.Answer, trials: make(map[[2]int]int, len(d.Trials.Seq))}
	for i := range d.Trials.Seq {
		e.trials[[2]int{d.Trials.Seq[i], d.Trials.Attempt[i]}] = i
		e.windows = append(e.windows, d.Window(i))
	}
	var b bytes.Buffer
	if err := html.Encode(&b, d); err != nil {
		return nil, err
	}
	e.data = b.Bytes()
	return e, nil
}

// document is the document of a folder's present state. Its build continues after the
// request has waited too long.
func (s *Server) document(ctx context.Context, f folder) (*entry, error) {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	e, err := s.documents.get(limited, f)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errBusy
	}
	return e, err
}

// lines reads the series of a trial. What the source has not read in time, while others read or
// from a file that takes long, ends.
func (s *Server) lines(ctx context.Context, f folder, t *record.Trial) (document.TrialSeries, error) {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	out, err := document.Lines(t, func(t *record.Trial, use func([]record.Series)) error {
		return s.source.Series(limited, f.path, *t, use)
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errBusy
	}
	return out, err
}

func (s *Server) page(w http.ResponseWriter, r *http.Request, f folder) {
	e, err := s.document(r.Context(), f)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", s.policy)
	send(w, func(b io.Writer) error {
		return html.WriteLive(b, &document.Document{Study: document.Study{Name: e.study}, Answer: e.answer}, f.url())
	})
}

func (s *Server) doc(w http.ResponseWriter, r *http.Request, f folder) {
	e, err := s.document(r.Context(), f)
	if err != nil {
		fail(w, err)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Content-Encoding", "gzip")
	head.Set("ETag", `"`+e.version+`"`)
	if r.Header.Get("If-None-Match") == `"`+e.version+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Length", fmt.Sprint(len(e.data)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(e.data) // who hung up need not be told
	}
}

func (s *Server) version(w http.ResponseWriter, f folder) {
	v, err := s.states.version(f)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, struct {
		Version string `json:"version"`
	}{v})
}

func (s *Server) series(w http.ResponseWriter, r *http.Request, f folder) {
	var t record.Trial
	q := r.URL.Query().Get("trial")
	if n, err := fmt.Sscanf(q, "%d-%d", &t.Seq, &t.Attempt); n != 2 || err != nil || t.Seq < 1 || t.Attempt < 1 || q != fmt.Sprintf("%d-%d", t.Seq, t.Attempt) {
		http.Error(w, "which trial? series?trial=SEQ-ATTEMPT", http.StatusBadRequest)
		return
	}
	e, err := s.document(r.Context(), f)
	if err != nil {
		fail(w, err)
		return
	}
	at, ok := e.trials[[2]int{t.Seq, t.Attempt}]
	if !ok {
		http.Error(w, "these results have no such trial; choose one on the page of the results", http.StatusNotFound)
		return
	}
	out, err := s.lines(r.Context(), f, &t)
	if err != nil {
		fail(w, err)
		return
	}
	out.Trial, out.Window = at, e.windows[at]
	answer(w, out)
}
