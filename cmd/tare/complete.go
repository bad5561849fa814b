package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/bundle"
	"tare/record"
	"tare/report/plot"
	"tare/study"
)

// studyIn is the study of the first results folder among the arguments; nil where
// there is none: completion stays silent.
func (a *app) studyIn(args []string) *study.Study {
	for _, dir := range args {
		if bundle.Is(dir) { // a small one; nobody waits for a large one at a tab
			unpacked, remove, err := a.unpacked(context.Background(), dir, bundle.Limits{Total: 64 << 20})
			defer remove()
			if err != nil {
				continue
			}
			dir = unpacked
		}
		if k, err := inResults(dir, results.kept); err == nil {
			return k.study
		}
	}
	return nil
}

// completions makes a flag's completion of what its study has. The value may be a
// list with commas: the last piece is completed, and list has the pieces before.
func (a *app) completions(offer func(st *study.Study, list []string, last string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		st := a.studyIn(args)
		if st == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		pieces := strings.Split(toComplete, ",")
		last := len(pieces) - 1
		before := strings.TrimSuffix(toComplete, pieces[last])
		var out []cobra.Completion
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, o := range offer(st, pieces[:last], pieces[last]) {
			if strings.HasPrefix(o, pieces[last]) {
				out = append(out, before+o)
				if strings.HasSuffix(o, "=") { // a level follows
					directive |= cobra.ShellCompDirectiveNoSpace
				}
			}
		}
		return out, directive
	}
}

// factorsOf are the factors of a study, the workload first.
func factorsOf(st *study.Study) []string {
	out := []string{study.FactorWorkload}
	for _, f := range st.Factors {
		if f.Name != study.FactorWorkload {
			out = append(out, f.Name)
		}
	}
	return out
}

func responseNames(st *study.Study) []string {
	var out []string
	for i := range st.Workloads {
		for _, r := range st.Workloads[i].Responses {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

func levelsOf(st *study.Study, factor string) []string {
	switch factor {
	case plot.FactorResponse:
		return responseNames(st)
	case study.FactorWorkload:
		var out []string
		for i := range st.Workloads {
			out = append(out, st.Workloads[i].Label)
		}
		return out
	}
	for _, f := range st.Factors {
		if f.Name == factor {
			return f.Levels
		}
	}
	return nil
}

// completeSite completes --on of a verb that has it. The help of the flag names the sites.
func completeSite(c *cobra.Command) {
	f := c.Flags().Lookup("on")
	if f == nil {
		return
	}
	sites := []string{onCluster}
	if strings.Contains(f.Usage, onModel+":") {
		sites = append(sites, onModel)
	}
	_ = c.RegisterFlagCompletionFunc("on", cobra.FixedCompletions(sites, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
}

// completeOnly completes --only: factors, and after = their levels, escaped as
// onlyLevels reads them. extra are factors that the verb knows besides.
func (a *app) completeOnly(extra ...string) cobra.CompletionFunc {
	return a.completions(func(st *study.Study, _ []string, last string) []string {
		var out []string
		factor, _, level := strings.Cut(last, "=")
		for _, f := range append(factorsOf(st), extra...) {
			if !level {
				out = append(out, f+"=")
			} else if f == factor {
				for _, l := range levelsOf(st, f) {
					out = append(out, record.Cell{{Factor: f, Value: l}}.Key())
				}
			}
		}
		return out
	})
}

func (a *app) completeResponses() cobra.CompletionFunc {
	return a.completions(func(st *study.Study, list []string, _ string) []string {
		return slices.DeleteFunc(responseNames(st), func(r string) bool { return slices.Contains(list, r) })
	})
}

// completeBy completes factors of plot, those left out that are taken.
func (a *app) completeBy(taken []string) cobra.CompletionFunc {
	return a.completions(func(st *study.Study, list []string, _ string) []string {
		taken := append(slices.Clone(taken), list...)
		return slices.DeleteFunc(append(factorsOf(st), plot.FactorResponse), func(f string) bool { return slices.Contains(taken, f) })
	})
}

// completePlotArgs completes the folder, and after --by FACTOR further factors.
func (a *app) completePlotArgs(by *[]string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case a.studyIn(args) == nil:
			return nil, cobra.ShellCompDirectiveDefault // a folder or a bundle
		case len(*by) == 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeBy(append(slices.Clone(*by), args...))(cmd, args, toComplete)
	}
}
