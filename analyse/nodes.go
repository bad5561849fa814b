package analyse

import (
	"fmt"
	"maps"
	"slices"

	"tare/analyse/stat"
	"tare/record"
)

// Node is a machine that trials ran on. A block is on one node, so that no ratio
// compares two.
type Node struct {
	Name   string `json:"name"`   // "" of trials from before nodes had names
	Blocks int    `json:"blocks"` // that count, of all strata
	Trials int    `json:"trials"` // attempts on record, the sentinel's included
}

// nodesOf lists the nodes that trials name, sorted.
func nodesOf(trials []record.Trial) []string {
	var out []string
	for i := range trials {
		if n := trials[i].Node; n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// nodes counts what each node had, if there are several.
func (a *analysis) nodes() []Node {
	if !a.several {
		return nil
	}
	trials, blocks := map[string]int{}, map[string]int{}
	for _, t := range a.trials {
		trials[t.Node]++
	}
	for i := range a.study.Strata {
		seen := map[int]bool{}
		for _, c := range a.study.Strata[i].Cells {
			for block, t := range a.counting[c.Key()] {
				if !seen[block] {
					seen[block] = true
					blocks[t.Node]++
				}
			}
		}
	}
	var out []Node
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		out = append(out, Node{Name: name, Blocks: blocks[name], Trials: trials[name]})
	}
	return out
}

// node is the name of a trial's node where that tells something.
func (a *analysis) node(name string) string {
	if a.several {
		return name
	}
	return ""
}

// NodeShare says how much of the scatter of a comparison's ratios lies between nodes: they are a
// random effect on the logarithm of the ratio of a block.
type NodeShare struct {
	Stratum   string      `json:"stratum"`   // Stratum.Key
	Treatment string      `json:"treatment"` // Treatment.Key
	Response  string      `json:"response"`  // the first
	Ratios    []NodeRatio `json:"ratios"`    // by node
	// Share of the variance of the logarithms that lies between nodes; nil if there are too few nodes or blocks to say.
	Share *stat.Share `json:"share,omitempty"`
}

// NodeRatio is the ratio on one node.
type NodeRatio struct {
	Node   string  `json:"node"`
	Ratio  float64 `json:"ratio"` // geometric mean of its blocks
	Blocks int     `json:"blocks"`
}

// betweenNodes adds what the nodes' differences are to the ratios, if there are several nodes, and
// warns of ratios that differ.
func (a *analysis) betweenNodes(r *Result) {
	names := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		names[i] = n.Name
	}
	if len(names) < 2 {
		return
	}
	at := func(b, t *record.Trial) int {
		if b.Node != t.Node {
			return -1
		}
		return slices.Index(names, b.Node)
	}
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Baseline || !c.First {
			continue
		}
		groups := a.grouped(c, len(names), at)
		n := NodeShare{Stratum: c.Stratum, Treatment: c.Treatment, Response: c.Response.Name}
		d := differs(c, groups)
		for k, of := range d.of {
			n.Ratios = append(n.Ratios, NodeRatio{names[of], d.ratios[k], len(groups[of])})
		}
		if s, ok := stat.Between(groups, a.rule.Confidence); ok {
			n.Share = &s
		}
		if len(n.Ratios) > 1 {
			r.BetweenNodes = append(r.BetweenNodes, n)
		}
	}
	a.warnDiffering(r, Warning{Code: "node-ratio", Text: "nodes"}, "nodes that differ", len(names), at, func(d *differing) string {
		low, high := 0, 0
		for i, x := range d.ratios {
			if x < d.ratios[low] {
				low = i
			}
			if x > d.ratios[high] {
				high = i
			}
		}
		return fmt.Sprintf("%.3g on %s, %.3g on %s", d.ratios[low], names[d.of[low]], d.ratios[high], names[d.of[high]])
	})
}
