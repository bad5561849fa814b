package analyse

import (
	"testing"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// TestSearchNeedsNothing: a search stops when its answer is sure, so an undecided row of it needs no more blocks; one of a study that
// compares does.
func TestSearchNeedsNothing(t *testing.T) {
	sum := stat.Summarise([]stat.Pair{{Base: 1, Other: 1.1}, {Base: 1, Other: 1.4}, {Base: 1, Other: 1.2}, {Base: 1, Other: 1.6}})
	for _, c := range []struct {
		stop  study.Stop
		needs bool
	}{{study.Stop{}, true}, {study.Stop{Tune: 0.9}, false}, {study.Stop{Objective: &study.Objective{}}, false}} {
		st := &study.Study{Stop: c.stop}
		a := &analysis{study: st, rule: stat.NewRule(0.95, 0.05, 0.03, nil, 4), plan: plan.New(st, nil, nil)}
		row := &Comparison{Verdict: stat.Undecided, First: true, Ending: &plan.Ending{}}
		if got := a.shortage(row, record.Cell{}, sum, stat.Prior{}); (got != nil) != c.needs {
			t.Errorf("%+v: %v", c.stop, got)
		}
	}
}
