package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/param"
	"tare/report/words"
	"tare/site"
	"tare/study"
	"tare/workload"
	workloadall "tare/workload/all"
)

type initFlags struct {
	weighFlags
	commandTexts, shipped []string
	output                string
	force                 bool
	given                 func(flag string) bool
}

func (a *app) initVerb() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a study file, from a few questions",
		Args:  exactly(0, "no arguments; the command to weigh is --command"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given, f.timeout, f.warmup = cmd.Flags().Changed, "1m", -1
			var in io.Reader
			if term.IsTerminal(int(os.Stdin.Fd())) {
				in = os.Stdin
			}
			return a.initStudy(cmd.Context(), f, in)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.commandTexts, "command", nil, "weigh this command (repeatable: side by side)")
	fl.StringVar(&f.server, "server", "", "weigh this server, with --load or --http")
	fl.StringVar(&f.load, "load", "", "with --server: the command that loads it; {server} is its address")
	fl.StringVar(&f.http, "http", "", "with --server: what the built-in client asks for, PORT/PATH or a URL")
	fl.StringVar(&f.ready, "ready", "", "with --server: it is ready at tcp:PORT, http:PORT/PATH or output:TEXT (with --http: when that answers)")
	fl.StringSliceVar(&f.shipped, "workload", nil, "weigh workloads that tare ships, such as net,fio (see `tare list workloads`)")
	fl.StringSliceVar(&f.in, "in", nil, "sandboxes, such as runc,runsc-systrap,vm (default all that work here)")
	fl.StringVar(&f.cpus, "cpus", "", "processor time that the workload may use, in cores, such as 1.5 (default no limit)")
	fl.StringVar(&f.memory, "memory", "", "memory that the sandbox may use, such as 512MiB (default no limit)")
	budgetOrFor(fl, &f.within, "5m")
	fl.StringVarP(&f.output, "output", "o", "study.yaml", "write this file")
	fl.BoolVar(&f.force, "force", false, "overwrite an existing file")
	cmd.MarkFlagsMutuallyExclusive("command", "server", "workload")
	_ = cmd.RegisterFlagCompletionFunc("in", completeKinds)
	_ = cmd.RegisterFlagCompletionFunc("workload", completeShipped)
	return cmd
}

// initStudy runs the verb: 1. flags, and answers where in is a terminal, say what is wanted; 2. a
// study is made of that, as weigh makes one, and checked as plan checks it; 3. it is written.
func (a *app) initStudy(ctx context.Context, f initFlags, in io.Reader) error {
	if _, err := os.Lstat(f.output); err == nil && !f.force { // before anything is asked
		return coded(exitUsage, "%s already exists; name another with -o, or overwrite it with --force", f.output)
	}
	if !f.given("in") {
		a.sandboxes() // before the first question: an ordinary user's tare starts again there
	}
	cat, err := offered()
	if err != nil {
		return err
	}
	_, kinds, err := kindsFrom("", nil, nil)
	if err != nil {
		return err
	}
	q := &questions{app: a, flags: f, in: in, make: func(f initFlags) (string, *weighing, error) { return f.draft(kinds, cat) }}
	if err := q.what(); err != nil {
		return err
	}
	_, w, err := q.make(q.flags)
	if err != nil {
		return err
	}
	if !f.given("in") {
		if q.flags.in, err = a.working(ctx, w.sandboxes, cat); err != nil {
			return err
		}
	}
	if err := q.how(); err != nil {
		return err
	}
	text, w, err := q.make(q.flags)
	if err != nil {
		return err
	}
	if err := q.flags.write(a, text); err != nil || f.output == "-" {
		return err
	}
	a.line("%s: %s in %s, for %s at most", f.output, w.label, words.List(w.sandboxes), q.flags.within)
	a.line("next: tare plan %[1]s, then tare run %[1]s", words.Path(f.output))
	return nil
}

// draft is the study, and what it was made of. A command that needs a shell gets one.
func (f initFlags) draft(kinds []string, cat study.Catalogue) (text string, w *weighing, err error) {
	within, err := duration("budget", f.within)
	if err != nil {
		return "", nil, err
	}
	d := &draft{file: f.output}
	if f.output == "-" {
		d.file = "FILE"
	}
	args := []string{"true"} // without a command: another part takes its place
	if len(f.shipped) > 0 {
		if d.shipped, err = shippedNamed(f.shipped); err != nil {
			return "", nil, err
		}
	}
	for i, c := range f.commandTexts {
		if i == 0 {
			args = nil
		} else {
			args = append(args, "--")
		}
		args = append(args, c)
	}
	if f.server != "" {
		args = nil
	}
	for _, shell := range []string{"", "true"} {
		g := f.weighFlags
		g.shell = shell
		if w, err = g.weighing(args, kinds, cat, here()); err != nil {
			return "", nil, err
		}
		w.draft = d
		if len(d.shipped) > 0 {
			w.label = label(f.shipped)
		}
		text = w.study(timing{turns: mostTurns, fill: turnTime, limit: time.Minute, warmup: 1, budget: within})
		if _, err = parsed(text, cat); err == nil || len(f.commandTexts) == 0 || !strings.Contains(err.Error(), "give --shell") {
			return text, w, err
		}
	}
	return text, w, err
}

// write writes the file. Without --force it takes the place of nothing.
func (f initFlags) write(a *app, text string) error {
	if f.output == "-" {
		_, err := io.WriteString(a.stdout, text)
		return err //nolint:wrapcheck // a broken pipe
	}
	put := func(out io.Writer) error { _, err := io.WriteString(out, text); return err } //nolint:wrapcheck // it names the file
	if f.force {
		return replaceFile(f.output, put)
	}
	out, err := os.OpenFile(f.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the user names it, and others may read it
	if errors.Is(err, fs.ErrExist) {
		return coded(exitUsage, "%s already exists; name another with -o, or overwrite it with --force", f.output)
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return errors.Join(put(out), out.Close())
}

// working are those of the sandboxes that work here, as far as that can be known: while
// another tare has the host, or where nothing can be tried, none is left out.
func (a *app) working(ctx context.Context, sandboxes []string, cat study.Catalogue) ([]string, error) {
	st, err := parsed("study: init\nfactors: {sandbox: ["+strings.Join(sandboxes, ", ")+"]}\nworkloads: {noop: {}}\n", cat)
	if err != nil {
		return nil, err
	}
	known, err := a.preview(ctx, "", "", clusterFlags{}, site.Request{Study: st, Catalogue: cat}, false)
	var c *codedError
	switch {
	case errors.As(err, &c) && c.code == exitInterrupted:
		return nil, err
	case err == nil:
		for _, s := range known.Skips {
			if k, _ := s.Cell.Get(study.FactorSandbox); k == sandboxes[0] {
				err = errors.New(s.Reason) // nothing can be tried without the baseline
			}
		}
	}
	if err != nil {
		a.say("which sandboxes work here is not known: %v", err)
		return sandboxes[1:], nil
	}
	var missing []string
	for _, s := range known.Skips {
		k, _ := s.Cell.Get(study.FactorSandbox)
		missing = append(missing, k)
	}
	out := slices.DeleteFunc(slices.Clone(sandboxes[1:]), func(k string) bool { return slices.Contains(missing, k) })
	if len(out) == 0 {
		return nil, coded(exitHost, "no sandbox works here; `tare doctor` says why. For another machine, name sandboxes with --in")
	}
	return out, nil
}

// shippedWorkloads are those that need nothing of the user's.
func shippedWorkloads() []workload.Workload {
	return slices.DeleteFunc(workloadall.Workloads(), func(w workload.Workload) bool {
		return slices.Contains([]string{"command", "service", "fault", "noop"}, w.Name())
	})
}

func shippedNames() []string {
	return mapped(shippedWorkloads(), func(w workload.Workload) string { return w.Name() })
}

func completeShipped(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeList(shippedNames(), toComplete)
}

func shippedNamed(names []string) (out []workload.Workload, err error) {
	for i, name := range names {
		n := slices.Index(shippedNames(), name)
		switch {
		case n < 0:
			return nil, coded(exitUsage, "tare ships no workload %q; %s", name, param.Suggest(name, shippedNames()))
		case slices.Contains(names[:i], name):
			return nil, coded(exitUsage, "the workload %s is named twice; name it once", name)
		}
		out = append(out, shippedWorkloads()[n])
	}
	return out, nil
}
