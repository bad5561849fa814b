package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tare/analyse/overhead"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/run"
	"tare/site"
	"tare/sizing"
	"tare/study"
)

// measureFlags are those of tare size --measure.
type measureFlags struct {
	on     bool
	in     []string
	sizes  []int
	repeat int
	wait   bool
}

func (f *measureFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.on, "measure", false, "measure what idle sandboxes cost here beside their workload, and print patches")
	fl.StringSliceVar(&f.in, "in", []string{"vm", "runsc-systrap"}, "with --measure: sandboxes")
	fl.IntSliceVar(&f.sizes, "sizes", []int{512, sizing.DefaultMemoryMiB}, "with --measure: sizes of the machine in MiB")
	fl.IntVar(&f.repeat, "repeat", 3, "with --measure: sandboxes started of each kind and size; 3 is the least for an interval")
	fl.BoolVar(&f.wait, "wait", false, "with --measure: "+waitHelp)
	for _, pod := range podFlags() {
		cmd.MarkFlagsMutuallyExclusive("measure", pod)
	}
	_ = cmd.RegisterFlagCompletionFunc("in", completeKinds)
}

// study is the text of the study of one sandbox in each size. Its program sleeps, and wakes up
// so rarely that this is not a load.
func (f *measureFlags) study(cat study.Catalogue) string {
	sizes := ""
	if slices.ContainsFunc(f.in, func(name string) bool {
		return slices.ContainsFunc(cat.Sandboxes[name].Params, func(p param.Param) bool { return p.Name == overhead.FactorMemory })
	}) {
		sizes = fmt.Sprintf("\n  %s: [%s]", overhead.FactorMemory, strings.Join(mapped(f.sizes, strconv.Itoa), ", "))
	}
	return fmt.Sprintf(`study: overhead
baseline: %s
factors:
  sandbox: [%s]%s
workloads:
  idle: {kind: noop, sleeps: 8, sleep: 500ms}
stop: {fixed: %d}
sentinel: off
collect: {use: [cgroup, guest, proc], rate: 5Hz}
`, cat.Native, strings.Join(append([]string{cat.Native}, f.in...), ", "), sizes, f.repeat)
}

// idleTrials keeps what was seen of idle sandboxes.
type idleTrials struct {
	seen   []overhead.Observation
	failed []string
	told   func(string, ...any)
}

// Append is of run.Store.
func (k *idleTrials) Append(_ context.Context, t *record.Trial, e record.Evidence) error {
	o, ok := overhead.Observe(t, e)
	switch {
	case ok:
		k.seen = append(k.seen, o)
		k.told("%s, repetition %d: done", t.Cell, t.Block)
	case t.Failure != nil:
		k.failed = append(k.failed, fmt.Sprintf("%s: %s", t.Cell, t.Failure.Reason))
	default:
		k.failed = append(k.failed, fmt.Sprintf("%s: readings of its cgroup, threads or guest are missing", t.Cell))
	}
	return nil
}

// measureOverhead runs a study of idle sandboxes through the engine and prints what they cost.
func (a *app) measureOverhead(ctx context.Context, f measureFlags, asJSON bool) error {
	cat, err := offered()
	if err != nil {
		return err
	}
	if f.repeat < 1 || f.repeat > 100 {
		return coded(exitUsage, "--repeat: %d is not possible; write 1 to 100", f.repeat)
	}
	slices.Sort(f.sizes)
	st, err := parsed(f.study(cat), cat)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	t := a.newTries(ctx, asJSON)
	s, err := a.sandboxes().Open(ctx, site.Request{Study: st, Catalogue: cat, Wait: f.wait, Trying: t.begin})
	if err := t.interrupted(err); err != nil {
		return err
	}
	defer s.Close()
	skips := s.Preview().Skips
	a.printSkips(skips)
	kept := idleTrials{told: func(string, ...any) {}}
	if !asJSON {
		kept.told = a.say
	}
	if err := (&run.Engine{Session: s, Store: &kept}).Run(ctx, plan.New(st, skips, run.Nodes(s))); err != nil {
		return err
	}
	rows := overhead.Of(kept.seen)
	for _, why := range kept.failed {
		a.note("%s", why)
	}
	if len(rows) == 0 {
		return coded(exitHost, "no sandbox could be measured here; `tare doctor` says what is missing")
	}
	if asJSON {
		err = a.printJSON(rows)
	} else {
		a.printOverheads(rows)
	}
	if err == nil && len(kept.failed) > 0 {
		return coded(exitTrials, "%d of the trials failed, so the figures are of fewer repetitions", len(kept.failed))
	}
	return err
}

// printOverheads prints the table, and the patches of each sandbox's largest size.
func (a *app) printOverheads(rows []overhead.Row) {
	table := [][]string{{"sandbox", "machine", "guest memory", "host memory", "guest CPU", "host CPU", "n"}}
	emulated := false
	for i := range rows {
		r := &rows[i]
		name, machine := r.Sandbox, "-"
		if r.Size > 0 {
			machine = param.FormatSize(r.Size)
		}
		if r.Emulated {
			name, emulated = name+" (TCG)", true
		}
		table = append(table, []string{name, machine, interval(r.GuestMemory, mib), interval(&r.HostMemory, mib),
			interval(r.GuestCPU, milli), interval(&r.HostCPU, milli), strconv.Itoa(r.HostMemory.N)})
	}
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, c := range line {
			widths[i] = max(widths[i], len(c))
		}
	}
	a.line("What an idle sandbox takes beside its workload: MiB, thousandths of a core, 95 %% intervals")
	for _, line := range table {
		text := ""
		for i, c := range line {
			text += fmt.Sprintf("%-*s  ", widths[i], c)
		}
		a.line("%s", strings.TrimRight(text, " "))
	}
	a.line("guest: the machine's size less what its workload can get; its vCPUs. host: the rest of the sandbox's cgroup.")
	if emulated {
		a.line("TCG: software emulates the processor, which takes more CPU, and host memory for translated code, than KVM does.")
	}
	if rows[0].HostMemory.N < 3 {
		a.line("An interval needs --repeat 3 or more.")
	}
	for i := range rows {
		r := &rows[i]
		if i+1 < len(rows) && rows[i+1].Sandbox == r.Sandbox {
			continue // a larger one follows, and is enough for this one
		}
		for _, p := range r.Patches {
			a.line("")
			a.line("# %s: %s", r.Sandbox, p.File)
			for line := range strings.Lines(p.Text) {
				a.line("%s", strings.TrimRight(line, "\n"))
			}
		}
		if r.Size > 0 {
			a.line("# podFixed.memory has %s of page tables for a guest that has touched all its memory.", param.FormatSize(r.PageTables))
		}
	}
	a.line("")
	a.line("The CPU is an idle sandbox's. Under load its helpers take more: run your own workload, and see the CPU by role in the report.")
}

func mib(v float64) string   { return strconv.FormatFloat(v/(1<<20), 'f', 1, 64) }
func milli(v float64) string { return strconv.FormatFloat(v*1000, 'f', 1, 64) }

// interval is a figure as the table has it; nil is none.
func interval(f *overhead.Figure, as func(float64) string) string {
	switch {
	case f == nil:
		return "-"
	case f.Hi == 0:
		return as(f.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", as(f.Value), as(f.Lo), as(f.Hi))
}
