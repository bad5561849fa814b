package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/stat"
	"tare/param"
	"tare/record"
	"tare/report/text"
)

type adviseFlags struct {
	json  bool
	patch string
	only  []string
	from  []string

	container string

	verify, dry, wait bool
	data              string
	blocks            int
	budget            time.Duration
}

func (a *app) adviseVerb() *cobra.Command {
	var f adviseFlags
	cmd := &cobra.Command{
		Use:   "advise DIR",
		Short: "Say which settings to change, with patches",
		Args:  exactly(1, "one results folder"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.advise(cmd.Context(), args[0], f) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.StringVar(&f.patch, "patch", "", "print only the patches for this target: "+strings.Join(advice.PatchesFor(), ", "))
	fl.StringArrayVar(&f.only, "only", nil, "advice only on cells with these levels: "+onlyHelp)
	fl.StringSliceVar(&f.from, "from", nil, "advice for those who run with these levels today, such as default_vcpus=1,cpu-limit=1")
	fl.StringVar(&f.container, "container", "", "name of the container in patches of pods, instead of APP")
	fl.BoolVar(&f.verify, "verify", false, "remove each named cause on this host and say whether the cell improves")
	fl.BoolVar(&f.dry, "dry-run", false, "with --verify: show what would run, without running it")
	fl.IntVar(&f.blocks, "blocks", stat.MinN, "with --verify: blocks of each cell")
	fl.DurationVar(&f.budget, "budget", defaultVerify, "with --verify: the most time that one cause may take")
	fl.Lookup("budget").DefValue = param.FormatDuration(defaultVerify)
	fl.StringVar(&f.data, "data", "", "with --verify: directory on the disk to measure, the one that the results are of (default that of the results)")
	fl.BoolVar(&f.wait, "wait", false, "with --verify: "+waitHelp)
	_ = cmd.RegisterFlagCompletionFunc("patch", cobra.FixedCompletions(advice.PatchesFor(), cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("only", a.completeOnly())
	return cmd
}

func (a *app) advise(ctx context.Context, dir string, f adviseFlags) error {
	if f.json && f.patch != "" {
		return coded(exitUsage, "write one of --json and --patch; the JSON has the patches")
	}
	if f.verify && f.patch != "" {
		return coded(exitUsage, "--verify and --patch exclude each other; give one of them")
	}
	if !f.verify && (f.blocks != stat.MinN || f.budget != defaultVerify || f.wait || f.data != "") {
		return coded(exitUsage, "--blocks, --budget, --data and --wait need --verify; without it nothing runs")
	}
	if f.dry && !f.verify {
		return coded(exitUsage, "--dry-run needs --verify; without it nothing runs anyway")
	}
	if f.patch != "" && !slices.Contains(advice.PatchesFor(), f.patch) {
		return coded(exitUsage, "--patch: there are none for %q; write one of %s", f.patch, strings.Join(advice.PatchesFor(), ", "))
	}
	if f.container != "" && !containerName.MatchString(f.container) {
		return coded(exitUsage, "--container %q is not a container's name; it has at most 63 small letters, digits and hyphens", f.container)
	}
	only, err := onlyLevels(f.only)
	if err != nil {
		return err
	}
	from, err := fromLevels(f.from)
	if err != nil {
		return err
	}
	chosen := having(only)
	var some []advice.Item
	r, err := analyseResults(ctx, dir, figures, analyse.AdviceOn(func(c record.Cell) bool { return chosen(c) && startsFrom(c, from) }, &some))
	if err != nil {
		return err
	}
	a.tellDamage(dir, r.damage)
	if err := cmp.Or(r.known(only, "--only"), r.known(from, "--from")); err != nil {
		return err
	}
	if f.verify {
		return a.verify(ctx, dir, r, some, f)
	}
	items := r.completed(withContainer(some, f.container))
	tuned := answers(r.result, chosen, f.container)
	switch {
	case f.json:
		if items == nil {
			items = []advice.Item{}
		}
		return a.printJSON(struct {
			Study    string          `json:"study"`
			Modelled bool            `json:"modelled,omitempty"`
			Advice   []advice.Item   `json:"advice"`
			Tuned    []analyse.Tuned `json:"tuned,omitempty"`
		}{r.result.Study, r.result.Modelled, items, tuned})
	case f.patch != "":
		return a.patches(r, append(items, settings(tuned)...), f.patch)
	case len(tuned) == 0 && len(r.result.Tuned) > 0 && len(items) == 0:
		a.line("The search has found nothing for such cells.")
		return nil
	}
	shown := *r.result
	shown.Tuned = tuned
	return text.WriteAdvice(a.stdout, &shown, items, a.textOptions(a.given(dir)))
}

// containerName is what Kubernetes takes (RFC 1123, a label).
var containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// withContainer returns items whose patches name the user's container; "" leaves them as they are.
func withContainer(items []advice.Item, container string) []advice.Item {
	if container == "" {
		return items
	}
	for i := range items {
		items[i].Patches = renamed(items[i].Patches, container)
		items[i].Targets = slices.Clone(items[i].Targets)
		for k := range items[i].Targets {
			items[i].Targets[k].Patches = renamed(items[i].Targets[k].Patches, container)
		}
	}
	return items
}

// renamed are patches with the user's container; "" leaves them as they are.
func renamed(list []advice.Patch, container string) []advice.Patch {
	if container == "" {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Text = strings.ReplaceAll(strings.ReplaceAll(list[i].Text, "name: APP # the container's own name", "name: APP"), "name: APP", "name: "+container)
	}
	return list
}

// answers are what a search has found for cells of a kind: a mix counts if one of its parts is of that kind.
func answers(r *analyse.Result, chosen func(record.Cell) bool, container string) (out []analyse.Tuned) {
	for _, t := range r.Tuned {
		of := chosen(slices.Concat(t.Shared, t.Set))
		for _, p := range t.Mix {
			of = of || chosen(slices.Concat(p.Shared, t.Set))
		}
		if of {
			t.Patches = renamed(t.Patches, container)
			out = append(out, t)
		}
	}
	return out
}

// settings are answers of a search as items, for their patches.
func settings(tuned []analyse.Tuned) (out []advice.Item) {
	for i := range tuned {
		if t := &tuned[i]; len(t.Patches) > 0 {
			out = append(out, advice.Item{Treatment: cmp.Or(t.Shared.Key(), t.Workload), Rule: "set " + t.Set.Key(), Cells: []record.Cell{slices.Concat(t.Shared, t.Set)}, Patches: t.Patches})
		}
	}
	return out
}

// fromLevels reads --from.
func fromLevels(list []string) (out []record.Level, err error) {
	for _, s := range list {
		factor, level, ok := strings.Cut(s, "=")
		if !ok {
			return nil, coded(exitUsage, "cannot read --from %q; write FACTOR=LEVEL, such as cpu-limit=1", s)
		}
		out = append(out, record.Level{Factor: factor, Value: level})
	}
	return out, nil
}

// startsFrom reports whether a cell has these levels, of the factors that it has.
func startsFrom(c record.Cell, from []record.Level) bool {
	return !slices.ContainsFunc(from, func(l record.Level) bool {
		v, ok := c.Get(l.Factor)
		return ok && v != l.Value
	})
}

// known refuses levels that the study has not: nothing could be about them.
func (r *analysed) known(only []record.Level, flag string) error {
	for _, l := range only {
		levels := levelsOf(r.study, l.Factor)
		if levels == nil {
			return coded(exitUsage, "%s: the study has no factor %q; it has %s", flag, l.Factor, strings.Join(factorsOf(r.study), ", "))
		}
		if !slices.Contains(levels, l.Value) {
			return coded(exitUsage, "%s: %s has no level %q; it has %s", flag, l.Factor, l.Value, strings.Join(levels, ", "))
		}
	}
	return nil
}

// having tells the cells with the levels, of one factor any, of several all.
func having(only []record.Level) func(record.Cell) bool {
	wanted := make(map[string][]string)
	for _, l := range only {
		wanted[l.Factor] = append(wanted[l.Factor], l.Value)
	}
	return func(c record.Cell) bool {
		for factor, levels := range wanted {
			if v, _ := c.Get(factor); !slices.Contains(levels, v) {
				return false
			}
		}
		return true
	}
}

// patches prints the patches of one kind, those that may stand together.
func (a *app) patches(r *analysed, items []advice.Item, kind string) error {
	docs, left, err := advice.Documents(items, r.result.Compare, kind)
	if err != nil {
		return err
	}
	last := ""
	for i := range items {
		if why, ok := left[i]; ok {
			if line := fmt.Sprintf("left out: %s of %s: %s", items[i].Rule, items[i].Treatment, why); line != last { // of several responses
				a.note("%s", line)
				last = line
			}
		}
	}
	for i := range docs {
		for _, clash := range docs[i].Clash {
			a.note("two items need conflicting settings of %s: %s", docs[i].File, clash)
		}
	}
	if len(docs) == 0 {
		return coded(exitUsage, "--patch %s: the advice has no such patches; %s", kind, kindsOf(items))
	}
	if n := len(docs); n > 1 && docs[0].YAML {
		a.note("%d documents; kubectl patch takes one at a time: choose with --only %s=LEVEL", n, r.result.Compare)
	}
	return text.WriteDocuments(a.stdout, docs, r.result.Modelled)
}

// kindsOf says what patches there are.
func kindsOf(items []advice.Item) string {
	var out []string
	for _, kind := range advice.PatchesFor() {
		if slices.ContainsFunc(items, func(x advice.Item) bool {
			return slices.ContainsFunc(x.Patches, func(p advice.Patch) bool { return p.For == kind })
		}) {
			out = append(out, kind)
		}
	}
	if len(out) == 0 {
		return "it has no patches; without --patch it says why"
	}
	return "it has some for " + strings.Join(out, ", ")
}
