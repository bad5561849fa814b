package cause

import (
	"slices"
	"testing"

	"tare/record"
)

// TestLoads: a stratum finds those with fewer operations under way, whichever of the load's factors they differ in.
func TestLoads(t *testing.T) {
	var strata []Stratum
	for _, l := range [][3]string{{"read", "1", "1"}, {"read", "1", "4"}, {"read", "4", "4"}, {"write", "1", "1"}, {"write", "4", "16"}} {
		strata = append(strata, Stratum{Finding: Finding{CellKey: record.CellKey{Shared: record.Cell{{Factor: "rw", Value: l[0]}, {Factor: "jobs", Value: l[1]}, {Factor: "iodepth", Value: l[2]}}}}})
	}
	fam := families(strata)
	for i, want := range [][]int{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {3, 4}, {3, 4}} {
		if !slices.Equal(fam[i].loads, want) {
			t.Errorf("stratum %d has %v beside it, want %v", i, fam[i].loads, want)
		}
	}
	if want := []int{1, 2}; !slices.Equal(fam[1].load, want) {
		t.Errorf("a line over the jobs has %v, want %v", fam[1].load, want)
	}
}
