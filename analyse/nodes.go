package analyse

import (
	"slices"

	"tare/record"
)

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
