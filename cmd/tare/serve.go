package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tare/record"
	"tare/report/document"
	"tare/report/serve"
	"tare/report/terminal"
)

func (a *app) serveVerb() *cobra.Command {
	var f struct {
		listen string
		remote bool
		json   bool
	}
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Show reports in a browser, live during a run",
		Args:  exactly(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if st, err := os.Stat(args[0]); err != nil || !st.IsDir() {
				return coded(exitUsage, "%s is not a directory; name a results folder, or a directory that contains results folders", args[0])
			}
			keepBelow(serveMemory)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			s, err := serve.New(args[0], serve.Source{Summary: summary, Document: liveDocument, Series: trialSeries})
			if err != nil {
				return err
			}
			l, url, err := s.Listen(ctx, f.listen, f.remote)
			if errors.Is(err, serve.ErrRemote) {
				return coded(exitUsage, "%s: %w; add --allow-remote if you want this", f.listen, err)
			}
			if err != nil {
				return coded(exitUsage, "%w; --listen 127.0.0.1:0 takes any free port", err)
			}
			if f.remote {
				a.say("other machines can reach this address without TLS; anyone who sees the token on the network can read the results")
			}
			if f.json {
				err = terminal.JSON(a.stdout).Encode(map[string]string{"url": url})
			} else {
				_, err = fmt.Fprintf(a.stdout, "%s\n", url)
				a.say("open this address in a browser; Ctrl-C stops the server")
			}
			if err != nil {
				return errors.Join(err, l.Close())
			}
			return s.Serve(ctx, l)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "address and port of this machine; port 0: any free one")
	fl.BoolVar(&f.remote, "allow-remote", false, "allow --listen to use an address that other machines can reach")
	fl.BoolVar(&f.json, "json", false, "print the address as JSON")
	return cmd
}

// summary is what the index says of a results folder.
func summary(ctx context.Context, dir string) (*serve.Summary, error) {
	r, err := analyseResults(ctx, dir, figures)
	if err != nil {
		return nil, err
	}
	out := &serve.Summary{Study: r.study.Name, Result: r.result}
	if len(r.sessions) > 0 {
		out.Began = r.sessions[0].Started
	}
	var names []string
	for _, h := range r.hosts() {
		if h.Hostname != "" && !slices.Contains(names, h.Hostname) {
			names = append(names, h.Hostname)
		}
	}
	out.Host = strings.Join(names[:min(len(names), 3)], ", ")
	return out, nil
}

// liveDocument is the report of a results folder, without series.
func liveDocument(ctx context.Context, dir string) (*document.Document, error) {
	r, err := analyseResults(ctx, dir, livePage)
	if err != nil {
		return nil, err
	}
	return r.document(true), nil
}

func trialSeries(ctx context.Context, dir string, t record.Trial, use func([]record.Series)) error {
	_, err := inResults(dir, func(r results) (none struct{}, err error) {
		err = r.SeriesOf(ctx, &t, document.Wanted, use)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the series of trial %d-%d were stored but are missing: %w", t.Seq, t.Attempt, err)
		}
		return none, err
	})
	return err
}
