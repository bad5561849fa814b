package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tare/analyse"
	"tare/analyse/compare"
	"tare/param"
	"tare/record"
	"tare/report/export"
	"tare/report/junit"
	"tare/report/text"
	"tare/store"
	"tare/study"
)

// compareFlags are the flags of `tare compare`.
type compareFlags struct {
	question, sort, margin, fdr, junit string
	gates, only, responses             []string
	json, csv, all                     bool
}

func (a *app) compareVerb() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two results of the same study",
		Long: `Compare two results folders of the same study: before (A) and after (B) an
upgrade, or of two hosts. Cells that both have are matched, and each comes to a
ratio B/A with an interval, a false discovery rate over all cells, and a verdict.

Two things can be asked, --question:

  cost    the ratio to the baseline, in B by that in A. What the machine was like
          at either time cancels, since each side has its own baseline.
  level   the value itself, in B by that in A. That another time or host is
          different is part of it.
  auto    treatments by cost, the baseline's cells, which have none, by level

A gate says what must not be true of any row; if it is, the exit code is 6. It is
"worse than 5%", "surely worse than 5%", or an expression. Where no row has an
interval, none can hold, and the exit code is 6 as well. An expression is made of:

` + gateHelp(),
		Example: `  tare compare results/before results/after
  tare compare before after --all --sort study --only workload=rr,sandbox=runc
  tare compare before after --question cost --gate 'worse than 5%' --junit tare.xml
  tare compare before after --gate 'response == "latency_p99" and changed and worse > 1.1' --gate missing
  tare compare before after --json | jq '.rows[] | select(.cost.changed)'`,
		Args: exactly(2, "two results folders"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compare(cmd.Context(), args[0], args[1], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.question, "question", string(compare.Auto), "what is compared: auto, cost, level")
	fl.StringArrayVar(&f.gates, "gate", nil, "fail (exit 6) if this is true of any row; may be repeated")
	fl.StringVar(&f.junit, "junit", "", "write JUnit XML to this file, a test case for each row")
	fl.StringVar(&f.margin, "margin", "", "changes within it are equivalent, such as 3% (default: the study's)")
	fl.StringVar(&f.fdr, "fdr", "5%", "share of false ones among the changed rows")
	fl.StringSliceVar(&f.responses, "responses", nil, "compare these alone")
	fl.StringArrayVar(&f.only, "only", nil, "compare cells with these levels alone: "+onlyHelp)
	fl.BoolVar(&f.all, "all", false, "print rows that did not change too")
	fl.StringVar(&f.sort, "sort", "effect", "order of the rows printed: effect, study")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.csv, "csv", false, "print CSV, a line a row and question")
	for flag, words := range map[string][]string{"question": {"auto", "cost", "level"}, "sort": {"effect", "study"}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	}
	for flag, complete := range map[string]cobra.CompletionFunc{"only": a.completeOnly(), "responses": a.completeResponses()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete)
	}
	return cmd
}

// gateHelp lists what gates can be made of.
func gateHelp() string {
	var b strings.Builder
	for _, v := range compare.Variables() {
		fmt.Fprintf(&b, "  %-10s %s\n", v.Name, v.Help)
	}
	return b.String() + `
Factors are text by their own names, with _ for hyphens. Words: and, or, not, in,
==, !=, <, <=, >, >=, matches (https://expr-lang.org/docs/language-definition).
What a row does not have is no number, and nothing compares to it: a gate for
rows without a ratio is ` + "`missing`" + `.`
}

func (a *app) compare(ctx context.Context, dirA, dirB string, f *compareFlags) error {
	opt, err := f.options()
	if err != nil {
		return err
	}
	if dirA, dirB := a.given(dirA), a.given(dirB); sameFolder(dirA, dirB) {
		a.say("%s and %s are the same folder: this compares a result with itself", dirA, dirB)
	}
	var sides [2]compare.Side
	for i, dir := range []string{dirA, dirB} {
		if sides[i], err = a.side(ctx, dir, &opt); err != nil {
			return err
		}
	}
	var gates []*compare.Gate
	for i, g := range f.gates {
		name := "--gate"
		if len(f.gates) > 1 {
			name += "[" + strconv.Itoa(i+1) + "]"
		}
		gate, err := compare.NewGate(name, g, sides[0].Study, sides[1].Study)
		if err != nil {
			return coded(exitUsage, "%w", err)
		}
		gates = append(gates, gate)
	}
	res, err := compare.Compare(sides[0], sides[1], opt)
	var refusal *compare.Refusal
	if errors.As(err, &refusal) {
		return coded(exitUsage, "%w", err)
	} else if err != nil {
		return err
	}
	breaches, err := res.Check(gates)
	if err != nil {
		return coded(exitUsage, "%w", err)
	}
	if f.junit != "" {
		if err := writeWhole(ctx, f.junit, func(w io.Writer) error {
			return junit.Write(w, res, breaches, junit.Options{Hostname: hostname(sides[1]), Time: sides[1].Began(), Gates: f.gates})
		}); err != nil {
			return err
		}
	}
	return a.printCompare(res, f, breaches)
}

func (a *app) printCompare(res *compare.Result, f *compareFlags, breaches []compare.Breach) error {
	var err error
	switch {
	case f.json:
		err = export.CompareJSON(a.stdout, res, f.gates, breaches)
	case f.csv:
		err = export.CompareCSV(a.stdout, res, breaches)
	default:
		err = text.WriteCompare(a.stdout, res, text.CompareOptions{Options: a.textOptions(""), All: f.all, Study: f.sort == "study",
			Gates: len(f.gates), Breaches: breaches})
	}
	if err != nil {
		return err
	}
	if len(breaches) == 0 {
		if len(f.gates) > 0 && res.Comparable() == 0 {
			return coded(exitGate, "%s", text.NothingHeld(res))
		}
		return nil
	}
	rows := make(map[int]bool)
	for _, b := range breaches {
		rows[b.Row] = true
	}
	msg := fmt.Sprintf("%d of %d rows break a gate", len(rows), len(res.Rows))
	if f.json || f.csv { // else it is printed already
		for _, b := range breaches {
			msg += fmt.Sprintf("\n  %s: %s", b.Gate, text.ChangeLine(&res.Rows[b.Row]))
		}
	}
	return coded(exitGate, "%s", msg)
}

// options checks the flags.
func (f *compareFlags) options() (compare.Options, error) {
	opt := compare.Options{Question: compare.Question(f.question), Responses: f.responses, Only: make(map[string][]string)}
	if f.json && f.csv {
		return opt, coded(exitUsage, "write either --json or --csv")
	}
	if !slices.Contains(compare.Questions(), opt.Question) {
		return opt, coded(exitUsage, "--question is auto, cost or level, not %q", f.question)
	}
	if f.sort != "effect" && f.sort != "study" {
		return opt, coded(exitUsage, "--sort is effect or study, not %q", f.sort)
	}
	var err error
	if opt.FDR, err = share("fdr", f.fdr); err != nil {
		return opt, err
	}
	if opt.FDR == 0 {
		return opt, coded(exitUsage, "--fdr 0 would let nothing be changed; 5%% is usual")
	}
	if f.margin != "" {
		m, err := share("margin", f.margin)
		if err != nil {
			return opt, err
		}
		opt.Margin = &m
	}
	only, err := onlyLevels(f.only)
	for _, l := range only {
		opt.Only[l.Factor] = append(opt.Only[l.Factor], l.Value)
	}
	return opt, err
}

// sameFolder reports whether two paths lead to one folder.
func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// share reads a flag from 0 to under 1, also in per cent.
func share(flag, s string) (float64, error) {
	by := 1.0
	n, pc := strings.CutSuffix(s, "%")
	if pc {
		by = 100
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
	if v /= by; err != nil || math.IsNaN(v) || v < 0 || v >= 1 {
		return 0, coded(exitUsage, "--%s is a share from 0 to under 100%%, such as 5%% or 0.05, not %q", flag, s)
	}
	return v, nil
}

// side reads one results folder, and tells the options what its responses and
// parameters are.
func (a *app) side(ctx context.Context, dir string, opt *compare.Options) (compare.Side, error) {
	side := compare.Side{Name: a.given(dir)}
	if !store.Exists(dir) {
		return side, coded(exitUsage, "%s is no results folder; `tare run STUDY` makes one", dir)
	}
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		return side, err
	}
	defer func() { _ = db.Close() }()
	var cat study.Catalogue
	if side.Study, cat, err = a.storedStudy(dir); err != nil {
		return side, err
	}
	// What an analysis reads, and all facts: a runtime of another version is told by them.
	for t, err := range db.Some(ctx, store.Pick{Labels: analyse.LabelNames(), NoHistograms: true, Facts: []string{""}}) {
		if err != nil {
			return side, err
		}
		side.Trials = append(side.Trials, t)
	}
	if side.Skips, err = db.Skips(); err != nil {
		return side, err
	}
	if side.Sessions, err = db.Sessions(); err != nil {
		return side, err
	}
	describeSide(opt, cat)
	damage, err := damageWarnings(ctx, db)
	for _, w := range damage {
		side.Damage = append(side.Damage, w.Code+": "+w.Text)
	}
	return side, err
}

// describeSide adds what a side's catalogue knows to what the other's does: imported
// results have workloads of their own.
func describeSide(opt *compare.Options, cat study.Catalogue) {
	known, params := opt.Describe, opt.Params
	own := responsesOf(cat)
	opt.Describe = func(w study.Workload) []record.Response {
		var out []record.Response
		if cat.Workloads[w.Kind].Responses != nil {
			out = slices.Clone(own(w))
		}
		if known != nil {
			for _, r := range known(w) {
				if !slices.ContainsFunc(out, func(o record.Response) bool { return o.Name == r.Name }) {
					out = append(out, r)
				}
			}
		}
		return out
	}
	opt.Params = func(w study.Workload) param.Values {
		info, ok := cat.Workloads[w.Kind]
		if !ok && params != nil {
			return params(w)
		}
		v, err := param.Fill(info.Params, w.Params)
		if err != nil {
			return w.Params // of an older tare
		}
		return v
	}
}

func hostname(s compare.Side) string {
	if len(s.Sessions) == 0 {
		return ""
	}
	return s.Sessions[len(s.Sessions)-1].Host.Hostname
}
