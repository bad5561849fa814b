package text

import (
	"strings"
	"testing"

	"tare/analyse/compare"
)

// TestRemedy: what is advised is what would help.
func TestRemedy(t *testing.T) {
	for _, c := range []struct {
		of    compare.Doubt
		want  string
		never string
	}{
		{compare.Doubt{Why: "failed"}, "find out why rows have no interval", "wider limit"},
		{compare.Doubt{Limit: 1}, "broken by any change, however small; give it a limit", "noisy"},
		{compare.Doubt{Limit: 1.05}, "too noisy for any number of blocks", "however small"},
		{compare.Doubt{Limit: 1.05, Blocks: 12}, "`fixed: 12`", "noisy"},
	} {
		if got := Remedy([]compare.Doubt{c.of}, "measure both sides"); !strings.Contains(got, c.want) || strings.Contains(got, c.never) {
			t.Errorf("%+v: %q", c.of, got)
		}
	}
}
