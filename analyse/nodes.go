package analyse

import (
	"maps"
	"slices"

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
