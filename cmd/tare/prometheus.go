package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tare/run"
	"tare/site"
	"tare/site/prometheus"
)

// prometheusFlags choose a Prometheus server and what it is asked.
type prometheusFlags struct {
	url, tokenFile string
	queries        []string
	scrape         time.Duration
}

func (f *prometheusFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.url, "prometheus", "", "read figures of each trial's measured time from the Prometheus server at this `URL`, and wait two scrapes after each trial")
	fl.StringArrayVar(&f.queries, "prometheus-query", nil, "with --prometheus: `NAME=PROMQL`; $node stands for the trial's node (repeatable)")
	fl.DurationVar(&f.scrape, "prometheus-scrape", 15*time.Second, "with --prometheus: the interval of its scrapes")
	fl.StringVar(&f.tokenFile, "prometheus-token-file", "", "with --prometheus: a `FILE` with a bearer token")
}

// queryName is what a sample may be called.
var queryName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

// server is the server that the flags name, after a first question; nil without --prometheus.
func (f *prometheusFlags) server(ctx context.Context, detach bool) (*prometheus.Server, error) {
	u, err := url.Parse(f.url)
	switch {
	case f.url == "" && len(f.queries) == 0:
		return nil, nil
	case f.url == "":
		return nil, coded(exitUsage, "--prometheus-query needs --prometheus URL")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, coded(exitUsage, "--prometheus %s: this is not the URL of a server; write it as http://prometheus.example.org:9090", f.url)
	case len(f.queries) == 0:
		return nil, coded(exitUsage, "--prometheus needs something to ask: --prometheus-query 'node_cpu=sum(rate(node_cpu_seconds_total{mode!=\"idle\"}[1m]))'")
	case f.scrape < time.Second || f.scrape > 5*time.Minute:
		return nil, coded(exitUsage, "--prometheus-scrape %s: give 1s to 5m, as the server's scrape_interval says", f.scrape)
	case detach:
		return nil, coded(exitUsage, "--prometheus asks from here, so it does not go with --detach")
	}
	s := &prometheus.Server{URL: f.url, Queries: map[string]string{}, Scrape: f.scrape}
	for _, q := range f.queries {
		name, query, ok := strings.Cut(q, "=")
		switch {
		case !ok || !queryName.MatchString(name) || strings.TrimSpace(query) == "":
			return nil, coded(exitUsage, "--prometheus-query %s: write NAME=PROMQL, with a name of small letters, digits and _", q)
		case s.Queries[name] != "":
			return nil, coded(exitUsage, "--prometheus-query %s: there are two queries of this name", name)
		}
		s.Queries[name] = query
	}
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, coded(exitUsage, "cannot read the token: %w", err)
		}
		s.Token = strings.TrimSpace(string(text))
	}
	for name, query := range s.Queries {
		now := time.Now()
		if _, err := s.Range(ctx, query, now.Add(-f.scrape), now); err != nil {
			return nil, &site.UnableError{Err: fmt.Errorf("--prometheus %s: cannot ask query %s: %w", f.url, name, err)}
		}
	}
	return s, nil
}

// asks is a session that asks the server after each trial. It names the queries that have no figures now.
func (a *app) asks(ctx context.Context, of *prometheus.Server, s site.Session) site.Session {
	a.say("after each trial, tare waits %s for two scrapes of %s", of.Settle(), of.URL)
	for _, q := range of.Silent(ctx, run.Nodes(s)) {
		a.say("Prometheus has no figures now for query %s; stop and correct its names and labels (%s/graph shows what there is), unless it is about pods that only trials start", q, strings.TrimSuffix(of.URL, "/"))
	}
	return &prometheus.Session{Session: s, Server: of}
}
