package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tare/analyse/stat"
	"tare/plan"
	"tare/report/words"
	"tare/study"
)

// continuing is the command that goes on with the search of a results folder, at twice its budget, or what more blocks take:
// tare tune with the flags that its overrides are of, or tare run if the study itself says what to look for.
func (r *analysed) continuing() string {
	base := filepath.Clean(r.dir)
	out := []string{"tare", "run", words.Path(filepath.Join(base, "study.yaml")), "--results", words.Path(base)}
	if on := r.result.On(); on != "" {
		out = append(out, on)
	}
	tuned := slices.Contains(r.study.Overrides, "tables=none") && slices.ContainsFunc(r.study.Overrides, func(s string) bool {
		return strings.HasPrefix(s, "stop.tune=") || strings.HasPrefix(s, "stop.objective=")
	})
	if tuned {
		out[1] = "tune"
		for _, f := range r.study.Tuned() {
			out = append(out, "--factor", words.Shell(f))
		}
	}
	for _, s := range r.study.Overrides {
		key, value, _ := strings.Cut(s, "=")
		switch {
		case strings.HasPrefix(key, "budget."):
		case tuned && key == "stop.tune":
			out = append(out, "--reach", words.Shell(value))
		case tuned && key == "stop.objective":
			out = append(out, "--objective", words.Shell(value))
		case tuned && slices.Contains([]string{"compare", "baseline", "tables", "stop.factors"}, key): // tune's own
		default:
			out = append(out, "--set", words.Shell(s))
		}
	}
	budget := r.study.Budget
	if budget.Blocks > 0 {
		out = append(out, "--set", "budget.blocks="+strconv.Itoa(2*budget.Blocks))
	}
	if budget.Time > 0 {
		whole := *r.study // so many blocks of everything, or the search ends before it has begun
		whole.Stop = study.Stop{Fixed: stat.MinN, Confidence: r.study.Stop.Confidence, Margin: r.study.Stop.Margin}
		need := plan.Takes(&whole, r.skips, nil, stat.MinN, r.took)
		out = append(out, "--budget", words.AtLeast(max(2*budget.Time, need+need/10)))
	}
	return strings.Join(out, " ")
}
