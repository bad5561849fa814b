package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tare/analyse/compare"
	"tare/param"
	"tare/record"
	"tare/report/export"
	"tare/report/html"
	"tare/report/text"
	"tare/store"
	"tare/study"
)

type reportFlags struct {
	json, csv, trials, tables, cpu, causes, html bool
	full, markdown                               bool
	file, power                                  string
	gates, named                                 []string // named: of --table
}

func (a *app) reportVerb() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Summarize a results folder",
		Args:  exactly(1, "one results folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(a); err != nil {
				return err
			}
			return a.report(cmd.Context(), args[0], &f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.full, "full", false, "print everything: each ratio with its interval, causes, CPU time, what measuring cost")
	fl.BoolVar(&f.markdown, "markdown", false, "print the answer as Markdown, for an issue or a chat")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.csv, "csv", false, "print CSV, a line for each comparison")
	fl.StringArrayVar(&f.named, "table", nil, "print only the table `NAME` of the study, as text or with --markdown, --json or --csv; may be repeated")
	fl.BoolVar(&f.trials, "trials", false, "with --csv: a line for each trial and response")
	fl.BoolVar(&f.tables, "tables", false, "with --csv: the summary tables and figures of merit, a line for each cell")
	fl.BoolVar(&f.cpu, "cpu", false, "with --csv: CPU time per unit of work, a line for each workload variant and sandbox")
	fl.BoolVar(&f.causes, "causes", false, "with --csv: the cause of each cell, a line for each")
	fl.BoolVar(&f.html, "html", false, "write one self-contained HTML file")
	fl.StringArrayVar(&f.gates, "gate", nil, "fail (exit 6) if this is true of any cost, such as 'worse than 20%'; may be repeated; see tare compare --help")
	fl.StringVar(&f.power, "power", "80%", "how likely a gate must be to fail at a true cost a third above its limit; if it is less likely, the gate cannot judge (exit 7)")
	fl.StringVarP(&f.file, "output", "o", "", "with --html: write to this file instead of standard output")
	_ = cmd.RegisterFlagCompletionFunc("table", a.completeTables()) // fails for a flag that is not there
	return cmd
}

// check refuses flags that do not go together.
func (f *reportFlags) check(a *app) error {
	if n := btoi(f.json) + btoi(f.csv) + btoi(f.html) + btoi(f.full) + btoi(f.markdown); n > 1 {
		return coded(exitUsage, "write one of --full, --markdown, --json, --csv and --html")
	}
	if n := btoi(f.trials) + btoi(f.tables) + btoi(f.cpu) + btoi(f.causes); n > 1 || n > 0 && !f.csv {
		return coded(exitUsage, "write one of --trials, --tables, --cpu and --causes, with --csv")
	}
	if len(f.named) > 0 && (f.full || f.html || f.trials || f.cpu || f.causes) {
		return coded(exitUsage, "--table goes only with --markdown, --json and --csv; leave the other flag out, or run it as a separate command")
	}
	if len(f.gates) > 0 && (f.html || f.trials) {
		return coded(exitUsage, "--gate does not go with --html and --trials; run it as a separate command")
	}
	if f.file != "" && !f.html {
		return coded(exitUsage, "-o FILE needs --html; write other formats to a file with > FILE")
	}
	if _, ok := a.stdout.Terminal(); ok && f.html && f.file == "" {
		return coded(exitUsage, "HTML is not for a terminal; name a file with -o FILE")
	}
	return nil
}

func (a *app) report(ctx context.Context, dir string, f *reportFlags) error {
	if f.trials {
		return a.export(ctx, dir, formats(nil)[0], "")
	}
	r, err := openResults(dir)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	switch {
	case f.html && f.file == "":
		return r.page(ctx, a.stdout)
	case f.html:
		return writeStoppable(ctx, f.file, r.page)
	}
	x, err := r.read(ctx, figures)
	if err != nil {
		return err
	}
	gates, err := newGates(f.gates, x.study)
	if err != nil {
		return err
	}
	if err := a.write(x, a.given(dir), f); err != nil || len(gates) == 0 {
		return err
	}
	res := compare.Beside(x.result, a.given(dir))
	said, err := gated(res, f.gates, gates, f.power)
	if err != nil {
		return err
	}
	return gateError(res, &said, true, "measure again")
}

// write prints the results in the form that the flags ask for.
func (a *app) write(x *analysed, dir string, f *reportFlags) error {
	opt := a.textOptions(dir)
	switch {
	case len(f.named) > 0:
		return a.writeTables(x, f, opt)
	case f.json:
		return export.JSON(a.stdout, x.result, x.hosts())
	case f.tables:
		return export.TablesCSV(a.stdout, x.result)
	case f.cpu:
		return export.CPUCSV(a.stdout, x.result)
	case f.causes:
		return export.CausesCSV(a.stdout, x.result)
	case f.csv:
		return export.CSV(a.stdout, x.result)
	case f.full:
		return x.text(a.stdout, opt)
	case f.markdown:
		return text.WriteMarkdown(a.stdout, x.result, x.hosts(), opt)
	default:
		return text.WriteShort(a.stdout, x.result, x.hosts(), opt)
	}
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

// responsesOf tells what the responses of a study's workload are.
func responsesOf(st *study.Study, cat study.Catalogue) func(study.Workload) []record.Response {
	params := paramsOf(cat)
	return func(w study.Workload) []record.Response { return st.ResponsesOf(cat.Workloads[w.Kind], w, params(w)) }
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

// finishReport prints the report of a run and leaves it beside the results: as
// HTML to look at, as text, and as JSON for programs. If the disk takes no files, it prints the report all the same.
func (a *app) finishReport(ctx context.Context, db *store.Store, asJSON bool) error {
	r, err := results{db}.read(ctx, wholePage)
	if err != nil {
		return err
	}
	page := filepath.Join(db.Dir(), "report.html")
	left := replaceFile(page, func(w io.Writer) error { return html.Write(w, r.document(false)) })
	var plain, data bytes.Buffer
	if err := r.text(&plain, text.Options{Width: 120, Dir: db.Dir()}); err != nil {
		return err
	}
	if err := export.JSON(&data, r.result, r.hosts()); err != nil {
		return err
	}
	for name, b := range map[string][]byte{"report.txt": plain.Bytes(), "report.json": data.Bytes()} {
		if left == nil {
			left = replaceFile(filepath.Join(db.Dir(), name), func(w io.Writer) error { _, err := w.Write(b); return err })
		}
	}
	if left != nil {
		left = fmt.Errorf("%w; all trials are kept: make room, or repair the disk, and repeat the command", left)
	}
	if asJSON {
		var line bytes.Buffer // the last of the JSON lines
		if err := json.Compact(&line, data.Bytes()); err != nil {
			return err
		}
		line.WriteByte('\n')
		_, err := line.WriteTo(a.stdout)
		return errors.Join(err, left)
	}
	if err := errors.Join(text.WriteShort(a.stdout, r.result, r.hosts(), a.textOptions(db.Dir())), left); err != nil {
		return err
	}
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
