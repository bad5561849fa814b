package section

import (
	"cmp"
	"fmt"
	"slices"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/report/words"
)

// Nodes says how much the costs differ between the nodes of a study.
func Nodes(r *analyse.Result) *Section {
	s := &Section{ID: "nodes", Title: "How much nodes differ", About: "share of the variance of a block's ratio that lies between nodes"}
	if len(r.BetweenNodes) == 0 {
		return s
	}
	fixed := fixedLevels(r)
	t := NewTable(2, "of", "in", "lowest cost", "highest cost", "between nodes", "interval")
	var few bool
	for i := range r.Compared {
		c := &r.Compared[i]
		for j := range r.BetweenNodes {
			n := &r.BetweenNodes[j]
			if n.Stratum != c.Stratum || n.Treatment != c.Treatment || n.Response != c.Response.Name {
				continue
			}
			cost := func(x analyse.NodeRatio) float64 {
				cost, _, _ := stat.Estimate{Ratio: x.Ratio}.Cost(c.Response.Better)
				return cost
			}
			byCost := func(x, y analyse.NodeRatio) int { return cmp.Compare(cost(x), cost(y)) }
			low, high := slices.MinFunc(n.Ratios, byCost), slices.MaxFunc(n.Ratios, byCost)
			share, interval := "?", ""
			if n.Share != nil {
				share, interval = percentOf(n.Share.Share), percentOf(n.Share.Lo)+" to "+percentOf(n.Share.Hi)
			}
			few = few || n.Share == nil
			on := func(x analyse.NodeRatio) string { return fmt.Sprintf("%.3f on %s", cost(x), x.Node) }
			t.Row(words.Stratum(r, c.Workload, c.Shared, fixed), c.Treatment, on(low), on(high), share, interval)
		}
	}
	s.Table(t)
	if few {
		s.Note(fmt.Sprintf("? too few nodes to say, or too few blocks: a share needs %d nodes, and more blocks than nodes", stat.MinGroups))
	}
	return s
}
