package words

import (
	"fmt"
	"slices"

	"tare/analyse"
	"tare/record"
)

// phrase says a ratio: a time is so many times as long, everything else so many
// times the baseline's.
func phrase(c *analyse.Comparison, who string) string {
	e := c.Estimate
	interval := ""
	if e.HasInterval() {
		interval = fmt.Sprintf(" (%s to %s)", Ratio(e.Lo), Ratio(e.Hi))
	}
	if c.Response.Unit == record.Second {
		return fmt.Sprintf("%s %s takes %s x as long%s", who, c.Response.Name, Ratio(e.Ratio), interval)
	}
	return fmt.Sprintf("%s has %s x the %s%s", who, Ratio(e.Ratio), c.Response.Name, interval)
}

// varying are the factors that tell the strata of one workload apart.
func varying(r *analyse.Result) map[string][]string {
	first := make(map[string]record.Cell)
	out := make(map[string][]string)
	for i := range r.Compared {
		c := &r.Compared[i]
		f, ok := first[c.Workload]
		if !ok {
			first[c.Workload] = c.Shared
			continue
		}
		for _, l := range c.Shared {
			if v, has := f.Get(l.Factor); (!has || v != l.Value) && !slices.Contains(out[c.Workload], l.Factor) {
				out[c.Workload] = append(out[c.Workload], l.Factor)
			}
		}
	}
	return out
}

// name is the workload, and the levels that tell its strata apart.
func name(r *analyse.Result, c *analyse.Comparison, vary map[string][]string) string {
	s := c.Workload
	for _, l := range c.Shared {
		if l.Factor != "workload" && slices.Contains(vary[c.Workload], l.Factor) {
			s += " " + l.Factor + "=" + r.LevelName(l)
		}
	}
	return s
}
