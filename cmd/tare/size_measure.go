package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tare/analyse/overhead"
	"tare/cluster/kubevirt"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/run"
	"tare/site"
	"tare/sizing"
	"tare/study"
)

// measureFlags are those of tare size --measure.
type measureFlags struct {
	asked   bool
	in      []string // empty: the cluster's RuntimeClasses
	sizes   []int
	repeat  int
	wait    bool
	on      string
	cluster clusterFlags
}

func (f *measureFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.asked, "measure", false, "measure what idle sandboxes cost beside their workload, and print patches")
	fl.StringSliceVar(&f.in, "in", []string{"vm", "runsc-systrap"}, "with --measure: sandboxes; with --on k8s, the default is all RuntimeClasses")
	fl.IntSliceVar(&f.sizes, "sizes", []int{512, sizing.DefaultMemoryMiB}, "with --measure: sizes of the machine in MiB; with --on k8s, memory limits of the pod")
	fl.IntVar(&f.repeat, "repeat", 3, "with --measure: sandboxes started of each kind and size; 3 is the least for an interval")
	fl.BoolVar(&f.wait, "wait", false, "with --measure: "+waitHelp)
	fl.StringVar(&f.on, "on", "", "with --measure: k8s measures the pods of a Kubernetes cluster (default: this host)")
	f.cluster.addImage(fl)
	f.cluster.addAtOnce(fl)
	fl.Lookup("observe").Usage = "with --on k8s: implied, because only privileged pods can read a pod's memory on its node"
	for _, pod := range podFlags() {
		cmd.MarkFlagsMutuallyExclusive("measure", pod)
	}
	_ = cmd.RegisterFlagCompletionFunc("in", completeKinds)
}

// study is the text of the study of one sandbox in each size. Its program sleeps, and wakes up
// so rarely that this is not a load.
func (f *measureFlags) study(cat study.Catalogue) string {
	sizes := ""
	if f.on == onCluster {
		sizes = fmt.Sprintf("\n  %s: [%s]", study.FactorMemoryLimit, strings.Join(mapped(f.sizes, func(mib int) string { return strconv.Itoa(mib) + "MiB" }), ", "))
	} else if slices.ContainsFunc(f.in, func(name string) bool {
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

// measureAt is where to measure, and what a study there can be made of. On a cluster, the sandboxes are
// RuntimeClasses, and observers read their pods.
func (a *app) measureAt(ctx context.Context, f *measureFlags) (site.Site, study.Catalogue, error) {
	if f.on != "" && f.on != onCluster {
		return nil, study.Catalogue{}, coded(exitUsage, "--on %s: write --on k8s for a cluster, or leave it out to measure this host", f.on)
	}
	f.cluster.observe = f.cluster.observe || f.on == onCluster
	where, _, err := a.siteOn(ctx, f.on, "", "", f.cluster)
	if err != nil {
		return nil, study.Catalogue{}, err
	}
	if f.on == "" {
		cat, err := offered()
		return where, cat, err
	}
	cat, err := a.offers()
	if err != nil {
		return nil, cat, err
	}
	if len(f.in) == 0 {
		f.in = slices.DeleteFunc(slices.Sorted(maps.Keys(cat.Sandboxes)), func(name string) bool { return name == cat.Native || name == kubevirt.Word })
	}
	if len(f.in) == 0 {
		return nil, cat, coded(exitHost, "the cluster has no RuntimeClass, so there is no overhead to measure; create one, such as gvisor or kata")
	}
	return where, cat, nil
}

// measureOverhead runs a study of idle sandboxes through the engine and prints what they cost.
func (a *app) measureOverhead(ctx context.Context, f measureFlags, asJSON bool) error {
	if f.repeat < 1 || f.repeat > 100 {
		return coded(exitUsage, "--repeat: %d is not possible; write 1 to 100", f.repeat)
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	where, cat, err := a.measureAt(ctx, &f)
	if err != nil {
		return err
	}
	slices.Sort(f.sizes)
	f.sizes = slices.Compact(f.sizes)
	for _, name := range f.in {
		if name == cat.Native {
			return coded(exitUsage, "--in %s: the others are compared with it, so it is measured in any case; leave it out", name)
		}
		if _, known := cat.Sandboxes[name]; !known {
			return coded(exitUsage, "--in %s: no sandbox has this name; %s", words.Shell(name), param.Suggest(name, slices.Sorted(maps.Keys(cat.Sandboxes))))
		}
	}
	st, err := parsed(f.study(cat), cat)
	if err != nil { // it is about a size, which is a factor in the study and --sizes on the command line
		flag := strings.NewReplacer(overhead.FactorMemory+" = ", "--sizes ", study.FactorMemoryLimit+" = ", "--sizes ")
		return coded(exitUsage, "%s", flag.Replace(err.Error()))
	}
	t := a.newTries(ctx, asJSON)
	s, err := where.Open(ctx, site.Request{Study: st, Catalogue: cat, Wait: f.wait, Trying: t.begin})
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
	ended := (&run.Engine{Session: s, Store: &kept}).Run(ctx, plan.New(st, skips, run.Nodes(s)))
	if ended != nil && !errors.Is(ended, site.ErrInterrupted) {
		return ended
	}
	return a.printIdle(&kept, ended != nil, where.About(), asJSON)
}

// printIdle prints what idle sandboxes cost, or what was measured of that before an interruption.
func (a *app) printIdle(kept *idleTrials, interrupted bool, at site.About, asJSON bool) (err error) {
	rows := slices.DeleteFunc(overhead.Of(kept.seen), func(r overhead.Row) bool { return r.HostMemory.N == 0 }) // whose baseline is missing
	for _, why := range kept.failed {
		a.note("%s", why)
	}
	switch {
	case len(rows) == 0 && interrupted:
		return coded(exitInterrupted, "interrupted before a sandbox and its baseline were measured, so there is nothing to print")
	case len(rows) == 0:
		return coded(exitHost, "no sandbox could be measured; `%s` says what is missing", strings.TrimSpace("tare doctor "+at.Flag+" "+at.Reach))
	case asJSON:
		err = a.printJSON(rows)
	default:
		a.printOverheads(rows)
	}
	switch {
	case err != nil:
		return err
	case interrupted:
		return coded(exitInterrupted, "interrupted; the figures cover what was measured until then; the same command starts from the beginning")
	case len(kept.failed) > 0:
		return coded(exitTrials, "%d of the trials failed, so the figures come from fewer repetitions", len(kept.failed))
	}
	return nil
}

// printOverheads prints the table, and patches.
func (a *app) printOverheads(rows []overhead.Row) {
	size, pods := "machine", slices.ContainsFunc(rows, func(r overhead.Row) bool { return r.Class != "" })
	if pods {
		size = "memory limit"
	}
	table := [][]string{{"sandbox", size, "guest memory", "host memory", "guest CPU", "host CPU", "n"}}
	emulated := false
	for i := range rows {
		r := &rows[i]
		name, machine := r.Sandbox, "-"
		if n := max(r.Size, r.Limit); n > 0 {
			machine = param.FormatSize(n)
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
	a.line("What an idle sandbox takes in addition to its workload: MiB, thousandths of a core, 95 %% intervals")
	for _, line := range table {
		text := ""
		for i, c := range line {
			text += fmt.Sprintf("%-*s  ", widths[i], c)
		}
		a.line("%s", strings.TrimRight(text, " "))
	}
	if pods {
		a.line("host: the pod's cgroup on its node, minus that of the same program in a pod of the default class.")
		a.line("guest: the memory that a virtual machine shares with the host's processes and has touched, and the CPU time of its vCPUs.")
	} else {
		a.line("guest: the machine's size minus what its workload can get, and the CPU time of its vCPUs. host: the rest of the sandbox's cgroup.")
	}
	if emulated {
		a.line("TCG: software emulates the processor, which takes more CPU, and host memory for translated code, than KVM does.")
	}
	if slices.ContainsFunc(rows, func(r overhead.Row) bool { return r.HostMemory.N < overhead.Least }) {
		a.line("(too few): an interval needs %d repetitions; give --repeat %[1]d or more, and let the study end.", overhead.Least)
	}
	a.printPatches(rows)
	a.line("")
	a.line("The CPU is an idle sandbox's. Under load its helpers take more: run your own workload, and see the CPU by role in the report.")
}

// printPatches prints those of each sandbox's row that needs the most memory, the last of several: they are
// enough for the others.
func (a *app) printPatches(rows []overhead.Row) {
	most := map[string]int{}
	for i := range rows {
		if m, is := most[rows[i].Sandbox]; !is || rows[i].Reserve.PodMemoryMiB >= rows[m].Reserve.PodMemoryMiB {
			most[rows[i].Sandbox] = i
		}
	}
	for i := range rows {
		r := &rows[i]
		if most[r.Sandbox] != i {
			continue
		}
		if len(r.Patches) == 0 {
			a.line("")
			a.line("# %s: it takes no measurable memory beyond that of the default class, so there is no patch", r.Sandbox)
		}
		for _, p := range r.Patches {
			a.line("")
			a.line("# %s: %s", r.Sandbox, p.File)
			for line := range strings.Lines(p.Text) {
				a.line("%s", strings.TrimRight(line, "\n"))
			}
		}
		if r.PageTables > 0 {
			a.line("# podFixed.memory has %s of page tables for a guest that has touched all its memory.", param.FormatSize(r.PageTables))
		}
	}
}

func mib(v float64) string   { return tenths(v / (1 << 20)) }
func milli(v float64) string { return tenths(v * 1000) }

// tenths prints no minus before a zero.
func tenths(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', 1, 64)
}

// interval is a figure as the table has it; nil is none.
func interval(f *overhead.Figure, as func(float64) string) string {
	switch {
	case f == nil:
		return "-"
	case f.N < overhead.Least:
		return as(f.Value) + " (too few)"
	case f.Hi == 0:
		return as(f.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", as(f.Value), as(f.Lo), as(f.Hi))
}
