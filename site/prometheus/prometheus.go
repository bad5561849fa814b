// Package prometheus reads what a Prometheus server has scraped, for the measured time of each trial.
//
// The data path: 1. Session makes a trial as the session within does; 2. it waits for two scrapes, so that the last
// points of the trial are there and none of them reaches into the next trial; 3. it asks the server for each
// query's points in the trial's measured time, and adds them to the trial as a series and its mean.
//
// It is no collect.Collector: a server is asked once for each trial, after it, and from where the user is.
package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/plan"
	"tare/record"
	"tare/site"
)

// Server is a Prometheus server, or what speaks its HTTP API
// (https://prometheus.io/docs/prometheus/latest/querying/api/).
type Server struct {
	URL     string            // without /api
	Token   string            // bearer; "": none
	Queries map[string]string // PromQL by the name of their samples; $node stands for the trial's node
	Scrape  time.Duration     // interval of its scrapes
	Client  *http.Client      // nil: http.DefaultClient
}

// Prefix begins the names of samples and series.
const Prefix = "prometheus_"

// settleScrapes is for how many scrapes a session waits after a trial.
const settleScrapes = 2

// Bounds of an answer. mostSeries is of one query: a query for all containers of a cluster is a mistake.
const (
	maxAnswer  = 16 << 20
	mostSeries = 64
	maxName    = 256
	askWithin  = 30 * time.Second
)

// ErrAnswer says that a server answers what no Prometheus does.
var ErrAnswer = errors.New("this is not an answer of Prometheus")

// answer is of /api/v1/query_range.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Type   string `json:"resultType"`
		Result []struct {
			Metric map[string]string `json:"metric"`
			Values [][2]any          `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// Range evaluates a query from one time to another, at each scrape. Series have times from the first on.
func (s *Server) Range(ctx context.Context, query string, from, to time.Time) ([]record.Series, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	at := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixNano())/1e9, 'f', 3, 64) }
	form := url.Values{"query": {query}, "start": {at(from)}, "end": {at(to)}, "step": {strconv.FormatFloat(s.Scrape.Seconds(), 'f', 3, 64)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(s.URL, "/")+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case got.StatusCode == http.StatusUnauthorized || got.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("%s: give a token with --prometheus-token-file", got.Status)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("an answer of more than %d MiB; ask for less", maxAnswer>>20)
	}
	return parse(text, from)
}

// parse reads an answer. What is no finite number is left out.
func parse(text []byte, from time.Time) ([]record.Series, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil || a.Status != "success" && a.Status != "error" {
		return nil, ErrAnswer
	}
	switch {
	case a.Status == "error":
		return nil, fmt.Errorf("%.300s", a.Error)
	case a.Data.Type != "matrix":
		return nil, fmt.Errorf("%w: a %.20q, not a matrix", ErrAnswer, a.Data.Type)
	case len(a.Data.Result) > mostSeries:
		return nil, fmt.Errorf("%d series; aggregate them to %d or fewer, as with sum by (...)", len(a.Data.Result), mostSeries)
	}
	var out []record.Series
	for _, x := range a.Data.Result {
		s := record.Series{Kind: record.Gauge, Labels: labels(x.Metric)}
		for _, p := range x.Values {
			seconds, isTime := p[0].(float64)
			written, isText := p[1].(string)
			v, err := strconv.ParseFloat(written, 64)
			if !isTime || !isText || err != nil {
				return nil, ErrAnswer
			}
			t := time.Duration((seconds - float64(from.UnixNano())/1e9) * 1e9).Round(time.Millisecond)
			if math.IsNaN(v) || math.IsInf(v, 0) || t < 0 || len(s.T) > 0 && t <= s.T[len(s.T)-1] {
				continue
			}
			s.T, s.V = append(s.T, t), append(s.V, v)
		}
		if len(s.T) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// Silent lists, by name, the queries for whose last scrapes the server has no points, on at least one of the nodes. A query without
// $node is asked once. Queries that fail are left out: a trial's warning says why.
func (s *Server) Silent(ctx context.Context, nodes []string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Queries)) {
		for i, node := range nodes {
			query := strings.ReplaceAll(s.Queries[name], "$node", node)
			if i > 0 && query == s.Queries[name] {
				break
			}
			now := time.Now()
			if series, err := s.Range(ctx, query, now.Add(-s.Settle()), now); err == nil && len(series) == 0 {
				out = append(out, name+": "+query)
				break
			}
		}
	}
	return out
}

// labels are those of a metric, without its name.
func labels(metric map[string]string) record.Labels {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(metric)) {
		if value := metric[name]; name != "__name__" && len(name) <= maxName && len(value) <= maxName {
			pairs = append(pairs, name, value)
		}
	}
	return record.MakeLabels(pairs...)
}

// Session is a session whose trials have what the server says of their time.
type Session struct {
	site.Session
	Server *Server
}

// Preview implements site.Session: one trial at a time, because figures of a cluster cannot be told apart.
func (s *Session) Preview() site.Preview {
	p := s.Session.Preview()
	p.AtOnce = 1
	return p
}

// Expected implements site.Session.
func (s *Session) Expected(c record.Cell) time.Duration {
	return s.Session.Expected(c) + s.Server.Settle()
}

// Settle is how long it waits after each trial.
func (s *Server) Settle() time.Duration { return settleScrapes * s.Scrape }

// Trials implements site.Session.
func (s *Session) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	made := s.Session.Trials(ctx, nexts)
	select {
	case <-time.After(s.Server.Settle()):
	case <-ctx.Done():
		return made // who stops now does not wait for figures
	}
	for i := range made {
		if made[i].Status == record.OK {
			s.Server.add(ctx, &made[i], nexts[i].Node) //nolint:gosec // one trial for each
		}
	}
	return made
}

// add adds the figures of a trial's measured time.
func (s *Server) add(ctx context.Context, m *record.Made, node string) {
	from, to, ok := measured(m.Trial)
	if !ok {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Queries)) {
		series, err := s.Range(ctx, strings.ReplaceAll(s.Queries[name], "$node", node), from, to)
		if err == nil && len(series) == 0 {
			err = fmt.Errorf("no points between %s and %s; is the measured time longer than the scrape interval of %s?", from.UTC().Format(time.TimeOnly), to.UTC().Format(time.TimeOnly), s.Scrape)
		}
		if err != nil {
			m.Warnings = append(m.Warnings, record.Warning{Code: "prometheus", Text: fmt.Sprintf("query %s: %v", name, err)})
			continue
		}
		for _, x := range series {
			x.Name = Prefix + name
			sum := 0.0
			for i := range x.V {
				x.T[i] += from.Sub(m.Start)
				sum += x.V[i]
			}
			m.Evidence.Series = append(m.Evidence.Series, x)
			m.Samples = append(m.Samples, record.Sample{Name: x.Name, Labels: x.Labels, Kind: record.Value, Value: sum / float64(len(x.V))})
		}
	}
}

// measured is the time from the first to the last measured window of a trial.
func measured(t *record.Trial) (from, to time.Time, ok bool) {
	for _, p := range t.Phases {
		if p.Name != "run" {
			continue
		}
		if begun := t.Start.Add(p.Offset); !ok {
			from = begun
		}
		to, ok = t.Start.Add(p.Offset+p.Duration), true
	}
	return from, to, ok
}
