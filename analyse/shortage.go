package analyse

import (
	"fmt"
	"math"
	"time"

	"tare/analyse/stat"
	"tare/record"
)

// Shortage is what an undecided comparison would need until its interval is narrow enough, if its
// scatter stays as it is.
type Shortage struct {
	Blocks  int           `json:"blocks"`            // more
	Time    time.Duration `json:"time"`              // of its trials and the baseline's in them; 0: not known, as for imported trials
	Yielded bool          `json:"yielded,omitempty"` // it stopped early, so that other rows could be decided, or because it hardly could be
}

// mostForecast is the most blocks of a forecast. A larger number would mostly show the error of the scatter's estimate, and
// nobody measures that many blocks.
const mostForecast = 1000

// String says it: "about 14 more blocks, 6 min". It leaves out a time that is not known.
func (s *Shortage) String() string {
	if s.Blocks > mostForecast {
		return fmt.Sprintf("over %d more blocks, which is too many to measure", mostForecast)
	}
	blocks := fmt.Sprintf("about %d more blocks", s.Blocks)
	if s.Blocks == 1 {
		blocks = "about 1 more block"
	}
	switch {
	case s.Time == 0:
		return blocks
	case s.Time > 90*time.Minute:
		return fmt.Sprintf("%s, %.0f h", blocks, math.Ceil(s.Time.Hours()))
	case s.Time > 90*time.Second:
		return fmt.Sprintf("%s, %.0f min", blocks, math.Ceil(s.Time.Minutes()))
	}
	return fmt.Sprintf("%s, %.0f s", blocks, math.Ceil(s.Time.Seconds()))
}

// shortage says, once a stratum has ended, what an undecided comparison of its first response would
// need. It is nil if there is nothing to say, and of a search: that stops when its answer is sure, whatever its rows say.
func (a *analysis) shortage(c *Comparison, base record.Cell, sum stat.Summary, prior stat.Prior) *Shortage {
	if c.Verdict != stat.Undecided || !c.First || c.Ending == nil || a.study.Stop.Searches() {
		return nil
	}
	blocks := a.rule.More(sum, prior)
	if blocks == 0 {
		return nil
	}
	each := time.Duration(0)
	for _, cell := range []record.Cell{c.Cell, base} {
		var d time.Duration
		trials := a.counting[cell.Key()]
		for _, t := range trials {
			d += t.Duration
		}
		each += d / time.Duration(max(len(trials), 1))
	}
	s := &Shortage{Blocks: blocks, Time: time.Duration(math.Min(float64(each)*float64(blocks), math.MaxInt64/2)), Yielded: a.plan.Yielded(c.Cell.Key())}
	c.Why += "; would need " + s.String()
	if s.Yielded && a.study.Stop.Adaptive {
		c.Why += "; stopped early, because the last look would hardly decide it"
	} else if s.Yielded {
		c.Why += "; stopped early, for rows that could be decided"
	}
	return s
}
