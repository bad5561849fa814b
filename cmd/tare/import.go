package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tare/imports"
	"tare/imports/clusterbuster"
	"tare/imports/csv"
	"tare/imports/pbench"
	"tare/report/words"
	"tare/store"
)

func (a *app) importVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FORMAT SOURCE... --results DIR",
		Short: "Import the results of another tool",
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return coded(exitUsage, "which format? `tare import csv`, `tare import pbench` or `tare import clusterbuster`")
			}
			return coded(exitUsage, "no format %q; there are csv, pbench and clusterbuster", args[0])
		},
	}
	cmd.AddCommand(a.importCSV(), a.importPbench(), a.importClusterbuster())
	return cmd
}

// sources are arguments of the form [SANDBOX=]PATH.
func sources(args []string) (names, paths []string) {
	for _, arg := range args {
		name, path, ok := strings.Cut(arg, "=")
		if _, err := os.Stat(arg); !ok || err == nil || strings.ContainsAny(name, `/\`) {
			name, path = "", arg
		}
		names, paths = append(names, name), append(paths, path)
	}
	return names, paths
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return coded(exitUsage, "%s takes %s; see `%s --help`", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func resultsFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVarP(dir, "results", "o", "", "the results folder to make")
}

func (a *app) importCSV() *cobra.Command {
	var f struct {
		dir, compare, baseline, study string
		maps, consts, better          []string
	}
	cmd := &cobra.Command{
		Use:   "csv FILE --map ROLE=COLUMN,... --results DIR",
		Short: "Import a CSV file in long form, a row for each figure",
		Args:  exactly(1, "one CSV file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := csv.Mapping{}
			for _, pair := range f.maps {
				var err error
				if strings.HasSuffix(pair, ".yaml") && !strings.Contains(pair, "=") {
					var text []byte
					if text, err = mappingText(pair, "columns: {value: COLUMN}"); err == nil {
						m, err = csv.ParseMapping(pair, text)
					}
				} else {
					err = m.Column(pair)
				}
				if err != nil {
					return coded(exitUsage, "%w", err)
				}
			}
			for _, pairs := range []struct {
				list []string
				add  func(string) error
			}{{f.consts, m.Constant}, {f.better, m.Direction}} {
				for _, pair := range pairs.list {
					if err := pairs.add(pair); err != nil {
						return coded(exitUsage, "%w", err)
					}
				}
			}
			for flag, dst := range map[*string]*string{&f.compare: &m.Compare, &f.baseline: &m.Baseline, &f.study: &m.Study} {
				if *flag != "" {
					*dst = *flag
				}
			}
			in, err := os.Open(args[0])
			if err != nil {
				return coded(exitUsage, "cannot read the CSV file: %w; name another one", err)
			}
			defer func() { _ = in.Close() }()
			if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
				return coded(exitUsage, "%s is not a plain file; name one", args[0])
			}
			set, err := csv.Read(args[0], in, m)
			return a.keep(cmd.Context(), set, err, f.dir)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.maps, "map", nil, "ROLE=COLUMN,... or FILE.yaml (repeatable)")
	fl.StringSliceVar(&f.consts, "const", nil, "ROLE=TEXT,...: the same for every row (repeatable)")
	fl.StringSliceVar(&f.better, "better", nil, "RESPONSE=higher|lower|neither,...: where the unit does not tell (repeatable)")
	fl.StringVar(&f.compare, "compare", "", "the factor that is compared (default sandbox)")
	fl.StringVar(&f.baseline, "baseline", "", "its level that the others are compared with (default the first)")
	fl.StringVar(&f.study, "study", "", "the study's name")
	resultsFlag(cmd, &f.dir)
	return cmd
}

// mappingText reads the file of --map. example is a line that such a file has.
func mappingText(name, example string) ([]byte, error) {
	text, err := imports.ReadFile(name, imports.MaxMapping)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--map %s: the file does not exist; give a mapping file, with lines such as `%s`", name, example)
	}
	return text, err //nolint:wrapcheck // it names the file
}

func (a *app) importPbench() *cobra.Command {
	var dir, baseline, mapping string
	cmd := &cobra.Command{
		Use:   "pbench [SANDBOX=]DIR... --results DIR",
		Short: "Import unpacked Pbench result trees",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var m pbench.Mapping
			if mapping != "" {
				text, err := mappingText(mapping, "trees: [{dir: DIR, sandbox: NAME}]")
				if err == nil {
					m, err = pbench.ParseMapping(mapping, text)
				}
				if err != nil {
					return coded(exitUsage, "%w", err)
				}
			}
			names, paths := sources(args)
			trees := m.Trees
			for i := range paths {
				trees = append(trees, pbench.Tree{Dir: paths[i], Sandbox: names[i]})
			}
			if len(trees) == 0 {
				return atLeastOne("one result tree or more")(cmd, nil)
			}
			set, err := pbench.Read(trees, m.Endpoints)
			if err == nil {
				set.Baseline = baseline
			}
			return a.keep(cmd.Context(), set, err, dir)
		},
	}
	cmd.Flags().StringVar(&baseline, "baseline", "", "the sandbox that the others are compared with (default the first)")
	cmd.Flags().StringVar(&mapping, "map", "", "FILE.yaml: trees with their levels, and whose machines the tools ran on")
	resultsFlag(cmd, &dir)
	return cmd
}

func (a *app) importClusterbuster() *cobra.Command {
	var dir, baseline string
	cmd := &cobra.Command{
		Use:   "clusterbuster [SANDBOX=]FILE... --results DIR",
		Short: "Import ClusterBuster's reports of fio and uperf",
		Args:  atLeastOne("one report or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, paths := sources(args)
			var files []clusterbuster.File
			for i := range paths {
				data, err := imports.ReadFile(paths[i], clusterbuster.MaxFile)
				if err != nil {
					return coded(exitUsage, "%w", err)
				}
				files = append(files, clusterbuster.File{Name: paths[i], Sandbox: names[i], Data: data})
			}
			set, err := clusterbuster.Read(files)
			if err == nil {
				set.Baseline = baseline
			}
			return a.keep(cmd.Context(), set, err, dir)
		},
	}
	cmd.Flags().StringVar(&baseline, "baseline", "", "the sandbox that the others are compared with (default the first)")
	resultsFlag(cmd, &dir)
	return cmd
}

// maxWarnings bounds how many warnings about the whole import are shown.
const maxWarnings = 20

// keep writes what was read, and says what it was.
func (a *app) keep(ctx context.Context, set *imports.Set, err error, dir string) error {
	switch {
	case dir == "":
		return coded(exitUsage, "where to? --results DIR names the folder to make")
	case store.Exists(dir):
		return coded(exitUsage, "%s holds results already; imported results have a folder of their own, name a new one with --results", dir)
	case isFile(dir):
		return coded(exitUsage, "%s is a file, and results need a folder; name a new one with --results", dir)
	case err != nil:
		var c *os.PathError
		if errors.As(err, &c) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return coded(exitUsage, "%w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	done, err := set.Write(ctx, dir, versionText(), time.Now())
	if err != nil && ctx.Err() != nil {
		return coded(exitInterrupted, "interrupted; nothing was kept in %s", dir)
	} else if stored := (*imports.StoreError)(nil); errors.As(err, &stored) {
		return err // tare itself failed
	} else if err != nil {
		return coded(exitUsage, "%w", err)
	}
	doubts := 0
	for i := range set.Trials {
		doubts += len(set.Trials[i].Warnings)
	}
	a.line("imported from %s: %s of %s, %s", set.Origin.Tool, words.Count(done.Trials, "trial"), words.Count(done.Cells, "cell"), fmt.Sprint(done.Series)+" time series")
	if done.Missing > 0 {
		a.line("%s of the levels' product %s no trial", words.Count(done.Missing, "cell"), has(done.Missing))
	}
	told := 0
	for _, w := range done.Warnings {
		if w.Code == imports.CodeImported {
			continue
		}
		if told++; told <= maxWarnings {
			a.line("warning: %s", w.Text)
		}
	}
	if more := told - maxWarnings; more > 0 {
		a.line("and %d more; `tare report` lists them", more)
	}
	seen := map[string]bool{}
	for i := range set.Trials {
		for _, w := range set.Trials[i].Warnings {
			if !seen[w.Text] && len(seen) < 10 {
				seen[w.Text] = true
				a.line("warning: %s", w.Text)
			}
		}
	}
	if doubts > len(seen) {
		a.line("%s in all; they are with the trials", words.Count(doubts, "warning"))
	}
	a.line("results in %s; `tare report %s` shows them", dir, words.Path(dir))
	return nil
}

// isFile reports whether path exists and is not a folder.
func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// refuseImported says why imported results are not continued.
func refuseImported(source []byte, what string) error {
	cat, ok := imports.Of(source)
	if !ok {
		return nil
	}
	return coded(exitUsage, "%s is of results imported from %s: imported and measured results are never mixed, so it cannot be run or continued; write a study of your own, and set its results beside with `tare compare`",
		what, cat.Origin.Tool)
}
