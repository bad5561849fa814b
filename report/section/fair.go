package section

import (
	"strings"

	"tare/analyse"
	"tare/report/words"
)

// Fair says whether the two sides of each comparison ran under the same conditions, apart from the compared factor. It lists
// what differed, then what both sides had in common, then what is unknown.
func Fair(r *analyse.Result) *Section {
	s := &Section{ID: "fair", Title: "Is the comparison fair?", About: "by what was in force"}
	var differ, same, unread, alike groups
	silent := 0
	fixed := fixedLevels(r)
	for i := range r.Compared {
		c := &r.Compared[i]
		x := r.Certificate(c)
		switch {
		case !c.First || c.Baseline || c.Level.N == 0 || c.Base.N == 0:
			continue
		case x == nil:
			silent++
			continue
		}
		where := words.Stratum(r, c.Workload, c.Shared, fixed) + " in " + c.Treatment
		for _, d := range x.Differ {
			differ.add(d, where)
		}
		if len(x.Differ) == 0 {
			same.add(words.List(x.Same), where)
		}
		if x.Program != "" {
			alike.add(x.Program, where)
		}
		if len(x.Unread) > 0 {
			unread.add(words.List(x.Unread), where)
		}
	}
	for _, d := range differ.names {
		s.Item(d, strings.Join(differ.members[d], ", "))
	}
	for _, x := range same.names {
		s.Item("", "In "+words.Count(len(same.members[x]), "comparison")+" both sides had the same "+x+".")
	}
	for _, x := range alike.names {
		s.Item("", "In "+words.Count(len(alike.members[x]), "comparison")+" both sides ran the same runtime, "+x+", with the same settings, so their ratios do not show the cost of another runtime ("+strings.Join(alike.members[x], ", ")+").")
	}
	if !r.OnCluster {
		return s
	}
	for _, x := range unread.names {
		text := "In " + words.Count(len(unread.members[x]), "comparison") + ", these facts are unknown: " + x + "."
		if !strings.Contains(r.Flags, "--observe") {
			text += " Run the study with --observe to read them on the nodes."
		}
		s.Item("", text)
	}
	if silent > 0 {
		s.Item("", "In "+words.Count(silent, "comparison")+", the trials do not record the conditions of either side.")
	}
	return s
}
