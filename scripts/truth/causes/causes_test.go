package causes

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRun prints the tables of docs/cause.md: TARE_TRUTH is how many of each, TARE_SEED
// the seed.
func TestRun(t *testing.T) {
	n, seed := 300, uint64(1)
	if v, err := strconv.Atoi(os.Getenv("TARE_TRUTH")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("TARE_SEED"), 10, 64); err == nil {
		seed = v
	}
	var b strings.Builder
	rep, err := Run(&b, seed, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	// A promise may be missed by chance: three standard deviations.
	hold := func(what string, got, of int, least float64) {
		n := float64(of)
		if share := float64(got) / n; share < least-3*math.Sqrt(least*(1-least)/n) {
			t.Errorf("%s: %.1f %% of %d, want %.0f %%", what, 100*share, of, 100*least)
		}
	}
	hold("named rightly, where all was read", rep.Full.Right, rep.Full.N, 0.95)
	hold("not named wrongly", rep.Known.N-rep.Known.Wrong, rep.Known.N, 0.99)
	hold("not named wrongly on a busy host", rep.Crowded.N-rep.Crowded.Wrong, rep.Crowded.N, 0.95)
	hold("foreign causes withheld", rep.Foreign.N-rep.Foreign.Wrong, rep.Foreign.N, 0.98)
	for _, x := range rep.Bins {
		if x.From >= 0.75 && x.Told >= 20 {
			hold(fmt.Sprintf("right of those told with %.2f", x.From), x.Right, x.Told, x.Promised/float64(x.Told))
		}
	}
	want := os.Getenv("TARE_WRONG")
	for _, c := range rep.Cases {
		if want != "" && (want == "all" || strings.Contains(c.Planted, want)) && !c.right() {
			t.Logf("seed %d %s left %.2f ratio %.3g costs %v: %s %v conf %.2f %s", c.Seed, c.Planted, c.Left, *c.Finding.Ratio, c.Finding.Costs, c.Finding.Cause, c.Finding.Among, c.Finding.Confidence, c.Finding.Text)
			for _, r := range c.Finding.Readings {
				t.Logf("      %s %s: %.3g", r.About, r.Name, r.Value)
			}
		}
	}
}
