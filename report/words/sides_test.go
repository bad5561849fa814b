package words

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/record"
)

// TestSides: a column is a level of the compared factor, unless the baseline's level has further treatments: then names tell all
// treatments apart, or the baseline from the others where there are too many.
func TestSides(t *testing.T) {
	many := []string{"process class=0"}
	for i := range 8 {
		many = append(many, fmt.Sprintf("process class=%d", i+1))
	}
	for name, tt := range map[string]struct {
		treatments []string // the baseline first
		want       []string // the baseline's name, and of each side its name and how many treatments it has
	}{
		"levels":  {[]string{"process", "runc", "vm vcpus=1", "vm vcpus=2"}, []string{"process", "runc 1", "vm 2"}},
		"classes": {[]string{"process class=none", "process class=local", "runc class=none", "runc class=local"}, []string{"process class=none", "process class=local 1", "runc class=none 1", "runc class=local 1"}},
		"many":    {append(many, "runc"), []string{"process class=0", "other process 9", "runc 1"}},
	} {
		r := &analyse.Result{Compare: "sandbox", Baseline: "process"}
		for i, text := range tt.treatments {
			box, more, _ := strings.Cut(text, " ")
			cell := record.Cell{{Factor: "sandbox", Value: box}}
			if factor, level, is := strings.Cut(more, "="); is {
				cell = append(cell, record.Level{Factor: factor, Value: level})
			}
			r.Treatments = append(r.Treatments, analyse.Treatment{Key: cell.Key(), Cell: cell, Baseline: i == 0})
			r.Compared = append(r.Compared, analyse.Comparison{Treatment: cell.Key(), Baseline: i == 0})
		}
		baseline, sides := Sides(r)
		got := []string{baseline}
		for _, k := range sides {
			got = append(got, fmt.Sprintf("%s %d", k.Name, len(k.Of)))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
