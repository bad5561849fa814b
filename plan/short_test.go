package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// TestShort: three strata of four cells of a second each, so a block of all takes 12 s.
func TestShort(t *testing.T) {
	second := func(record.Cell) time.Duration { return time.Second }
	for name, c := range map[string]struct {
		budget study.Budget
		stop   func(*study.Stop)
		want   *Shortage
	}{
		"no budget":       {},
		"enough":          {budget: study.Budget{Time: 36 * time.Second, Blocks: 3}},
		"two blocks":      {budget: study.Budget{Time: 30 * time.Second}, want: &Shortage{Fits: 2, Needs: 3, Time: 36 * time.Second}},
		"less than one":   {budget: study.Budget{Time: time.Second}, want: &Shortage{Fits: 1, Needs: 3, Time: 36 * time.Second}},
		"few blocks":      {budget: study.Budget{Blocks: 2, Time: time.Hour}, want: &Shortage{Fits: 2, Needs: 3, Blocks: 3}},
		"both":            {budget: study.Budget{Blocks: 2, Time: 12 * time.Second}, want: &Shortage{Fits: 1, Needs: 3, Time: 36 * time.Second, Blocks: 3}},
		"all blocks fit":  {budget: study.Budget{Time: 36 * time.Second}, stop: func(s *study.Stop) { s.Fixed = 8 }},
		"asked for fewer": {budget: study.Budget{Time: time.Second}, stop: func(s *study.Stop) { s.Fixed = 2 }},
		"a search":        {budget: study.Budget{Time: time.Second}, stop: func(s *study.Stop) { s.Tune = 0.9 }},
	} {
		st := makeStudy(3, 4)
		if st.Budget = c.budget; c.stop != nil {
			c.stop(&st.Stop)
		}
		if d := cmp.Diff(c.want, Short(st, nil, nil, second)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	st := makeStudy(1, 2)
	st.Budget.Time = time.Second
	if s := Short(st, []record.Skip{{Cell: st.Strata[0].Cells[1]}}, nil, second); s != nil {
		t.Errorf("nothing is compared: %+v", s)
	}
}
