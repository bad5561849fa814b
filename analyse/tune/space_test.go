package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// terrain is how a value depends on the levels of several factors, from 0.
type terrain struct {
	name string
	size []int
	at   func(x []float64) float64
}

func terrains() []terrain {
	rising := func(x, scale float64) float64 { return 1 - 0.7*math.Exp(-x/scale) }
	peak := func(x, top, width float64) float64 { return math.Exp(-math.Abs(math.Log((1+x)/(1+top))) / width) }
	hill := func(x, y, cx, cy, width float64) float64 { return math.Exp(-((x-cx)*(x-cx) + (y-cy)*(y-cy)) / width) }
	return []terrain{
		{"additive", []int{12, 8}, func(x []float64) float64 { return rising(x[0], 3) + 0.5*rising(x[1], 2) }},
		{"ridge", []int{12, 12}, func(x []float64) float64 {
			along, across := x[0]+x[1]-13, x[0]-x[1]-1
			return (0.4 + 0.6*math.Exp(-along*along/80)) * math.Exp(-across*across/12)
		}},
		{"saturating", []int{12, 8}, func(x []float64) float64 { return min(0.25*(x[0]+1), 0.34*(x[1]+1), 1) }},
		{"peaked", []int{12, 8}, func(x []float64) float64 { return peak(x[0], 5, 2) * peak(x[1], 2, 3) }},
		{"flat", []int{12, 8}, func([]float64) float64 { return 1 }},
		{"two peaks", []int{17, 17}, func(x []float64) float64 {
			return 0.3 + 0.4*hill(x[0], x[1], 3, 3, 10) + 0.6*hill(x[0], x[1], 12, 12, 20)
		}},
		{"few", []int{4, 3}, func(x []float64) float64 { return min(0.3*(x[0]+1), 0.6*(x[1]+1), 1) }},
		{"three factors", []int{6, 5, 4}, func(x []float64) float64 { return rising(x[0], 2) * peak(x[1], 2, 3) * rising(x[2], 1) }},
	}
}

// cells are the places of all cells, and their true shares of the best.
func (s terrain) cells() (at [][]int, shares []float64) {
	at = [][]int{nil}
	for _, n := range s.size {
		var next [][]int
		for _, a := range at {
			for p := range n {
				next = append(next, append(slices.Clone(a), p))
			}
		}
		at = next
	}
	for _, a := range at {
		x := make([]float64, len(a))
		for f, p := range a {
			x[f] = float64(p)
		}
		shares = append(shares, s.at(x))
	}
	best := slices.Max(shares)
	for i := range shares {
		shares[i] /= best
	}
	return at, shares
}

// TestFindsSeveral: on surfaces over two and three factors, additive and interacting, the answer is seldom more than
// the margin below what it must reach, and takes far fewer trials than 16 blocks of all cells. A clear answer was
// confirmed against the cells one step below it in each factor.
func TestFindsSeveral(t *testing.T) {
	for _, g := range []Goal{{Reach: 0.9, Margin: 0.03, Confidence: 0.95}, {Reach: 1, Margin: 0.03, Confidence: 0.95}} {
		t.Run(fmt.Sprint(g.Reach), func(t *testing.T) {
			t.Parallel()
			findsSeveral(t, g)
		})
	}
}

func findsSeveral(t *testing.T, g Goal) {
	tunes := 9
	if testing.Short() {
		tunes = 3
	}
	bad, badFound, all, trials, exhaustive, found := 0, 0, 0, 0, 0, 0
	for _, s := range terrains() {
		at, shares := s.cells()
		grid := Grid{At: at, Closed: make([]bool, len(at))}
		badHere, trialsHere, foundHere := 0, 0, 0
		for seed := range uint64(tunes) {
			step, n := find(rand.New(rand.NewPCG(seed, 7)), shares, grid, g, []float64{0.01, 0.03, 0.06}[seed%3], 0.02, 32)
			below := shares[step.Answer] < g.share()-0.03
			if below {
				badHere++
			}
			trialsHere += n
			if step.Stage != Found {
				continue
			}
			foundHere++
			if below {
				badFound++
			}
			for f := range s.size {
				next := slices.Clone(at[step.Answer])
				next[f]--
				if i := slices.IndexFunc(at, func(a []int) bool { return slices.Equal(a, next) }); i >= 0 && step.Levels[i].Blocks == 0 {
					t.Errorf("%s, seed %d: %v is the answer, and %v was not measured", s.name, seed, at[step.Answer], next)
				}
			}
		}
		t.Logf("reach %.2f, %s: %d of %d bad, %d found, %.1f trials of %d", g.Reach, s.name, badHere, tunes, foundHere, float64(trialsHere)/float64(tunes), 16*len(at))
		bad, all, trials, exhaustive, found = bad+badHere, all+tunes, trials+trialsHere, exhaustive+tunes*16*len(at), found+foundHere
	}
	if float64(bad) > 0.02*float64(all) {
		t.Errorf("reach %.2f: %d of %d answers are more than 3 %% below", g.Reach, bad, all)
	}
	if saved := 1 - float64(trials)/float64(exhaustive); saved < 0.75 {
		t.Errorf("reach %.2f: %.0f %% of the trials saved", g.Reach, 100*saved)
	}
	t.Logf("reach %.2f: %d of %d bad, %d found, %d of them bad, %.0f %% saved", g.Reach, bad, all, found, badFound, 100-100*float64(trials)/float64(exhaustive))
}

// TestGrid: cells that cannot be measured are never asked for, wherever they are; the lowest of cells that are as
// good is the one with the fewest steps, and of as many the one that is lower in the first factor.
func TestGrid(t *testing.T) {
	at, _ := terrain{size: []int{9, 7}, at: func([]float64) float64 { return 1 }}.cells()
	found := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		closed := make([]bool, len(at))
		for i := range closed {
			closed[i] = r.IntN(3) == 0
		}
		truth := make([]float64, len(at))
		lowest := -1
		for i, a := range at {
			truth[i] = 0.5
			if a[0]+a[1] >= 5 && !closed[i] {
				truth[i] = 1
				if lowest < 0 || a[0]+a[1] < at[lowest][0]+at[lowest][1] {
					lowest = i // the first factor rises slowest in at
				}
			}
		}
		grid := Grid{At: at, Closed: closed}
		step, _ := find(r, truth, grid, Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}, 0.005, 0, 16)
		for i, l := range step.Levels {
			if closed[i] && l.Blocks > 0 {
				t.Fatalf("seed %d: %v was measured", seed, at[i])
			}
		}
		if truth[step.Answer] != 1 {
			t.Errorf("seed %d: %s, %v, not %v", seed, step.Stage, at[step.Answer], at[lowest])
		}
		if step.Stage == Found {
			found++
		}
	}
	if found < 17 {
		t.Errorf("%d of 20 are found", found)
	}
	if step := Next([][]float64{{1, 2}}, Grid{Closed: []bool{true, true}}, Goal{Reach: 0.9, Confidence: 0.95}); step.Answer != -1 || len(step.Measure) > 0 {
		t.Errorf("of no cell: %+v", step)
	}
	small, _ := terrain{size: []int{3, 3}, at: func([]float64) float64 { return 1 }}.cells()
	values := [][]float64{}
	for range 4 {
		values = append(values, []float64{0.5, 0.5, 1, 0.5, 1, 1, 1, 1, 1})
	}
	if step := Next(values, Grid{At: small, Closed: make([]bool, 9)}, Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}); step.Answer != 2 {
		t.Errorf("the lowest is %v, want 0 and 2, which has as few steps as 1 and 1", small[max(step.Answer, 0)])
	}
}

// TestNear: a search that begins near an answer measures that, what is one step from it, the best and one cell far away, and
// goes on beyond them while the answer is at their edge. A grid that the screen has whole begins with the screen.
func TestNear(t *testing.T) {
	goal := Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}
	at, _ := terrain{size: []int{9, 7}, at: func([]float64) float64 { return 1 }}.cells()
	for _, c := range []struct {
		grid Grid
		want []int
	}{
		{Grid{Closed: make([]bool, 17), Near: []int{4, 6}}, []int{3, 4, 5, 6, 16}},
		{Grid{Closed: make([]bool, 17), Near: []int{0, 0}}, []int{0, 1, 16}},
		{Grid{Closed: make([]bool, 17), Near: []int{16, 1}}, []int{1, 8, 15, 16}},
		{Grid{Closed: make([]bool, 17)}, []int{0, 1, 2, 4, 8, 16}},
		{Grid{Closed: make([]bool, 6), Near: []int{2}}, []int{0, 1, 2, 3, 4, 5}},
		{Grid{Closed: append([]bool{false, false, false, true}, make([]bool, 13)...), Near: []int{3, 3}}, []int{0, 1, 2, 5, 9, 16}},
		{Grid{At: at, Closed: make([]bool, len(at)), Near: []int{7*2 + 3, 7*2 + 3}}, []int{7*1 + 3, 7*2 + 2, 7*2 + 3, 7*2 + 4, 7*3 + 3, 7*8 + 0}},
	} {
		step := Next(nil, c.grid, goal)
		if !slices.Equal(step.Measure, c.want) {
			t.Errorf("%d cells near %v: %v, want %v", len(c.grid.Closed), c.grid.Near, step.Measure, c.want)
		}
	}
	for name, best := range map[string]int{"low": 1, "high": 13, "near": 5} {
		truth := make([]float64, 17)
		for i := range truth {
			truth[i] = math.Exp(-0.15 * math.Abs(float64(i-best)))
		}
		step, n := find(rand.New(rand.NewPCG(1, 1)), truth, Grid{Closed: make([]bool, 17), Near: []int{5, 5}}, Goal{Reach: 1, Margin: 0.03, Confidence: 0.95}, 0.005, 0, 16)
		if step.Stage != Found || step.Answer != best {
			t.Errorf("%s: %s %d after %d trials, want %d", name, step.Stage, step.Answer, n, best)
		}
	}
}
