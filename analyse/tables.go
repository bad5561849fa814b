package analyse

import (
	"cmp"
	"math"

	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
)

// tables makes the summary tables that the study asks for.
func (a *analysis) tables(r *Result) []summary.Table {
	if len(a.study.Tables) == 0 {
		return nil
	}
	var strata []summary.Stratum
	for _, row := range r.Rows() {
		s := summary.Stratum{Shared: row[0].Shared, Response: row[0].Response}
		for i := range row {
			c := &row[i]
			if s.Response.Unit == "" {
				s.Response = c.Response
			}
			if c.Baseline {
				s.Base = &summary.Reading{Cell: c.Cell, Value: c.Level.Typical, N: c.Level.N, Missing: missing(c)}
				continue
			}
			s.Others = append(s.Others, summary.Reading{Cell: c.Cell, Estimate: c.Estimate, Part: a.parts[c.key()], Missing: missing(c)})
			s.Prior = a.priors[c.key()]
		}
		strata = append(strata, s)
	}
	return summary.Build(a.study, a.rule, strata, a.mean)
}

// missing says why a comparison has nothing for a mean of ratios; "" when it has.
func missing(c *Comparison) string {
	switch o := c.Outcome(); {
	case o == HasRatio:
		return ""
	case o == Baseline && c.Level.Typical > 0:
		return ""
	case o == Baseline:
		return "the baseline's value is not positive"
	case c.Baseline: // it has no verdict that would say why
		return cmp.Or(c.Skipped, c.GaveUp, string(o))
	default:
		return cmp.Or(c.Why, string(o))
	}
}

// mean sums up the ratios of the geometric mean of several cells of a stratum to
// the base: it is taken in each block that has all of them, since they share the
// baseline's trials there.
func (a *analysis) mean(base record.Cell, others []record.Cell, response string) stat.Summary {
	logs := make(map[int]float64)
	for i, c := range others {
		of := a.readings(c.Key(), response)
		for block, v := range of {
			if !(v > 0) {
				v = math.NaN()
			}
			if sum, ok := logs[block]; ok || i == 0 {
				logs[block] = sum + math.Log(v)/float64(len(others))
			}
		}
		for block := range logs {
			if _, ok := of[block]; !ok {
				delete(logs, block)
			}
		}
	}
	for block, v := range logs {
		logs[block] = math.Exp(v)
	}
	return stat.Summarise(stat.Pairs(a.readings(base.Key(), response), logs))
}
