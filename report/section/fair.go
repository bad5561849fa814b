package section

import (
	"strings"

	"tare/analyse"
	"tare/report/words"
)

// Fair says whether the sides of each comparison were alike in all but the compared factor, by what
// was in force: first what differed, then what all shared.
func Fair(r *analyse.Result) *Section {
	s := &Section{ID: "fair", Title: "Is the comparison fair?", About: "by what was in force"}
	var differ, same groups
	fixed := fixedLevels(r)
	for i := range r.Compared {
		c := &r.Compared[i]
		x := r.Certificate(c)
		if !c.First || x == nil {
			continue
		}
		where := words.Stratum(r, c.Workload, c.Shared, fixed) + " in " + c.Treatment
		for _, d := range x.Differ {
			differ.add(d, where)
		}
		if len(x.Differ) == 0 {
			same.add(words.List(x.Same), where)
		}
	}
	for _, d := range differ.names {
		s.Item(d, strings.Join(differ.members[d], ", "))
	}
	for _, x := range same.names {
		s.Item("", "In "+words.Count(len(same.members[x]), "comparison")+" both sides had the same "+x+".")
	}
	return s
}
