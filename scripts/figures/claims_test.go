package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestMethodSaysWhatIsDrawn: the numbers in the words around the figures are
// those of the data, which the simulation holds (plan, TestFigures).
func TestMethodSaysWhatIsDrawn(t *testing.T) {
	raw, err := os.ReadFile("../../docs/method.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(raw)), " ")
	const called, cover = "equal things called different", "intervals that cover the truth"
	for _, c := range []struct {
		figure, panel, series string
		x                     float64
		says                  string // with the value, rounded
	}{
		{"drift", "in blocks", "ratio", 0, "B/A is %.3f,"},
		{"order", called, "A A A B B B", 0.95, "it calls %.0f of 100 equal things different"},
		{"order", cover, "A A A B B B", 0.95, "cover the truth in %.0f of 100"},
		{"order", cover, "fixed: 8, in blocks", 0.95, "as many trials cover in %.0f of 100"},
		{"order", cover, "default rule", 0.95, "default rule in %.0f."},
	} {
		v := value(t, c.figure, c.panel, c.series, c.x)
		if want := fmt.Sprintf(c.says, v); !strings.Contains(page, want) {
			t.Errorf("docs/method.md does not say %q", want)
		}
	}
	if r := value(t, "drift", "A A A B B B", "ratio", 0); !strings.Contains(page, fmt.Sprintf("finds B %.1f %% faster", 100*(1-r))) {
		t.Errorf("docs/method.md does not say how much faster B is: %.4f", r)
	}
	// How many blocks are needed: 80 % lies between the two.
	for _, c := range []struct {
		panel, series string
		few, enough   float64
	}{
		{"trials repeat to 2 %", "5 % slower", 4, 6},
		{"trials repeat to 5 %", "10 % slower", 4, 6},
		{"trials repeat to 2 %", "2 % slower", 16, math.Inf(1)},
		{"trials repeat to 5 %", "5 % slower", 16, math.Inf(1)},
	} {
		if v := value(t, "power", c.panel, c.series, c.few); v >= 80 {
			t.Errorf("%s, %s: %g blocks find %.1f %%, which is enough", c.panel, c.series, c.few, v)
		}
		if !math.IsInf(c.enough, 1) && value(t, "power", c.panel, c.series, c.enough) < 80 {
			t.Errorf("%s, %s: %g blocks are not enough", c.panel, c.series, c.enough)
		}
	}
}

func value(t *testing.T, figure, panel, series string, x float64) float64 {
	t.Helper()
	f, err := os.Open(images + "/method-" + figure + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points, err := read(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if p.panel == panel && p.series == series && p.x == x {
			return p.y
		}
	}
	t.Fatalf("%s has no point %s, %s, %g", figure, panel, series, x)
	return 0
}
