package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/param"
	"tare/record"
	"tare/report/document"
	"tare/report/export"
	"tare/report/html"
	"tare/report/text"
	"tare/store"
	"tare/study"
)

func (a *app) reportVerb() *cobra.Command {
	var f struct {
		json, csv, trials, tables, cpu, causes, html bool
		file                                         string
	}
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Print what a results folder says",
		Long: `Analyse a results folder and print its table: a row for each workload and
response, a column for each sandbox, with the ratio to the baseline, its interval
and a verdict. It works on any machine and while the study still runs.

With --html it is one file with charts that needs no network: to look at, to send
around, to print. A file is there once it is whole.`,
		Example: `  tare report results/first
  tare report results/first --html -o first.html
  tare report results/first --json | jq '.comparisons[] | select(.verdict == "slower")'
  tare report results/first --csv             a line a comparison
  tare report results/first --csv --trials    a line a trial and response
  tare report results/first --csv --tables    the summary tables, a line a cell
  tare report results/first --csv --cpu       CPU time a unit of work
  tare report results/first --csv --causes    what bounds each cell, a line a cell`,
		Args: exactly(1, "one results folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !store.Exists(args[0]) {
				return coded(exitUsage, "%s is no results folder; `tare run STUDY` makes one", args[0])
			}
			if n := btoi(f.json) + btoi(f.csv) + btoi(f.html); n > 1 {
				return coded(exitUsage, "write one of --json, --csv and --html")
			}
			if n := btoi(f.trials) + btoi(f.tables) + btoi(f.cpu) + btoi(f.causes); n > 1 || n > 0 && !f.csv {
				return coded(exitUsage, "write one of --trials, --tables, --cpu and --causes, with --csv")
			}
			if f.file != "" && !f.html {
				return coded(exitUsage, "-o FILE goes with --html; send other forms to a file with > FILE")
			}
			if _, ok := a.stdout.Terminal(); ok && f.html && f.file == "" {
				return coded(exitUsage, "HTML is no text for a terminal; name a file with -o FILE")
			}
			db, err := store.OpenReadOnly(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			switch {
			case f.trials:
				if err := export.TrialsCSV(a.stdout, db.All(cmd.Context())); err != nil {
					return err
				}
				return a.tellDamage(cmd.Context(), db)
			case f.html && f.file == "":
				return a.htmlReport(cmd.Context(), db, a.stdout)
			case f.html:
				return writeStoppable(cmd.Context(), f.file, func(ctx context.Context, w io.Writer) error { return a.htmlReport(ctx, db, w) })
			}
			r, err := a.analyse(cmd.Context(), db)
			if err != nil {
				return err
			}
			switch {
			case f.json:
				return export.JSON(a.stdout, r.result, r.hosts)
			case f.tables:
				return export.TablesCSV(a.stdout, r.result)
			case f.cpu:
				return export.CPUCSV(a.stdout, r.result)
			case f.causes:
				return export.CausesCSV(a.stdout, r.result)
			case f.csv:
				return export.CSV(a.stdout, r.result)
			}
			return r.text(a.stdout, a.textOptions(a.given(args[0])))
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.csv, "csv", false, "print CSV, a line a comparison")
	fl.BoolVar(&f.trials, "trials", false, "with --csv: a line a trial and response")
	fl.BoolVar(&f.tables, "tables", false, "with --csv: the summary tables, a line a cell")
	fl.BoolVar(&f.cpu, "cpu", false, "with --csv: CPU time a unit of work, a line a stratum and sandbox")
	fl.BoolVar(&f.causes, "causes", false, "with --csv: what bounds each cell, a line a cell")
	fl.BoolVar(&f.html, "html", false, "write one HTML file, complete in itself")
	fl.StringVarP(&f.file, "output", "o", "", "with --html: write this file instead of standard output")
	return cmd
}

// analysed is a results folder's content and what it says.
type analysed struct {
	study    *study.Study
	result   *analyse.Result
	trials   []record.Trial // with what an analysis reads of them; none beside a document
	hosts    []record.Host
	sessions []store.Session
	builder  *document.Builder   // nil when no document is wanted
	file     string              // name of the study file
	series   document.ReadSeries // of a whole page
}

// analyse reads a results folder and analyses it with the study kept in it.
func (a *app) analyse(ctx context.Context, db *store.Store, opts ...analyse.Option) (*analysed, error) {
	return a.read(ctx, db, figures, opts...)
}

// extent is what is wanted of a results folder.
type extent int

const (
	figures   extent = iota // the analysis
	livePage                // and a document without series, which a page fetches one by one
	wholePage               // and a document with all that has room
)

// read streams the trials once: into the document if that is wanted, and, less
// what no analysis reads, into memory.
func (a *app) read(ctx context.Context, db *store.Store, want extent, opts ...analyse.Option) (*analysed, error) {
	st, cat, err := a.storedStudy(db.Dir())
	if err != nil {
		return nil, err
	}
	out := &analysed{study: st}
	pick := store.Pick{Labels: analyse.LabelNames(), Names: analyse.SampleNames(), NoHistograms: want == figures, Facts: analyse.FactNames()}
	if want != figures {
		out.builder = document.New(st)
	}
	var trials []record.Trial
	cpu, causes := new(cpucost.Reader), new(cause.Reader)
	for t, err := range db.Some(ctx, pick) {
		if err != nil {
			return nil, err
		}
		if out.builder != nil {
			out.builder.Add(&t)
		}
		t.Histograms = nil
		causes.Take(&t) // before cpu, which takes what both read
		cpu.Take(&t)
		trials = append(trials, t)
	}
	skips, err := db.Skips()
	if err != nil {
		return nil, err
	}
	if out.sessions, err = db.Sessions(); err != nil {
		return nil, err
	}
	for _, s := range out.sessions {
		out.hosts = append(out.hosts, s.Host)
	}
	meta, err := db.Meta()
	if err != nil {
		return nil, err
	}
	if want == figures { // a document has its own columns, and the trials are many
		out.trials = trials
	}
	out.file = filepath.Base(meta.StudyFile)
	var settling sync.WaitGroup
	if want == wholePage {
		out.series = seriesOf(ctx, db, seriesTime)
		settling.Go(func() { out.builder.Settle(out.series) })
	}
	out.result = analyse.Analyse(st, trials, skips, append(opts, analyse.Describe(responsesOf(cat)), analyse.CPU(cpu), analyse.Causes(causes, paramsOf(cat)))...)
	settling.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // it says that the verb was interrupted
	}
	damage, err := damageWarnings(ctx, db)
	if err != nil {
		return nil, err
	}
	out.result.Warnings = append(damage, out.result.Warnings...) // first: the other warnings are about the rest
	return out, nil
}

// document is everything that the HTML report shows; only when read withDocument.
func (r *analysed) document(db *store.Store, live bool) *document.Document {
	in := document.Input{Tare: versionText(), Dir: folderName(db.Dir()), File: r.file, Live: live, Result: r.result}
	for _, s := range r.sessions {
		in.Sessions = append(in.Sessions, document.Session{ID: s.ID, Started: s.Started.UTC().Format(time.RFC3339), Tare: s.TareVersion, Host: s.Host})
	}
	if !live { // a live report fetches them one by one
		in.Series = r.series
	}
	return r.builder.Document(in)
}

// seriesTime is how long reading the series of one report may take, summed over the files.
// The 400 files of a usual report take less than a second.
const seriesTime = 30 * time.Second

// seriesOf reads the series that a document turns into lines. When the files have taken most
// of time together, the rest are left out.
func seriesOf(ctx context.Context, db *store.Store, most time.Duration) document.ReadSeries {
	var spent atomic.Int64
	return func(t *record.Trial) ([]record.Series, error) {
		began, left := time.Now(), most-time.Duration(spent.Load())
		if left <= 0 {
			return nil, document.ErrNoTime
		}
		limited, cancel := context.WithTimeoutCause(ctx, left, document.ErrNoTime)
		defer cancel()
		out, err := db.SeriesOf(limited, t, document.Wanted)
		spent.Add(int64(time.Since(began)))
		if err != nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		return out, err //nolint:wrapcheck // it names the trial
	}
}

// htmlReport writes the HTML report.
func (a *app) htmlReport(ctx context.Context, db *store.Store, w io.Writer) error {
	keepBelow(reportMemory)
	r, err := a.read(ctx, db, wholePage)
	if err != nil {
		return err
	}
	d := r.document(db, false)
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // it says that the verb was interrupted
	}
	return html.Write(w, d)
}

// folderName is the last part of a folder's path, also of ".".
func folderName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// responsesOf tells what the responses of a workload are.
func responsesOf(cat study.Catalogue) func(study.Workload) []record.Response {
	params := paramsOf(cat)
	return func(w study.Workload) []record.Response { return cat.Workloads[w.Kind].Responses(params(w)) }
}

// paramsOf tells the parameters of a workload, with those that the study leaves as
// they are.
func paramsOf(cat study.Catalogue) func(study.Workload) param.Values {
	return func(w study.Workload) param.Values {
		info := cat.Workloads[w.Kind]
		given := param.Values{}
		for name, value := range w.Params {
			if _, ok := param.Find(info.Params, name); ok {
				given[name] = value
			}
		}
		v, err := param.Fill(info.Params, given)
		if err != nil {
			v = w.Params // a study of an older tare; its responses keep their names
		}
		return v
	}
}

func (r *analysed) text(w io.Writer, opt text.Options) error {
	return text.Write(w, r.result, r.hosts, opt)
}

// finishReport prints the report of a run and leaves it beside the results: as
// HTML to look at, as text, and as JSON for programs.
func (a *app) finishReport(ctx context.Context, db *store.Store, asJSON bool) error {
	r, err := a.read(ctx, db, wholePage)
	if err != nil {
		return err
	}
	page := filepath.Join(db.Dir(), "report.html")
	if err := replaceFile(page, func(w io.Writer) error { return html.Write(w, r.document(db, false)) }); err != nil {
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
		if err := replaceFile(filepath.Join(db.Dir(), name), func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
			return err
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
	fmt.Fprintln(a.stdout)
	a.line("report: %s", page)
	return nil
}

// textOptions fits tables to the terminal; elsewhere they are 120 wide and plain.
// dir is the results folder, "" where there is none.
func (a *app) textOptions(dir string) text.Options {
	width, ok := a.stdout.Terminal()
	if !ok {
		return text.Options{Width: 120, Dir: dir}
	}
	opt := text.Options{Width: width, Dir: dir}
	if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		opt.Ink = a.stdout.Ink()
	}
	return opt
}
