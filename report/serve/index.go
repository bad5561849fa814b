package serve

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"tare/analyse"
	"tare/report/words"
)

//go:embed index.html
var indexTemplate string

// indexTime is how long the index waits for folders that are not read yet; those
// come with its next look.
const indexTime = 1500 * time.Millisecond

// Summary is what the index shows of a results folder.
type Summary struct {
	Study  string
	Began  time.Time // when its first session did; zero if nobody knows
	Host   string    // names of the machines that measured
	Result *analyse.Result
}

// summary is what is kept of one.
type summary struct {
	version  string
	study    string
	began    string
	host     string
	modelled bool
	headline words.Sentence
	trials   int
	failed   int
	finished bool
	left     string
}

// summarise needs no document: with hundreds of folders that would take minutes.
func (s *Server) summarise(ctx context.Context, f folder, version string) (*summary, error) {
	x, err := s.source.Summary(ctx, f.path)
	if err != nil {
		return nil, err
	}
	out := &summary{version: version, study: cmp.Or(x.Study, f.name), host: x.Host}
	if !x.Began.IsZero() {
		out.began = x.Began.UTC().Format("2006-01-02 15:04")
	}
	if r := x.Result; r != nil {
		out.headline, out.trials, out.failed, out.finished, out.modelled = words.Headline(r), r.Trials, r.Failed, r.Finished, r.Modelled
		if !r.Finished {
			out.left = leftOf(r.Left.AtLeast, r.Left.AtMost)
		}
	}
	return out, nil
}

// indexRow is one results folder in the index.
type indexRow struct {
	Name, URL, Study, Began, Host, State, Trials, Answer, Error string
	Modelled                                                    bool
}

// index lists the folders with their state and headline. It reads itself again
// while something is missing or running.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	all, more, err := s.folders()
	if err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), indexTime)
	defer cancel()
	page := struct {
		Dir   string
		Rows  []indexRow
		More  bool
		Again int // seconds; 0: not
	}{Dir: s.dir, Rows: make([]indexRow, len(all)), More: more}
	if abs, err := filepath.Abs(s.dir); err == nil {
		page.Dir = abs
	}
	for _, i := range s.turns(all) {
		row, settled := s.row(ctx, all[i])
		if !settled {
			page.Again = 5
		}
		page.Rows[i] = row
	}
	t, err := template.New("index").Parse(indexTemplate)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, func(b io.Writer) error { return t.Execute(b, page) })
}

// turns is the order in which folders are read: those first of which nothing is
// known, then those that were read longest ago, so that one which is slow and
// running does not keep the others from their turn for ever.
func (s *Server) turns(all []folder) []int {
	built := make([]time.Time, len(all))
	out := make([]int, len(all))
	for i, f := range all {
		_, built[i], _ = s.summaries.last(f)
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return built[a].Compare(built[b]) })
	return out
}

// row says what is known of a folder; settled is false while that may change.
func (s *Server) row(ctx context.Context, f folder) (row indexRow, settled bool) {
	row = indexRow{Name: f.name, URL: f.url()}
	x, err := s.summaries.get(ctx, f)
	late := err != nil && ctx.Err() != nil
	if late {
		// The time is up: what an earlier state was is better than nothing.
		if x, _, err = s.summaries.last(f); x == nil && err == nil {
			row.State = "being read"
			return row, false
		}
	}
	if x == nil {
		row.State, row.Error = "damaged", err.Error()
		return row, !late
	}
	row.Study, row.Began, row.Host, row.Trials, row.Answer, row.Modelled = x.study, x.began, x.host, fmt.Sprint(x.trials), x.headline.Text, x.modelled
	if x.failed > 0 {
		row.Trials += fmt.Sprintf(", %d failed", x.failed)
	}
	switch {
	case running(x.version):
		row.State = "running"
		if x.left != "" {
			row.State += ", " + x.left
		}
	case x.finished:
		row.State = "finished"
	default:
		row.State = "stopped, " + x.left
	}
	return row, !late && !running(x.version)
}

func leftOf(least, most int) string {
	if least == most {
		return fmt.Sprintf("%d trials left", most)
	}
	return fmt.Sprintf("%d to %d trials left", least, most)
}
