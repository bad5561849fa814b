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
	out := g.render(Options{Width: 42})
	if n := strings.Count(out, words.TooFew); n != 1 || strings.Count(out, "\n") != 5 {
		t.Errorf("%d times %q:\n%s", n, words.TooFew, out)
	}
}
