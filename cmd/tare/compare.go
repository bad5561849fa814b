package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
	"tare/report/words"
	"tare/store"
	"tare/study"
)

// compareFlags are the flags of `tare compare`.
type compareFlags struct {
	question, sort, margin, fdr, junit, power string
	gates, only, responses, a, b              []string
	json, csv, all                            bool
}

func (a *app) compareVerb() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B | --a DIR [--a DIR]... --b DIR [--b DIR]...",
		Short: "Compare results of the same study: before and after",
		Args:  f.checkArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			n := max(1, len(f.a))
			return a.compare(cmd.Context(), args[:n], args[n:], &f)
		},
	}
	run := a.takesBundles(cmd).RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, slices.Concat(f.a, f.b, args)) }
	fl := cmd.Flags()
	fl.StringArrayVar(&f.a, "a", nil, "a results folder of side A; repeat it for results of other days")
	fl.StringArrayVar(&f.b, "b", nil, "a results folder of side B; repeat it for results of other days")
	for _, side := range []string{"a", "b"} {
		_ = cmd.MarkFlagDirname(side) // fails for a flag that is not there
	}
	fl.StringVar(&f.question, "question", string(compare.Auto), "what is compared: auto, cost, level")
	fl.StringArrayVar(&f.gates, "gate", nil, "fail (exit 6) if this is true of any row; may be repeated")
	fl.StringVar(&f.power, "power", "80%", "how likely a gate must be to fail at a true change a third above its limit; if it is less likely, the gate cannot judge (exit 7)")
	fl.StringVar(&f.junit, "junit", "", "write JUnit XML to this file, a test case for each row")
	fl.StringVar(&f.margin, "margin", "", "changes up to this are equivalent, such as 3% (default: the study's)")
	fl.StringVar(&f.fdr, "fdr", "5%", "accepted share of false discoveries among the changed rows")
	fl.StringSliceVar(&f.responses, "responses", nil, "compare only these responses")
	fl.StringArrayVar(&f.only, "only", nil, "compare only cells with these levels: "+onlyHelp)
	fl.BoolVar(&f.all, "all", false, "print rows that did not change too")
	fl.StringVar(&f.sort, "sort", "effect", "order of the rows printed: effect, study")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.csv, "csv", false, "print CSV, a line for each row and question")
	for flag, words := range map[string][]string{"question": {"auto", "cost", "level"}, "sort": {"effect", "study"}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	}
	for flag, complete := range map[string]cobra.CompletionFunc{"only": a.completeOnly(), "responses": a.completeResponses()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete)
	}
	return cmd
}

// gateVariables lists what gates can be made of.
func gateVariables() string {
	var b strings.Builder
	for _, v := range compare.Variables() {
		fmt.Fprintf(&b, "  %-10s %s\n", v.Name, v.Help)
	}
	return b.String()
}

// checkArgs takes a folder for each side, or the flags for several.
func (f *compareFlags) checkArgs(cmd *cobra.Command, args []string) error {
	if len(f.a)+len(f.b) == 0 {
		return exactly(2, "two results folders")(cmd, args)
	}
	switch {
	case len(args) > 0:
		return coded(exitUsage, "%q has no flag; with several results a side, write --a or --b before each folder: --a DIR --a DIR --b DIR --b DIR", args[0])
	case len(f.a) == 0 || len(f.b) == 0:
		return coded(exitUsage, "both sides need a results folder: --a DIR --b DIR")
	}
	return nil
}

func (a *app) compare(ctx context.Context, dirsA, dirsB []string, f *compareFlags) error {
	opt, err := f.options()
	if err != nil {
		return err
	}
	var sides [2][]compare.Folder
	var studies []*study.Study
	for i, dirs := range [][]string{dirsA, dirsB} {
		for _, dir := range dirs {
			x, err := a.folder(ctx, dir, &opt)
			if err != nil {
				return err
			}
			sides[i], studies = append(sides[i], x), append(studies, x.Study)
		}
	}
	gates, err := newGates(f.gates, studies...)
	if err != nil {
		return err
	}
	res, err := compare.Compare(sides[0], sides[1], opt)
	var refusal *compare.Refusal
	if errors.As(err, &refusal) && refusal.Copy {
		return coded(exitUnjudged, "%w", err)
	} else if err != nil {
		return coded(exitUsage, "%w", err)
	}
	said, err := gated(res, f.gates, gates, f.power)
	if err != nil {
		return err
	}
	if f.junit != "" {
		if err := writeWhole(ctx, f.junit, func(w io.Writer) error {
			return junit.Write(w, res, said.Breaches, said.Doubts, junit.Options{Hostname: hostname(sides[1][0]), Time: sides[1][0].Began(), Gates: f.gates})
		}); err != nil {
			return err
		}
	}
	return a.printCompare(res, f, &said)
}

func (a *app) printCompare(res *compare.Result, f *compareFlags, said *export.Gated) error {
	var err error
	switch {
	case f.json:
		err = export.CompareJSON(a.stdout, res, said)
	case f.csv:
		err = export.CompareCSV(a.stdout, res, said)
	default:
		err = text.WriteCompare(a.stdout, res, text.CompareOptions{Options: a.textOptions(""), All: f.all, Study: f.sort == "study",
			Gates: f.gates, Breaches: said.Breaches, Doubts: said.Doubts, Held: said.Held})
	}
	if err != nil {
		return err
	}
	return gateError(res, said, f.json || f.csv, "measure both sides")
}

// newGates reads gates over what these studies have.
func newGates(texts []string, studies ...*study.Study) (out []*compare.Gate, err error) {
	for i, g := range texts {
		name := "--gate"
		if len(texts) > 1 {
			name += "[" + strconv.Itoa(i+1) + "]"
		}
		gate, err := compare.NewGate(name, g, studies...)
		if err != nil {
			return nil, coded(exitUsage, "%w", err)
		}
		out = append(out, gate)
	}
	return out, nil
}

// gated says what gates say of a comparison.
func gated(res *compare.Result, texts []string, gates []*compare.Gate, power string) (said export.Gated, err error) {
	said.Gates = texts
	if said.Power, err = share("power", power); err != nil {
		return said, err
	}
	if said.Breaches, err = res.Check(gates); err == nil {
		said.Doubts, err = res.Unjudged(gates, said.Breaches, said.Power)
	}
	if err == nil && res.Comparable() > 0 {
		said.Held, err = res.Promises(gates, said.Breaches, said.Doubts, said.Power)
	}
	if err != nil {
		return said, coded(exitUsage, "%w", err)
	}
	return said, nil
}

// gateError is the error of what gates say, if they say one. It names the rows if list is
// set, and what to do to judge more.
func gateError(res *compare.Result, said *export.Gated, list bool, do string) error {
	rows := make(map[int]bool)
	for _, b := range said.Breaches {
		rows[b.Row] = true
	}
	doubted := make(map[int]bool)
	for _, d := range said.Doubts {
		doubted[d.Row] = true
	}
	switch {
	case len(rows) > 0:
		verb := "break"
		if len(rows) == 1 {
			verb = "breaks"
		}
		msg := fmt.Sprintf("%d of %s %s a gate", len(rows), words.Count(len(res.Rows), "row"), verb)
		if list { // else it is printed already
			for _, b := range said.Breaches {
				msg += fmt.Sprintf("\n  %s: %s", b.Gate, text.ChangeLine(&res.Rows[b.Row]))
			}
		}
		return coded(exitGate, "%s", msg)
	case len(said.Gates) > 0 && res.Comparable() == 0:
		return coded(exitUnjudged, "%s", text.NothingHeld(res))
	case len(doubted) > 0:
		return coded(exitUnjudged, "a gate cannot judge %d of %s; %s", len(doubted), words.Count(len(res.Rows), "row"), text.Remedy(said.Doubts, do))
	}
	return nil
}

// options checks the flags.
func (f *compareFlags) options() (compare.Options, error) {
	opt := compare.Options{Question: compare.Question(f.question), Responses: f.responses, Only: make(map[string][]string)}
	if f.json && f.csv {
		return opt, coded(exitUsage, "write either --json or --csv")
	}
	if !slices.Contains(compare.Questions(), opt.Question) {
		return opt, coded(exitUsage, "--question must be auto, cost or level, not %q", f.question)
	}
	if f.sort != "effect" && f.sort != "study" {
		return opt, coded(exitUsage, "--sort is effect or study, not %q", f.sort)
	}
	var err error
	if opt.FDR, err = share("fdr", f.fdr); err != nil {
		return opt, err
	}
	if opt.FDR == 0 {
		return opt, coded(exitUsage, "with --fdr 0, no row could count as changed; 5%% is usual")
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

// share reads a flag from 0 to under 1, also in per cent.
func share(flag, s string) (float64, error) {
	by := 1.0
	n, pc := strings.CutSuffix(s, "%")
	if pc {
		by = 100
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
	if v /= by; err != nil || math.IsNaN(v) || v < 0 || v >= 1 {
		return 0, coded(exitUsage, "--%s must be a share from 0 to under 100%%, such as 5%% or 0.05, not %q", flag, s)
	}
	return v, nil
}

// folder reads one results folder, and tells the options what its responses and
// parameters are.
func (a *app) folder(ctx context.Context, dir string, opt *compare.Options) (side compare.Folder, err error) {
	r, err := openResults(dir)
	if err != nil {
		return side, err
	}
	defer func() { _ = r.Close() }()
	k, err := r.kept()
	if err != nil {
		return side, err
	}
	// What an analysis reads, and all facts: a runtime of another version is told by them.
	c, err := r.load(ctx, k, store.Pick{Labels: analyse.LabelNames(), NoHistograms: true, Facts: []string{""}}, func(*record.Trial) {})
	describeSide(opt, c.study, c.cat)
	side = compare.Folder{Name: a.given(dir), Study: c.study, Trials: c.trials, Skips: c.skips, Sessions: c.sessions}
	for _, w := range c.damage {
		side.Damage = append(side.Damage, w.Code+": "+w.Text)
	}
	return side, err
}

// describeSide adds what a side's catalogue knows to what the other's does: imported
// results have workloads of their own.
func describeSide(opt *compare.Options, st *study.Study, cat study.Catalogue) {
	known, params := opt.Describe, opt.Params
	own := responsesOf(st, cat)
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

func hostname(s compare.Folder) string {
	if len(s.Sessions) == 0 {
		return ""
	}
	return s.Sessions[len(s.Sessions)-1].Host.Hostname
}
