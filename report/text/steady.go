package text

import (
	"fmt"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
)

// writeSteady says where a response had not come to rest within the trials: a
// line for each response of a cell with such trials. Where all is steady, or too short to tell, there is
// nothing to do and nothing is printed; --json has the counts.
func writeSteady(b *strings.Builder, res *analyse.Result, opt Options) {
	head := "\nwithin the trials:\n"
	for i := range res.Compared {
		c := &res.Compared[i]
		s := c.Steady
		if s == nil || s.NotSteady == 0 {
			continue
		}
		b.WriteString(head)
		head = ""
		line := fmt.Sprintf("no steady state in %d of %s of %s: %s", s.NotSteady, words.Count(s.Trials, "trial"), c.Cell.Key(), c.Response.Name)
		if s.Why != "" {
			line += " " + s.Why
			if s.NotSteady > 1 {
				line += " (the first of them)"
			}
		}
		item(b, opt, line)
	}
}

// told are the codes of warnings that a section of their own tells.
func told(code string) bool { return code == record.NoSteadyState || code == analyse.WarnBusy }
