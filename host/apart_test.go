package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSplit: ends share no core, whichever way the kernel numbers the threads of one.
func TestSplit(t *testing.T) {
	alone := func(c int) []int { return []int{c} }
	far := func(c int) []int { return []int{c % 4, c%4 + 4} }    // as most machines number them
	near := func(c int) []int { return []int{c &^ 1, c&^1 + 1} } // as some do
	for _, c := range []struct {
		cpus []int
		of   func(int) []int
		want []string // nil: too few cores
		n    int
	}{
		{[]int{0, 1}, alone, []string{"0", "1"}, 2},
		{[]int{0, 1, 2}, alone, []string{"0", "1,2"}, 2},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, far, []string{"0,1,4,5", "2,3,6,7"}, 2},
		{[]int{0, 1, 2, 3}, near, []string{"0,1", "2,3"}, 2},
		{[]int{1, 2, 3}, near, []string{"1", "2,3"}, 2}, // 0 may not be used
		{[]int{0, 1, 2, 3}, alone, []string{"0", "1", "2,3"}, 3},
		{[]int{4}, alone, nil, 2},
		{[]int{0, 1}, near, nil, 2},
	} {
		before := slices.Clone(c.cpus)
		got, err := split(c.cpus, c.of, c.n)
		if d := cmp.Diff(c.want, got); d != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%v in %d: %v (-want +got)\n%s", c.cpus, c.n, err, d)
		}
		if !slices.Equal(before, c.cpus) {
			t.Errorf("split changed its argument to %v", c.cpus)
		}
	}
}

// TestApartOfThisHost: what the host is given back is what a control group takes.
func TestApartOfThisHost(t *testing.T) {
	lists, err := place(t).Apart(1)
	if err != nil && !strings.Contains(err.Error(), "cpuset") {
		t.Fatal(err)
	}
	if err == nil && (len(lists) != 1 || lists[0] == "") {
		t.Errorf("one end gets %v", lists)
	}
	if _, err := place(t).Apart(100_000); err == nil || !strings.Contains(err.Error(), "has 100000 ends") {
		t.Errorf("100,000 ends: %s", fmt.Sprint(err))
	}
}
