// Package groups selects cgroups from a scope's list, so that no CPU time or process counts
// twice.
//
// The data path: a scope names its cgroups, one perhaps inside another; only
// the outermost are kept, whose figures the kernel adds up over descendants
// (Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files").
package groups

import (
	"path"
	"slices"
	"strings"
)

// Outermost cleans the paths, relative to the cgroup root, sorts them and
// leaves out those that lie in another of the list.
func Outermost(rels []string) []string {
	clean := make([]string, len(rels))
	for i, g := range rels {
		clean[i] = path.Clean("/" + g)[1:]
	}
	slices.Sort(clean)
	var out []string
	for _, g := range slices.Compact(clean) {
		if !slices.ContainsFunc(out, func(o string) bool { return o == "" || strings.HasPrefix(g, o+"/") }) {
			out = append(out, g)
		}
	}
	return out
}
