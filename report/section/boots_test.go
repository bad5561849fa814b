package section

import (
	"slices"
	"testing"
	"time"

	"tare/analyse"
)

// TestBootsOfColdStarts: the table has a column for the size of the pulled image if any start was cold, and all rows have the same number of cells.
func TestBootsOfColdStarts(t *testing.T) {
	boot := func(pulled float64) analyse.Boot {
		return analyse.Boot{Starts: 6, Start: 3 * time.Second, Lo: 2 * time.Second, Hi: 4 * time.Second, Pulled: pulled, Phases: []analyse.PhaseTime{{Name: "pull", Trials: 6, Median: time.Second, Fine: time.Millisecond}}}
	}
	for _, c := range []struct {
		pulled []float64
		want   []string // of the first row of each start, the cell before its steps
	}{
		{[]float64{0, 0}, []string{"3.00 s", "3.00 s"}}, {[]float64{0, 66 << 20}, []string{"-", "66.0 MiB"}},
	} {
		r := &analyse.Result{}
		for _, p := range c.pulled {
			r.Boots = append(r.Boots, boot(p))
		}
		table := Boots(r).Blocks[0].Table
		at := slices.Index(table.Columns, Column{Head: "pull"}) - 1
		for i, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("%v: row %d: %+v, of %+v", c.pulled, i, row, table.Columns)
			}
		}
		for i, want := range c.want {
			if got := table.Rows[2*i][at].First; got != want {
				t.Errorf("%v: start %d: %q, want %q", c.pulled, i, got, want)
			}
		}
	}
}
