package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tare/internal/files"
	"tare/record"
	"tare/report/export"
)

// format is one that `tare export` writes.
type format struct {
	name   string
	binary bool // not for terminals
	write  func(ctx context.Context, r results, w io.Writer) error
}

// formats are all of them. index is the name of OpenSearch's index.
func formats(index *string) []format {
	return []format{
		{"csv", false, func(ctx context.Context, r results, w io.Writer) error {
			return export.TrialsCSV(w, r.All(ctx))
		}},
		{"jsonl", false, func(ctx context.Context, r results, w io.Writer) error {
			return export.JSONLines(w, r.All(ctx))
		}},
		{"parquet", true, func(ctx context.Context, r results, w io.Writer) error {
			return export.Parquet(w, r.All(ctx))
		}},
		{"gobench", false, func(ctx context.Context, r results, w io.Writer) error {
			b, err := r.bench()
			if err != nil {
				return err
			}
			return export.GoBench(w, b, r.All(ctx))
		}},
		{"openmetrics", false, func(ctx context.Context, r results, w io.Writer) error {
			x, err := r.read(ctx, figures)
			if err != nil {
				return err
			}
			return export.OpenMetrics(w, x.result)
		}},
		{"opensearch", false, func(ctx context.Context, r results, w io.Writer) error {
			if err := export.CheckIndex(*index); err != nil {
				return coded(exitUsage, "%w", err)
			}
			k, err := r.kept()
			if err != nil {
				return err
			}
			return export.OpenSearch(w, *index, k.origin(), r.All(ctx))
		}},
		{"vep411", false, func(ctx context.Context, r results, w io.Writer) error {
			x, err := r.read(ctx, figures)
			if err != nil {
				return err
			}
			return export.VEP411(w, x.provenance(), x.result, r.All(ctx))
		}},
	}
}

func (a *app) exportVerb() *cobra.Command {
	var name, file, index string
	all := formats(&index)
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	cmd := &cobra.Command{
		Use:   "export DIR --format FORMAT",
		Short: "Write results for other programs",
		Args:  exactly(1, "one results folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, f := range all {
				if f.name == name {
					return a.export(cmd.Context(), args[0], f, file)
				}
			}
			if name == "" {
				return coded(exitUsage, "which format? --format %s", strings.Join(names, "|"))
			}
			return coded(exitUsage, "no format %q; there are %s", name, strings.Join(names, ", "))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&name, "format", "", strings.Join(names, ", "))
	fl.StringVar(&index, "index", "tare", "with --format opensearch: the index")
	fl.StringVarP(&file, "output", "o", "", "write to this file instead of standard output")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	return cmd
}

func (a *app) export(ctx context.Context, dir string, f format, file string) error {
	if _, ok := a.stdout.Terminal(); ok && f.binary && file == "" {
		return coded(exitUsage, "%s is not for a terminal; name a file with -o FILE", f.name)
	}
	r, err := openResults(dir)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	switch {
	case file == "" && f.binary:
		err = f.write(ctx, r, a.stdout.Raw())
	case file == "":
		err = f.write(ctx, r, a.stdout)
	default:
		err = writeStoppable(ctx, file, func(ctx context.Context, w io.Writer) error { return f.write(ctx, r, w) })
	}
	if err != nil {
		return err
	}
	damage, err := r.damage(ctx)
	a.tellDamage(dir, damage)
	return err
}

// writeStoppable is writeWhole of what takes long: Ctrl-C leaves no half file and
// no piece of one beside it.
func writeStoppable(ctx context.Context, file string, write func(context.Context, io.Writer) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := writeWhole(ctx, file, func(w io.Writer) error { return write(ctx, w) })
	if err != nil && ctx.Err() != nil {
		return coded(exitInterrupted, "interrupted; %s is as it was", file)
	}
	return err
}

// writeWhole makes a file by renaming, so that nobody reads half of it. It writes to what is
// not a regular file, such as /dev/stdout or a pipe, as it is; the end of ctx ends the wait
// for a reader of the pipe.
func writeWhole(ctx context.Context, path string, write func(io.Writer) error) error {
	st, err := os.Stat(path)
	if err != nil {
		if _, lerr := os.Lstat(path); lerr == nil { // such as /dev/stdout without a standard output
			return fmt.Errorf("cannot write %s: it is a dangling link: %w; name another file", path, err)
		}
	}
	if err != nil || st.Mode().IsRegular() {
		return replaceFile(path, write)
	}
	out, err := openPipe(ctx, path)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = out.Close() }) // ends a write that nobody reads
		err = write(out)
		if stop() {
			err = errors.Join(err, out.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// openPipe opens what is not a regular file. A pipe that nobody reads opens only when
// somebody does.
func openPipe(ctx context.Context, path string) (*os.File, error) {
	var out *os.File
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		out, err = os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the user named it
	}()
	select {
	case <-opened:
		return out, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// replaceFile makes a file by renaming. It replaces what is not a regular file, so that a
// FIFO that has the name does not block it.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	target := path
	if st, serr := os.Stat(path); serr == nil && st.Mode().IsRegular() {
		if target, err = filepath.EvalSymlinks(path); err != nil { // a link goes on leading to its file
			return err
		}
	}
	return files.Replace(target, "."+filepath.Base(target)+"-*", 0o644, write)
}

// origin says which results these are.
func (k *kept) origin() export.Origin {
	return export.Origin{Study: k.study.Name, Source: k.meta.StudySource, Changes: k.meta.Overrides, Started: k.meta.Started, Modelled: k.meta.Modelled}
}

// provenance is the origin, and what it was measured with.
func (x *analysed) provenance() export.Provenance {
	p := export.Provenance{Origin: x.origin(), Version: x.meta.TareVersion, Seed: x.meta.Seed, Factors: map[string][]string{}}
	for _, f := range x.study.Factors {
		p.Factors[f.Name] = f.Levels
	}
	for _, s := range x.sessions {
		for _, n := range s.Nodes {
			if !slices.ContainsFunc(p.Nodes, func(o record.Node) bool { return o.Name == n.Name }) {
				p.Nodes = append(p.Nodes, n)
			}
		}
	}
	return p
}

// bench is what the Go benchmark format has beside the trials.
func (r results) bench() (export.Bench, error) {
	k, err := r.kept()
	if err != nil {
		return export.Bench{}, err
	}
	st := k.study
	b := export.Bench{Study: st.Name, Compare: st.Compare, Baseline: st.Baseline, Responses: make(map[string][]record.Response)}
	if b.Sessions, err = r.Sessions(); err != nil {
		return b, err
	}
	known := responsesOf(st, k.cat)
	for i := range st.Strata {
		w := st.WorkloadOf(i)
		for _, r := range known(w) {
			if slices.Contains(w.Responses, r.Name) && !slices.Contains(b.Responses[w.Label], r) {
				b.Responses[w.Label] = append(b.Responses[w.Label], r)
			}
		}
	}
	return b, nil
}
