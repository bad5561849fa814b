package text

import (
	"fmt"

	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/words"
)

// costCell is one treatment's CPU time a unit of work.
func costCell(c *cpucost.Cost) gridCell {
	e := &c.Estimate
	switch {
	case c.Baseline, e.N == 0, e.Undefined != "":
		return gridCell{first: words.Value(c.Value, record.Second)}
	case !e.HasInterval():
		return gridCell{first: words.Ratio(e.Ratio) + " " + signOf(c.Verdict).mark, second: fmt.Sprintf("need n≥%d", stat.MinN)}
	}
	s := signOf(c.Verdict)
	return gridCell{first: words.Ratio(e.Ratio) + " " + s.mark, second: words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi), colour: s.colour}
}
