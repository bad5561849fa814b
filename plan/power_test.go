package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSimulatedPower counts how often slowdowns of 2, 5 and 10 % are found, with
// the default margin and width and with finer ones, on a machine that drifts.
// The test holds what a user may count on: a slowdown well over the scatter is
// found, and none is taken for a gain more often than the level allows.
func TestSimulatedPower(t *testing.T) {
	studies, long, seed := settings(t)
	var rows []string
	for _, noise := range []float64{0.01, 0.02, 0.05} {
		for _, rule := range []struct{ margin, width float64 }{{0.03, 0.015}, {0.01, 0.005}} {
			row := fmt.Sprintf("| %.0f %% | margin %.0f %%, width %.1f %% ", 100*noise, 100*rule.margin, 100*rule.width)
			last := 0.0
			for _, slow := range []float64{0.02, 0.05, 0.1} {
				sc := scenery{name: "power", rho: 0.95, drift: 0.02, noise: noise, strata: 6, treats: 4}
				r := rand.New(rand.NewPCG(seed, uint64(1e4*noise+100*slow)))
				var s score
				for range max(studies/3, 1) {
					st := makeStudy(sc.strata, sc.treats+1)
					st.Seed, st.Stop.Margin, st.Stop.Width = r.Uint64(), rule.margin, rule.width
					truth := make([][]float64, sc.strata)
					for i := range truth {
						for range sc.treats {
							truth[i] = append(truth[i], math.Log1p(slow))
						}
					}
					sc.start(r, truth).play(st, &s)
				}
				row += fmt.Sprintf("| %s / %s / %.1f ", &s.slower, &s.equal, s.trials/s.cells)
				atMost(t, fmt.Sprintf("%g slower at noise %g called faster", slow, noise), &s.faster, 0.025)
				power := s.slower.share()
				if slow == 0.1 && noise < 0.03 && power < 0.95 {
					t.Errorf("10 %% slower at noise %g is found in %s", noise, &s.slower)
				}
				if power < last-s.slower.error4(power) {
					t.Errorf("noise %g, margin %g: %g slower is found less often than a smaller slowdown", noise, rule.margin, slow)
				}
				last = power
			}
			rows = append(rows, row+"|")
		}
	}
	t.Logf("noise, rule, then called slower / equivalent / blocks at 2, 5 and 10 %%:\n%s", strings.Join(rows, "\n"))
	if long {
		fmt.Printf("%s\n\n", strings.Join(rows, "\n"))
	}
}
