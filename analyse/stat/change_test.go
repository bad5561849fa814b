package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// These simulations hold what docs/method/drift.md says of the detector. Each draws some
// hundred sequences and fails for what chance does not explain; with
// TARE_SIMULATE=2000 in the environment it draws so many and prints the table.
func sequences(t *testing.T, n int) int {
	t.Helper()
	if s := os.Getenv("TARE_SIMULATE"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatalf("TARE_SIMULATE=%q: %v", s, err)
		}
	}
	return n
}

// noises are the shapes of a steady sentinel, of core deviation one.
func noises() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"normal": func(r *rand.Rand) float64 { return r.NormFloat64() },
		"Student's t, 3 df": func(r *rand.Rand) float64 {
			chi := 0.0
			for range 3 {
				z := r.NormFloat64()
				chi += z * z
			}
			return r.NormFloat64() / math.Sqrt(chi/3)
		},
		"one of 30 far off": func(r *rand.Rand) float64 {
			z := r.NormFloat64()
			if r.Float64() < 1.0/30 {
				z += 20
			}
			return z
		},
		"one of 10 late": func(r *rand.Rand) float64 {
			z := r.NormFloat64()
			if r.Float64() < 0.1 {
				z += 5 * math.Exp(0.7*r.NormFloat64())
			}
			return z
		},
	}
}

// TestSteadySequences: at most 1 % of steady sequences of 100 are seen to change,
// so that time and wait together stay at 2 %.
func TestSteadySequences(t *testing.T) {
	for name, noise := range noises() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(20261120, uint64(len(name))))
			const length = 100
			n := sequences(t, 1000)
			var at []int
			for range n {
				d := Detector{Floor: 0.02}
				for i := range length {
					if _, changed := d.Add(0.02 * noise(r)); changed {
						at = append(at, i)
						break
					}
				}
			}
			share, sd := float64(len(at))/float64(n), math.Sqrt(0.01*0.99/float64(n))
			t.Logf("%s: %.2f %% of %d sequences of %d change; within 25: %.2f %%", name, 100*share, n, length,
				100*float64(len(slices.DeleteFunc(slices.Clone(at), func(i int) bool { return i >= 25 })))/float64(n))
			if share > 0.01+4*sd {
				t.Errorf("%.2f %% of steady sequences are seen to change, want at most 1 %%", 100*share)
			}
		})
	}
}

// TestSteps: a step of 10 % in a sequence that scatters by 2 % is seen after five
// values in at least nine of ten, and told to the value.
func TestSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(20261120, 1))
	for _, before := range []int{6, 8, 10, 15, 25, 50} {
		n := sequences(t, 500)
		var seen [9]int
		right := 0
		for range n {
			d := Detector{Floor: 0.02}
			sign := math.Log(1.1)
			if r.IntN(2) == 0 {
				sign = -sign
			}
			for i := range before + 8 {
				y := 0.02 * r.NormFloat64()
				if i >= before {
					y += sign
				}
				if from, changed := d.Add(y); changed {
					for k := i - before + 1; k < len(seen) && i >= before; k++ {
						seen[k]++
					}
					if from == before {
						right++
					}
					break
				}
			}
		}
		share := func(k int) float64 { return float64(seen[k]) / float64(n) }
		t.Logf("after %d: seen after 3: %.1f %%, 4: %.1f %%, 5: %.1f %%, 6: %.1f %%, 8: %.1f %%; placed right %.1f %%", before,
			100*share(3), 100*share(4), 100*share(5), 100*share(6), 100*share(8), 100*float64(right)/float64(n))
		// Before ten values there is less to rank beside.
		within, sd := 5, math.Sqrt(0.9*0.1/float64(n))
		if before < 10 {
			within = 8
		}
		if share(within) < 0.9-4*sd {
			t.Errorf("after %d values a step is seen within %d in %.1f %%, want 90", before, within, 100*share(within))
		}
		if float64(right) < 0.8*float64(n) {
			t.Errorf("after %d values the place is right in %d of %d", before, right, n)
		}
	}
}

// TestOddValues: one or two odd values in a row are no change, however odd, at any
// place; nor is a step below the floor.
func TestOddValues(t *testing.T) {
	for _, odd := range []float64{-5, 0.1, 0.5, 30} {
		for at := range 40 {
			for _, run := range []int{1, 2} {
				d := Detector{Floor: 0.02}
				r := rand.New(rand.NewPCG(7, 7))
				for i := range 40 {
					y := 0.02 * r.NormFloat64()
					if i >= at && i < at+run {
						y += odd
					}
					if _, changed := d.Add(y); changed {
						t.Fatalf("%d values of %g at %d are a change", run, odd, at)
					}
				}
			}
		}
	}
	d := Detector{Floor: 0.02}
	for i := range 200 {
		y := 0.0001 * float64(i%7)
		if i >= 100 {
			y += 0.015
		}
		if _, changed := d.Add(y); changed {
			t.Fatal("a step below the floor is a change")
		}
	}
}

// TestNothingIsTakenBack: what is said of the first values does not depend on
// later ones; several steps are found each once; values that are not finite take
// a place and no part; a shift and a change of unit change nothing.
func TestNothingIsTakenBack(t *testing.T) {
	steps := []int{20, 45, 72}
	sequence := func(scale, shift float64) (places []int) {
		r := rand.New(rand.NewPCG(3, 3))
		d := Detector{Floor: 0.02 * scale}
		for i := range 100 {
			if i%13 == 5 {
				if _, changed := d.Add([]float64{math.NaN(), math.Inf(1)}[i%2]); changed {
					t.Fatal("a value that is none is a change")
				}
				continue
			}
			passed, _ := slices.BinarySearch(steps, i+1)
			level := 0.15 * float64(passed%2)
			from, changed := d.Add(scale*(level+0.01*r.NormFloat64()) + shift)
			if changed {
				if from > i || len(places) > 0 && from <= places[len(places)-1] {
					t.Fatalf("at %d a change at %d after %v", i, from, places)
				}
				places = append(places, from)
			}
		}
		return places
	}
	got := sequence(1, 0)
	if !slices.Equal(got, steps) {
		t.Errorf("changes at %v, want %v", got, steps)
	}
	if other := sequence(1000, -3); !slices.Equal(got, other) {
		t.Errorf("in another unit: %v, not %v", other, got)
	}
}

// TestMinSequence: no shorter sequence can change, and one so long can.
func TestMinSequence(t *testing.T) {
	first := math.MaxInt
	for before := minBefore; before < 40; before++ {
		d := Detector{}
		for i := range before + maxAfter {
			y := 1e-6 * float64(i%3)
			if i >= before {
				y++
			}
			if _, changed := d.Add(y); changed {
				first = min(first, i+1)
				break
			}
		}
	}
	if first != MinSequence {
		t.Errorf("the shortest sequence that changes has %d values, MinSequence is %d", first, MinSequence)
	}
}

func TestOneWay(t *testing.T) {
	// Two groups: F is the square of Student's t. By hand: means 1 and 3, variance
	// within 1, so t = 2/sqrt(2/3) with 4 degrees of freedom.
	if p := OneWay([][]float64{{0, 1, 2}, {}, {2, 3, 4}}); math.Abs(p-0.0705) > 0.0005 {
		t.Errorf("p = %g", p)
	}
	if p := OneWay([][]float64{{1, 2}, {1, 2}, {1, 2}}); math.Abs(p-1) > 1e-9 {
		t.Errorf("equal groups: %g", p)
	}
	if p := OneWay([][]float64{{1, 1, 1}, {2, 2}}); p != 0 {
		t.Errorf("constants apart: %g", p)
	}
	if p := OneWay([][]float64{{1, 1, 1}, {1, 1}}); p != 1 {
		t.Errorf("constants: %g", p)
	}
	for _, g := range [][][]float64{nil, {{1, 2, 3}}, {{1}, {2}}, {{1, 2}, {3}}} {
		if p := OneWay(g); !math.IsNaN(p) {
			t.Errorf("%v: %g, want no test", g, p)
		}
	}
	// Of equal groups one test in twenty is below 5 %.
	r := rand.New(rand.NewPCG(1, 9))
	below := 0
	for range 2000 {
		g := make([][]float64, 3)
		for i := range g {
			for range 2 + 2*i {
				g[i] = append(g[i], r.NormFloat64())
			}
		}
		if OneWay(g) < 0.05 {
			below++
		}
	}
	if below < 60 || below > 140 {
		t.Errorf("%d of 2000 below 5 %%", below)
	}
}
