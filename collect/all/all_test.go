package all

import (
	"testing"

	"tare/record"
)

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	series := map[string]string{}
	for _, c := range append(Collectors(), Counting()) {
		if seen[c.Name()] {
			t.Errorf("two collectors are called %s", c.Name())
		}
		seen[c.Name()] = true
		for _, r := range c.Series() {
			// Each collector says what it costs, apart by label.
			if other := series[r.Name]; other != "" && r.Name != record.CollectorCPU {
				t.Errorf("%s and %s both have the series %s", other, c.Name(), r.Name)
			}
			series[r.Name] = c.Name()
		}
	}
	if len(seen) == 0 {
		t.Error("the list is empty")
	}
}
