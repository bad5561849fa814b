package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot/vg"

	"tare/param"
	"tare/report/plot"
	"tare/report/words"
	"tare/store"
)

type plotFlags struct {
	by, responses, only              []string
	kind, value, format, size, theme string
	output                           string
	dpi                              int
	points, json                     bool
}

func (a *app) plotVerb() *cobra.Command {
	var f plotFlags
	cmd := &cobra.Command{
		Use:   "plot DIR [--by FACTOR...]",
		Short: "Draw every graph of a study at once",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, by, err := plotArgs(args, f.by)
			if err != nil {
				return err
			}
			f.by = by
			return a.plot(cmd.Context(), dir, f)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.by, "by", nil, "factors of x axis, colour and hatching: --by size sandbox connections")
	fl.StringVar(&f.kind, "kind", "", "bar, line, heat, dot or grid (default: line where x has three numbers or more, else bar)")
	fl.StringVar(&f.value, "value", "", "level or cost (default: level, cost where units differ)")
	fl.StringArrayVar(&f.only, "only", nil, "draw only these levels: "+onlyHelp)
	fl.StringSliceVar(&f.responses, "responses", nil, "draw only these responses")
	fl.BoolVar(&f.points, "points", false, "also show each block as a dot")
	fl.StringVar(&f.format, "format", "svg", "svg, png or pdf")
	fl.StringVar(&f.size, "size", "8x5in", "size of a graph, in in, cm or mm; a graph with many cells grows")
	fl.IntVar(&f.dpi, "dpi", 150, "pixels per inch, for png")
	fl.StringVar(&f.theme, "theme", "light", strings.Join(plot.Themes(), ", ")+" (greys and hatching)")
	fl.StringVarP(&f.output, "output", "o", "", "write to this directory (default DIR/plots)")
	fl.BoolVar(&f.json, "json", false, "print what was written, and what each file shows")
	for flag, words := range map[string][]string{"kind": {"bar", "line", "heat", "dot"}, "value": {"level", "cost"}, "format": {"svg", "png", "pdf"}, "theme": plot.Themes()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	}
	for flag, complete := range map[string]cobra.CompletionFunc{"by": a.completeBy(nil), "only": a.completeOnly(plot.FactorResponse), "responses": a.completeResponses()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete)
	}
	cmd.ValidArgsFunction = a.completePlotArgs(&f.by)
	return cmd
}

// plotArgs takes the results folder out of the arguments: the first, or the last
// if `--by F1 F2 DIR` put it there. The others are further factors of --by.
func plotArgs(args, by []string) (dir string, factors []string, err error) {
	last := len(args) - 1
	switch {
	case len(args) == 0:
		return "", nil, coded(exitUsage, "tare plot takes a results folder; see `tare plot --help`")
	case len(args) > 1 && len(by) == 0:
		return "", nil, coded(exitUsage, "tare plot takes one results folder; factors follow --by")
	}
	if _, err := store.StampOf(args[0]); err != nil {
		if _, err := store.StampOf(args[last]); err == nil {
			return args[last], append(by, args[:last]...), nil
		}
	}
	return args[0], append(by, args[1:]...), nil
}

func (a *app) plot(ctx context.Context, dir string, f plotFlags) error {
	opt, out, err := f.options()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := analyseResults(ctx, dir, figures)
	if err != nil {
		return err
	}
	a.tellDamage(dir, r.damage)
	src := plot.Source{Study: r.study, Result: r.result, Trials: r.trials, Hosts: r.hosts(), Tare: versionText()}
	figs, notes, err := plot.Build(src, opt)
	var unknown *plot.UnknownError
	var usage *plot.UsageError
	switch {
	case errors.As(err, &unknown), errors.As(err, &usage):
		return coded(exitUsage, "%w", err)
	case err != nil:
		return err
	case len(figs) == 0:
		return coded(exitUsage, "%s", strings.Join(notes, "; "))
	}
	if out.Dir = f.output; out.Dir == "" {
		out.Dir = a.plotsOf(dir)
	}
	if _, ok := a.stderr.Terminal(); ok {
		out.Progress = func(done, all int) { a.stderr.Rewrite(fmt.Sprintf("%d of %d graphs", done, all)) }
	}
	files, err := plot.Write(ctx, figs, out, src)
	if out.Progress != nil {
		a.stderr.Rewrite("")
	}
	if err != nil && ctx.Err() != nil {
		return coded(exitInterrupted, "interrupted; the graphs so far are in %s, without an index", out.Dir)
	} else if err != nil {
		return err
	}
	others, err := plot.Others(out.Dir, files)
	if err != nil {
		notes = append(notes, err.Error()) // the graphs are there
	}
	if f.json {
		return a.printJSON(map[string]any{"dir": out.Dir, "index": "index.html", "files": files, "others": append([]string{}, others...), "notes": append([]string{}, notes...)})
	}
	if len(others) > 0 {
		notes = append(notes, fmt.Sprintf("%s in %s: from an earlier call, and not in this call's index; --json lists them", words.Count(len(others), "other picture"), out.Dir))
	}
	for _, n := range notes {
		a.note("%s", n)
	}
	a.line("%s: %s", words.Count(len(files), "graph"), filepath.Join(out.Dir, "index.html"))
	return nil
}

// options reads the flags.
func (f *plotFlags) options() (plot.Options, plot.Output, error) {
	opt := plot.Options{By: f.by, Kind: plot.Graph(f.kind), Value: plot.Value(f.value), Responses: f.responses}
	out := plot.Output{Format: f.format, DPI: f.dpi, Style: plot.Style{Points: f.points}}
	for _, c := range []struct {
		flag, value string
		words       []string
	}{
		{"kind", f.kind, []string{"bar", "line", "heat", "dot", "grid"}}, {"value", f.value, []string{"level", "cost"}},
		{"format", f.format, []string{"svg", "png", "pdf"}}, {"theme", f.theme, plot.Themes()},
	} {
		if !slices.Contains(c.words, c.value) && (c.value != "" || c.flag == "format" || c.flag == "theme") {
			return opt, out, coded(exitUsage, "no --%s %q; %s", c.flag, c.value, param.Suggest(c.value, c.words))
		}
	}
	var err error
	if opt.Only, err = onlyLevels(f.only); err != nil {
		return opt, out, err
	}
	out.Style.Theme, _ = plot.NewTheme(f.theme)
	if f.dpi < 20 || f.dpi > 1200 {
		return opt, out, coded(exitUsage, "--dpi %d is out of range; write 20 to 1200", f.dpi)
	}
	out.Style.Width, out.Style.Height, err = paperSize(f.size)
	return opt, out, err
}

var sizePattern = regexp.MustCompile(`^([0-9.]+) *x *([0-9.]+) *(in|cm|mm)$`)

// paperSize reads 8x5in, 16x10cm, 160x100mm.
func paperSize(text string) (w, h vg.Length, err error) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, coded(exitUsage, "cannot read --size %s; write width, height and unit, such as 8x5in or 16x10cm", text)
	}
	unit := map[string]vg.Length{"in": vg.Inch, "cm": vg.Centimeter, "mm": vg.Millimeter}[m[3]]
	x, err1 := strconv.ParseFloat(m[1], 64)
	y, err2 := strconv.ParseFloat(m[2], 64)
	w, h = vg.Length(x)*unit, vg.Length(y)*unit
	if err1 != nil || err2 != nil || w < 3*vg.Inch || h < 2.5*vg.Inch || w > 60*vg.Inch || h > 60*vg.Inch {
		return 0, 0, coded(exitUsage, "--size %s is out of range; write from 3x2.5in (7.7x6.4cm) to 60x60in", text)
	}
	return w, h, nil
}
