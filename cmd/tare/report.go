package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/analyse"
	"tare/param"
	"tare/record"
	"tare/report/export"
	"tare/report/text"
	"tare/store"
	"tare/study"
)

func (a *app) reportVerb() *cobra.Command {
	var f struct{ json, csv, trials bool }
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Print what a results folder says",
		Long: `Analyse a results folder and print its table: a row for each workload and
response, a column for each sandbox, with the ratio to the baseline, its interval
and a verdict. It works on any machine and while the study still runs.`,
		Example: `  tare report results/first
  tare report results/first --json | jq '.comparisons[] | select(.verdict == "slower")'
  tare report results/first --csv             a line a comparison
  tare report results/first --csv --trials    a line a trial and response`,
		Args: exactly(1, "one results folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !store.Exists(args[0]) {
				return coded(exitUsage, "%s is no results folder; `tare run STUDY` makes one", args[0])
			}
			if f.json && f.csv || f.trials && !f.csv {
				return coded(exitUsage, "write either --json or --csv; --trials goes with --csv")
			}
			db, err := store.OpenReadOnly(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			if f.trials {
				return export.TrialsCSV(a.stdout, db.All(cmd.Context()))
			}
			r, err := a.analyse(cmd.Context(), db)
			if err != nil {
				return err
			}
			switch {
			case f.json:
				return export.JSON(a.stdout, r.result, r.hosts)
			case f.csv:
				return export.CSV(a.stdout, r.result)
			}
			return r.text(a.stdout, a.textOptions(args[0]))
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.csv, "csv", false, "print CSV, a line a comparison")
	fl.BoolVar(&f.trials, "trials", false, "with --csv: a line a trial and response")
	return cmd
}

// analysed is a results folder's content and what it says.
type analysed struct {
	result *analyse.Result
	trials []record.Trial
	hosts  []record.Host
}

// analyse reads a results folder and analyses it with the study kept in it.
func (a *app) analyse(_ context.Context, db *store.Store) (*analysed, error) {
	st, cat, err := a.storedStudy(db.Dir())
	if err != nil {
		return nil, err
	}
	out := &analysed{}
	if out.trials, err = db.Trials(); err != nil {
		return nil, err
	}
	skips, err := db.Skips()
	if err != nil {
		return nil, err
	}
	sessions, err := db.Sessions()
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		out.hosts = append(out.hosts, s.Host)
	}
	out.result = analyse.Analyse(st, out.trials, skips, analyse.Describe(responsesOf(cat)))
	return out, nil
}

// responsesOf tells what the responses of a workload are.
func responsesOf(cat study.Catalogue) func(study.Workload) []record.Response {
	return func(w study.Workload) []record.Response {
		info := cat.Workloads[w.Kind]
		v, err := param.Fill(info.Params, w.Params)
		if err != nil {
			v = w.Params // a study of an older tare; its responses keep their names
		}
		return info.Responses(v)
	}
}

func (r *analysed) text(w io.Writer, opt text.Options) error {
	return text.Write(w, r.result, r.hosts, opt)
}

// finishReport prints the report of a run and leaves it beside the results, as
// text for people and JSON for programs.
func (a *app) finishReport(ctx context.Context, db *store.Store, asJSON bool) error {
	r, err := a.analyse(ctx, db)
	if err != nil {
		return err
	}
	var plain, data bytes.Buffer
	if err := r.text(&plain, text.Options{Width: 120, Dir: db.Dir()}); err != nil {
		return err
	}
	if err := export.JSON(&data, r.result, r.hosts); err != nil {
		return err
	}
	for name, b := range map[string][]byte{"report.txt": plain.Bytes(), "report.json": data.Bytes()} {
		if err := os.WriteFile(filepath.Join(db.Dir(), name), b, 0o644); err != nil { //nolint:gosec // results are meant to be read by others
			return fmt.Errorf("cannot write the report: %w", err)
		}
	}
	if asJSON {
		var line bytes.Buffer // the last of the JSON lines
		if err := json.Compact(&line, data.Bytes()); err != nil {
			return err
		}
		line.WriteByte('\n')
		_, err := line.WriteTo(a.stdout)
		return err
	}
	if err := r.text(a.stdout, a.textOptions(db.Dir())); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "\nreport: %s\n", filepath.Join(db.Dir(), "report.txt"))
	return err
}

// textOptions fits tables to the terminal; elsewhere they are 120 wide and plain.
// dir is the results folder, "" where there is none.
func (a *app) textOptions(dir string) text.Options {
	f, ok := a.stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return text.Options{Width: 120, Dir: dir}
	}
	opt := text.Options{Width: 120, Dir: dir, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil {
		opt.Width = w
	}
	return opt
}
