package text

import (
	"fmt"
	"strings"

	"tare/analyse"
	"tare/analyse/structural"
	"tare/record"
	"tare/report/words"
)

// writeStructural says how much of each cost system calls explain.
func writeStructural(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.Structural) == 0 {
		return
	}
	b.WriteString("\n" + wrap("structural cost (system calls x what the sandbox adds to one that does nothing):", opt.width(), "  ") + "\n")
	fixed := fixedLevels(res)
	g := grid{keys: 2, header: []string{"an operation of", "in", "native", "extra", "calls", "a call", "explained", "rest", "part"}}
	var reasons []string
	missing := make(map[string][]string)
	seen := make(map[string]bool)
	last, untold := "", 0
	for i := range res.Structural {
		s := &res.Structural[i]
		name := words.Stratum(res, s.Workload, s.Shared, fixed)
		if s.Missing != "" {
			if missing[s.Missing] == nil {
				reasons = append(reasons, s.Missing)
			}
			if !seen[s.Missing+name] {
				seen[s.Missing+name] = true
				missing[s.Missing] = append(missing[s.Missing], name)
			}
			continue
		}
		if s.Finding == structural.NoExtra {
			untold++
			continue
		}
		row := name + " (" + s.Operation + ")"
		first := row
		if row == last {
			first = ""
		}
		last = row
		g.rows = append(g.rows, shareRow(first, treatmentOf(res, s.Treatment), s))
	}
	if len(g.rows) > 0 {
		b.WriteString(g.render(opt))
		b.WriteString(wrap("Times are of one operation. extra: beside native; calls: system calls of the isolated end, counted natively; a call: what getpid takes more in the sandbox; "+
			"explained: calls x a call, shared among the processors that make them; rest: extra less explained, the implementation's; part: explained of extra. "+
			"A negative rest (part over 100 %) means that calls overlap with other work, or that the sandbox spares some.", opt.width(), "") + "\n")
	}
	if untold > 0 {
		item(b, opt, fmt.Sprintf("%d of %d show no extra time that could be told from none: left out here, not in --json", untold, untold+len(g.rows)))
	}
	for _, r := range reasons {
		item(b, opt, someOf(missing[r], len(missing[r]))+": "+r)
	}
}

func shareRow(first, in string, s *structural.Share) []gridCell {
	seconds := func(v float64) gridCell { return gridCell{first: words.Value(v, record.Second)} }
	part := "-"
	if p, ok := s.Part(); ok {
		part = fmt.Sprintf("%.0f %%", 100*p)
	}
	return []gridCell{{first: first}, {first: in}, seconds(s.Native), seconds(s.Extra.Value), {first: words.PerOperation(s.Calls)}, seconds(s.Cost.Value),
		seconds(s.Explained.Value), seconds(s.Rest), {first: part}}
}

// treatmentOf names a treatment by its key.
func treatmentOf(res *analyse.Result, key string) string {
	for _, t := range res.Treatments {
		if t.Key == key {
			return words.Treatment(res, t.Cell)
		}
	}
	return key
}
