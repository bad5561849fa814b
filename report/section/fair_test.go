package section

import (
	"testing"

	"tare/analyse"
)

// TestFairCopies: each side's copies are told with their nodes, once where both are alike.
func TestFairCopies(t *testing.T) {
	one := &analyse.Copies{Count: 1, AtOnce: 1, Most: 1, On: []string{"n1"}}
	for _, tt := range []struct {
		own, base *analyse.Copies
		want      string
	}{
		{&analyse.Copies{Count: 4, AtOnce: 2, Most: 2, On: []string{"n1", "n2"}}, one,
			"There were 4 copies on 2 nodes in each trial, 2 on each (n1 and n2), in the baseline 1 copy on 1 node in each trial (n1)"},
		{&analyse.Copies{Count: 3, AtOnce: 2, Most: 2, On: []string{"n1", "n2", "n3"}}, &analyse.Copies{Count: 3, AtOnce: 2, Most: 2, On: []string{"n1", "n2", "n3"}},
			"Both sides had 3 copies on 2 nodes in each trial, at most 2 on one (n1, n2 and n3)"},
		{&analyse.Copies{Count: 2, AtOnce: 2, Most: 1, On: []string{"n1", "n2"}}, &analyse.Copies{Count: 2, AtOnce: 1, Most: 2, On: []string{"n1", "n2"}},
			"There were 2 copies on 2 nodes in each trial, 1 on each (n1 and n2), in the baseline 2 copies on 1 node in each trial (n1 or n2)"},
		{&analyse.Copies{Count: 2, AtOnce: 2, Most: 1, On: []string{"n1", "n2"}, Shared: true}, nil,
			"There were 2 copies on 2 nodes in each trial, 1 on each (n1 and n2), in the baseline copies on unknown nodes; some of these nodes share a machine, so spreading the copies adds no hardware"},
		{&analyse.Copies{Count: 2, AtOnce: 1, Most: 2, On: []string{"n1"}}, nil, "There were 2 copies on 1 node in each trial (n1), in the baseline copies on unknown nodes"},
	} {
		if got := copies(&analyse.Certificate{Copies: tt.own, BaseCopies: tt.base}); got != tt.want {
			t.Errorf("%q\nwant %q", got, tt.want)
		}
	}
}
