package analyse

import (
	"testing"
	"time"
)

// TestShortage: what is missing is said in units that fit, and no time is made up.
func TestShortage(t *testing.T) {
	for want, s := range map[string]Shortage{
		"about 1 more block, 1 s":                             {Blocks: 1, Time: time.Millisecond},
		"about 14 more blocks, 6 min":                         {Blocks: 14, Time: 6 * time.Minute},
		"about 14 more blocks, 3 h":                           {Blocks: 14, Time: 150 * time.Minute},
		"about 47 more blocks":                                {Blocks: 47}, // imported trials have no durations
		"about 1 more block":                                  {Blocks: 1},
		"over 1000 more blocks, which is too many to measure": {Blocks: 132309, Time: 9000 * time.Hour},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
