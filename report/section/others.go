package section

import (
	"fmt"
	"strconv"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/report/words"
)

// Others says what everything beside the trials used of their machines' processors, and which costs follow that.
func Others(r *analyse.Result) *Section {
	s := &Section{ID: "others", Title: "What others used", About: "processors, in cores, while trials were measured: other pods and programs, and the machine's own services"}
	if len(r.Others) == 0 {
		return s
	}
	t := NewTable(1, "beside", "trials", "median", "most", "of")
	for i := range r.Others {
		o := &r.Others[i]
		t.Row(words.Treatment(r, o.Cell), strconv.Itoa(o.Trials), bare(o.Median), bare(o.Most), bare(o.Processors))
	}
	s.Table(t)
	fixed := fixedLevels(r)
	for i := range r.Following {
		f := &r.Following[i]
		for j := range r.Compared {
			c := &r.Compared[j]
			if c.Stratum != f.Stratum || c.Treatment != f.Treatment || c.Response.Name != f.Response {
				continue
			}
			cost, lo, hi := stat.Estimate{Ratio: f.Ratio, Lo: f.Lo, Hi: f.Hi}.Cost(c.Response.Better)
			s.Item(words.Stratum(r, c.Workload, c.Shared, fixed)+" in "+c.Treatment, fmt.Sprintf(
				"the cost follows what others used. If they had used the same beside both sides, the cost would be %s × (%s to %s), by a line through %d blocks.",
				words.Ratio(cost), words.Ratio(lo), words.Ratio(hi), f.Blocks))
		}
	}
	return s
}
