package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/analyse"
)

// Many comparisons of one treatment are said workload by workload.

// group puts the comparisons of the same workload and response together, in
// order.
func group(all []*analyse.Comparison) [][]*analyse.Comparison {
	type key struct{ workload, response string }
	at := make(map[key]int)
	var out [][]*analyse.Comparison
	for _, c := range all {
		k := key{c.Workload, c.Response.Name}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], c)
	}
	return out
}

// grouped sums up each group with its range and its worst cell.
func grouped(groups [][]*analyse.Comparison, r *analyse.Result, opt Options) string {
	vary := varying(r)
	// First responses in the study's order, then the others.
	slices.SortStableFunc(groups, func(a, b []*analyse.Comparison) int {
		if a[0].First != b[0].First {
			return map[bool]int{true: -1, false: 1}[a[0].First]
		}
		return 0
	})
	var clauses []string
	for _, g := range groups[:min(len(groups), opt.items())] {
		head := g[0].Workload + " " + g[0].Response.Name
		if len(g) == 1 {
			clauses = append(clauses, single(g[0], r))
			continue
		}
		var by [kinds][]*analyse.Comparison
		for _, c := range g {
			k := kindOf(c)
			by[k] = append(by[k], c)
		}
		var parts []string
		for k, say := range said(r) {
			list := by[k]
			if len(list) == 0 {
				continue
			}
			s := fmt.Sprintf("%s in %d", say, len(list))
			if len(parts) == 0 {
				s += fmt.Sprintf(" of %s", Count(len(g), "cell"))
			}
			if kind(k) == worse || kind(k) == better || kind(k) == differs {
				s += ", " + span(list)
			}
			if kind(k) == worse && len(list) > 1 {
				if l := strings.TrimPrefix(name(r, extreme(list), vary), g[0].Workload+" "); l != g[0].Workload {
					s += " (worst: " + l + ")"
				}
			}
			parts = append(parts, s)
		}
		clauses = append(clauses, head+": "+strings.Join(parts, ", "))
	}
	if more := len(groups) - len(clauses); more > 0 {
		clauses = append(clauses, fmt.Sprintf("and %d more responses", more))
	}
	return strings.Join(clauses, "; ") + "."
}

// single says what a comparison alone in its group comes to.
func single(c *analyse.Comparison, r *analyse.Result) string {
	head := c.Workload + " " + c.Response.Name
	switch k := kindOf(c); k {
	case worse, better, differs:
		return phrase(c, c.Workload)
	case equal:
		return head + ": equal within " + percent(r.Margin)
	default:
		return head + ": " + [kinds]string{undecided: "not decided", noRatio: "no ratio", belowNoise: "below noise", failed: "failed", noValue: "not measured", skipped: "skipped"}[k]
	}
}

// span is the range of ratios.
func span(list []*analyse.Comparison) string {
	lo, hi := math.Inf(1), 0.0
	for _, c := range list {
		lo, hi = min(lo, c.Estimate.Ratio), max(hi, c.Estimate.Ratio)
	}
	if Ratio(lo) == Ratio(hi) {
		return Ratio(lo) + " x"
	}
	return Ratio(lo) + " to " + Ratio(hi) + " x"
}

func extreme(list []*analyse.Comparison) *analyse.Comparison {
	out := list[0]
	for _, c := range list[1:] {
		if cost(c) > cost(out) {
			out = c
		}
	}
	return out
}
