package record

import (
	"slices"
	"strings"
	"testing"
)

// FuzzLabels checks that MakeLabels and Pairs are inverse to each other, and that Pairs
// reads any text.
func FuzzLabels(f *testing.F) {
	f.Add("end", "server", "tid", "1", "end=server,tid=1")
	f.Add("a", `\,=`, "", "", `a\==\,,=\`)
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2, text string) {
		want := [][2]string{{name1, value1}, {name2, value2}}
		slices.SortStableFunc(want, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
		l := MakeLabels(name1, value1, name2, value2)
		if got := l.Pairs(); !slices.Equal(got, want) && name1 != name2 {
			t.Errorf("%q became %q, read as %q", want, l, got)
		}
		if name1 != name2 && (l.Get(name1) != value1 || l.Get(name2) != value2 || l != MakeLabels(name2, value2, name1, value1)) {
			t.Errorf("%q: %q and %q", l, l.Get(name1), l.Get(name2))
		}
		// Once read, it is written and read back unchanged.
		again := MakeLabels(flatten(Labels(text))...)
		if third := MakeLabels(flatten(again)...); third != again {
			t.Errorf("%q was read as %q, then as %q", text, again, third)
		}
	})
}

func flatten(l Labels) (out []string) {
	for _, p := range l.Pairs() {
		out = append(out, p[0], p[1])
	}
	return out
}
