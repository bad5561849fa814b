package serve

import (
	"cmp"
	"context"
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

// indexTime is how long the index waits for folders that are not read yet; those
// come with its next look.
const indexTime = 1500 * time.Millisecond

// Summary is what the index shows of a results folder.
type Summary struct {
	Study  string
	Result *analyse.Result
}

// summary is what is kept of one.
type summary struct {
	version  string
	study    string
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
	out := &summary{version: version, study: cmp.Or(x.Study, f.name)}
	if r := x.Result; r != nil {
		out.headline, out.trials, out.failed, out.finished = words.Headline(r), r.Trials, r.Failed, r.Finished
		if !r.Finished {
			out.left = leftOf(r.Left.AtLeast, r.Left.AtMost)
		}
	}
	return out, nil
}

// indexRow is one results folder in the index.
type indexRow struct {
	Name, URL, Study, State, Trials, Answer, Error string
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
	row.Study, row.Trials, row.Answer = x.study, fmt.Sprint(x.trials), x.headline.Text
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

const indexTemplate = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{if .Again}}<meta http-equiv="refresh" content="{{.Again}}">
{{end}}<title>tare: results in {{.Dir}}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 70rem; margin: 1rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8886; }
td.n { white-space: nowrap; }
.error { color: #b3261e; }
@media (prefers-color-scheme: dark) { .error { color: #ff8a80; } }
@media (max-width: 40rem) { thead { display: none; } td, tr { display: block; border: 0; padding: 0; } tr { border-bottom: 1px solid #8886; padding: .6rem 0; } }
</style>
</head>
<body>
<main>
<h1>Results in {{.Dir}}</h1>
{{if .Rows}}<table>
<thead><tr><th scope="col">results</th><th scope="col">study</th><th scope="col">state</th><th scope="col">trials</th><th scope="col">answer</th></tr></thead>
<tbody>
{{range .Rows}}<tr>
<td>{{if .Error}}{{.Name}}{{else}}<a href="{{.URL}}">{{.Name}}</a>{{end}}</td>
<td>{{.Study}}</td>
<td class="n">{{.State}}</td>
<td class="n">{{.Trials}}</td>
<td>{{if .Error}}<span class="error">{{.Error}}</span>{{else}}{{.Answer}}{{end}}</td>
</tr>
{{end}}</tbody>
</table>
{{if .More}}<p>There are more results here: the first {{len .Rows}} are listed, by name. Another one is at <code>/r/NAME/</code>, or <code>tare serve {{.Dir}}/NAME</code> shows it.</p>
{{end}}{{else}}<p>There are no results here yet. <code>tare run STUDY --results {{.Dir}}/NAME</code> makes some, and they appear.</p>
{{end}}</main>
</body>
</html>
`
