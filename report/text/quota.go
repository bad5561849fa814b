package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
)

// writeQuotas says what the ends with a CPU quota used of it, by role, and how often
// it held them back.
func writeQuotas(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.Quotas) == 0 {
		return
	}
	b.WriteString("\n" + wrap(words.QuotasTitle(res)+":", opt.width(), "  ") + "\n")
	g := grid{keys: 2, header: []string{"work", "in", "quota", "CPU", "throttled", "held back"}}
	var roles []string
	for i := range res.Quotas {
		for _, x := range res.Quotas[i].Roles {
			if x.Part >= 0.005 && !slices.Contains(roles, x.Role) {
				roles = append(roles, x.Role)
			}
		}
	}
	slices.Sort(roles)
	g.header = append(g.header, roles...)
	fixed := fixedLevels(res)
	last := ""
	for i := range res.Quotas[:min(len(res.Quotas), maxCosts)] {
		q := &res.Quotas[i]
		row := make([]gridCell, len(g.header))
		if name := words.QuotaEnd(q, words.Stratum(res, q.Workload, q.Shared, fixed)); name != last {
			row[0].first, last = name, name
		}
		row[1].first = words.TreatmentOf(res, q.Treatment, q.Cell)
		row[2].first = bare(q.Quota)
		row[3] = gridCell{first: bare(q.Cores), second: fmt.Sprintf("%.0f %%", 100*q.Used())}
		row[4].first, row[5].first = "-", "-"
		if !q.Unread {
			row[4].first = words.Value(q.Throttled, record.Fraction)
			row[5].first = words.Value(q.Time, record.Second) + "/s"
		}
		for j, role := range roles {
			row[6+j].first = "-"
			for _, x := range q.Roles {
				if x.Role == role {
					row[6+j].first = bare(x.Cores)
				}
			}
		}
		g.rows = append(g.rows, row)
	}
	b.WriteString(g.render(opt))
	b.WriteString(wrap(words.QuotasAbout, opt.width(), "") + "\n")
	if more := len(res.Quotas) - maxCosts; more > 0 {
		item(b, opt, strconv.Itoa(more)+" more: --json has all")
	}
}

// bare is a number of cores without its unit.
func bare(cores float64) string {
	return strings.TrimSuffix(words.Value(cores, record.Cores), " cores")
}

// writeBoots shows the steps of the sandboxes' starts.
func writeBoots(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.Boots) == 0 {
		return
	}
	var phases []string
	for _, x := range res.Boots {
		for _, p := range x.Phases {
			if !slices.Contains(phases, p.Name) {
				phases = append(phases, p.Name)
			}
		}
	}
	g := grid{keys: 1, header: append([]string{"in", "starts", "start"}, phases...)}
	for _, x := range res.Boots {
		row := []gridCell{{first: words.Treatment(res, x.Cell)}, {first: strconv.Itoa(x.Starts)}, span(x.Start, x.Starts > 0)}
		for _, name := range phases {
			k := slices.IndexFunc(x.Phases, func(p analyse.PhaseTime) bool { return p.Name == name })
			if k < 0 {
				row = append(row, gridCell{first: "-"})
				continue
			}
			row = append(row, span(x.Phases[k].Median, true))
		}
		g.rows = append(g.rows, row)
	}
	b.WriteString("\n" + wrap("steps of a sandbox's start (medians; start: the whole, with what is in no step):", opt.width(), "  ") + "\n" + g.render(opt))
}
