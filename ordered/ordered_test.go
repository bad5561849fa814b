package ordered

import (
	"fmt"
	"slices"
	"testing"
)

func TestAdd(t *testing.T) {
	if got := Add([]string{"b"}, "a", "b", "a", "c"); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Error(got)
	}
	if got := Add[int](nil); got != nil {
		t.Errorf("%v of nothing", got)
	}
}

func TestGroups(t *testing.T) {
	var g Groups[string, int]
	for i, k := range []string{"y", "x", "y", "z", "x"} {
		g.Add(k, i)
	}
	var got []string
	for k, of := range g.All() {
		got = append(got, fmt.Sprint(k, of))
		if k == "z" {
			break
		}
	}
	if want := []string{"y[0 2]", "x[1 4]", "z[3]"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if lists := fmt.Sprint(g.Lists()); lists != "[[0 2] [1 4] [3]]" {
		t.Error(lists)
	}
	for range (&Groups[int, int]{}).All() {
		t.Error("a group of nothing")
	}
}
