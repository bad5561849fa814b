package plot

import (
	"slices"
	"strings"
	"testing"
)

// TestLate: bars and cells of a value that is a lower bound have the sign >, and the caption and the words for screen readers say it.
func TestLate(t *testing.T) {
	for _, kind := range []Graph{Bar, Heat} {
		for _, late := range []bool{false, true} {
			src := sizes().source()
			for i := range src.Result.Compared {
				src.Result.Compared[i].Level.AtLeast = late && i == 0
			}
			f := build(t, src, Options{By: []string{"size", "sandbox"}, Kind: kind, Value: Level})[0]
			d := recordFigure(t, &f, light())
			sign := slices.ContainsFunc(d.texts, func(w written) bool { return strings.HasPrefix(w.text, ">") })
			said := strings.Contains(f.Caption, "1 cell with > or <: pods or claims did not get there")
			if spoken := strings.Contains(f.Alt, ": > "); sign != late || said != late || spoken != late {
				t.Errorf("%s, late %t: the sign is drawn: %t, said: %t, spoken: %t; %s", kind, late, sign, said, spoken, f.Caption)
			}
		}
	}
}
