package analyse

import (
	"slices"

	"tare/analyse/merit"
	"tare/record"
)

// figures makes the tables of figures of merit that the study asks for.
func (a *analysis) figures() []merit.Table {
	var out []merit.Table
	for i := range a.study.Figures {
		ask := &a.study.Figures[i]
		var readings []merit.Reading
		var response record.Response
		for j := range a.study.Strata {
			s := &a.study.Strata[j]
			k := slices.IndexFunc(a.responses(a.study.WorkloadOf(j)), func(r record.Response) bool { return r.Name == ask.Response })
			if k < 0 {
				continue
			}
			if response.Unit == "" {
				response = a.responses(a.study.WorkloadOf(j))[k]
			}
			for _, c := range s.Cells {
				if ask.Holds(c, a.study.Compare) {
					readings = append(readings, merit.Reading{Stratum: s.Key, Cell: c, Values: a.readings(c.Key(), ask.Response)})
				}
			}
		}
		if t := merit.Build(a.study, ask, response, a.rule.Level(), readings); t != nil {
			out = append(out, *t)
		}
	}
	return out
}
