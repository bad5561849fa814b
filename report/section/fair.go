package section

import (
	"strconv"
	"strings"

	"tare/analyse"
	"tare/ordered"
	"tare/report/words"
)

// Fair says whether the two sides of each comparison ran under the same conditions, apart from the compared factor. It lists
// what differed, then what both sides had in common, then what is unknown.
func Fair(r *analyse.Result) *Section {
	s := &Section{ID: "fair", Title: "Is the comparison fair?", About: "by what was in force"}
	var differ, same, unread, alike, spread groups
	var all, silent []string
	workloads := make(map[string]string)
	fixed := fixedLevels(r)
	for i := range r.Compared {
		c := &r.Compared[i]
		if !c.First || c.Baseline || c.Level.N == 0 || c.Base.N == 0 {
			continue
		}
		where := words.Stratum(r, c.Workload, c.Shared, fixed) + " in " + c.Treatment
		all, workloads[where] = append(all, where), c.Workload
		x := r.Certificate(c)
		if x == nil {
			silent = append(silent, where)
			continue
		}
		for _, d := range x.Differ {
			differ.add(d, where)
		}
		if len(x.Differ) == 0 {
			same.add(words.List(x.Same), where)
		}
		if x.Copies != nil || x.BaseCopies != nil {
			spread.add(copies(x), where)
		}
		if x.Program != "" {
			alike.add(x.Program, where)
		}
		if len(x.Unread) > 0 {
			unread.add(words.List(x.Unread), where)
		}
	}
	in := func(members []string) string {
		return "In " + words.Count(len(members), "comparison") + which(members, workloads, len(members) == len(all))
	}
	for _, d := range differ.names {
		s.Item(d, strings.Join(differ.members[d], ", "))
	}
	for _, x := range same.names {
		s.Item("", in(same.members[x])+" both sides had the same "+x+".")
	}
	for _, x := range alike.names {
		s.Item("", "In "+words.Count(len(alike.members[x]), "comparison")+" both sides ran the same runtime, "+x+", with the same settings, so their ratios do not show the cost of another runtime ("+strings.Join(alike.members[x], ", ")+").")
	}
	for _, x := range spread.names {
		s.Item("", x+": "+strings.Join(spread.members[x], ", ")+".")
	}
	if !r.OnCluster {
		return s
	}
	for _, x := range unread.names {
		text := in(unread.members[x]) + ", these facts are unknown: " + x + "."
		if !strings.Contains(r.Flags, "--observe") {
			text += " Run the study with --observe to read them on the nodes."
		}
		s.Item("", text)
	}
	if len(silent) > 0 {
		s.Item("", in(silent)+", the trials do not record the conditions of either side.")
	}
	return s
}

// maxNamed is the most comparisons, or else workloads, that a line names.
const maxNamed = 3

// which says in parentheses which comparisons are meant, or of which workloads, where they are few and not all.
func which(members []string, workloads map[string]string, all bool) string {
	var of []string
	for _, m := range members {
		of = ordered.Add(of, workloads[m])
	}
	switch {
	case all:
		return ""
	case len(members) <= maxNamed:
		return " (" + strings.Join(members, ", ") + ")"
	case len(of) <= maxNamed:
		return " (of " + words.List(of) + ")"
	}
	return ""
}

// copies says on which nodes the copies of both sides were.
func copies(x *analyse.Certificate) string {
	of := func(c *analyse.Copies) string {
		if c == nil {
			return "copies on unknown nodes"
		}
		many := "1 copy"
		if c.Count > 1 {
			many = strconv.Itoa(c.Count) + " copies"
		}
		text := many + " on " + words.Count(c.AtOnce, "node") + " in each trial"
		switch {
		case c.AtOnce > 1 && c.Most*c.AtOnce == c.Count:
			text += ", " + strconv.Itoa(c.Most) + " on each"
		case c.AtOnce > 1:
			text += ", at most " + strconv.Itoa(c.Most) + " on one"
		}
		if c.AtOnce == 1 { // trials took turns on them
			return text + " (" + strings.Join(c.On, " or ") + ")"
		}
		return text + " (" + words.List(c.On) + ")"
	}
	own, base := of(x.Copies), of(x.BaseCopies)
	text := "There were " + own + ", in the baseline " + base
	if own == base {
		text = "Both sides had " + own
	}
	if x.Copies != nil && x.Copies.Shared || x.BaseCopies != nil && x.BaseCopies.Shared {
		text += "; some of these nodes share a machine, so spreading the copies adds no hardware"
	}
	return text
}
