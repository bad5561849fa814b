package document

import (
	"slices"

	"tare/analyse/cpucost"
	"tare/analyse/stat"
)

// shorterCosts leaves out what a page does not show of CPU costs, and digits that
// nobody sees: there is one of these for each cell of the study, with several
// figures for each role.
func shorterCosts(all []cpucost.Cost) []cpucost.Cost {
	all = slices.Clone(all)
	for i := range all {
		c := &all[i]
		e := c.Estimate
		c.Cell = nil // Treatment and Stratum say it
		c.Cores, c.Rate, c.Value = round(c.Cores, 4), round(c.Rate, 4), round(c.Value, 4)
		c.Estimate = stat.Estimate{Ratio: round(e.Ratio, 4), Lo: round(e.Lo, 4), Hi: round(e.Hi, 4), N: e.N, Undefined: e.Undefined}
		c.Roles = slices.Clone(c.Roles)
		for j := range c.Roles {
			r := &c.Roles[j]
			r.Part, r.Cores, r.Value = round(r.Part, 3), 0, 0 // parts of what the cost has
		}
	}
	return all
}
