package text

import (
	"strings"
	"testing"

	"tare/report/section"
	"tare/report/words"
)

// TestTooFew: in a table with two lines a row, a row of cells that all have too few blocks has one line. Their sign says it already.
func TestTooFew(t *testing.T) {
	few := section.Cell{First: "0.55 (?)", Second: words.TooFew}
	sure := section.Cell{First: "0.55 +", Second: "0.50–0.60"}
	name := section.Cell{First: strings.Repeat("x", 20)}
	g := grid{keys: 1, header: []string{"workload", "a", "b"}, rows: [][]section.Cell{{name, few, few}, {name, few, sure}}}
	out := g.render(Options{Width: 44})
	if n := strings.Count(out, words.TooFew); n != 1 || strings.Count(out, "\n") != 5 {
		t.Errorf("%d times %q:\n%s", n, words.TooFew, out)
	}
}

// TestHeaded: a grouped table that is too wide has the names of its groups on lines of their own, so that it stays one table.
func TestHeaded(t *testing.T) {
	row := func(cells ...string) []section.Cell {
		out := make([]section.Cell, len(cells))
		for i, c := range cells {
			out[i].First, out[i].Second, _ = strings.Cut(c, "|")
		}
		return out
	}
	g := grid{keys: 2, grouped: true, header: []string{"of", "step", "objects", "bound by"}, rows: [][]section.Cell{
		row("a load with a long name", "1", "20", "nodes 3/3"), row("a load with a long name", "2", "40", "nodes 1/3,|room 1/3, client 1/3"), row("another", "1", "5", "room 1/1")}}
	want := "step  objects              bound by\n-----------------------------------\n" +
		"a load with a long name\n1          20             nodes 3/3\n2          40            nodes 1/3,\n               room 1/3, client 1/3\nanother\n1           5              room 1/1\n"
	if got := g.render(Options{Width: 40}); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}
