package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func testObjective() Objective { return Objective{Trials: 9, Exceed: 0.5, Confidence: 0.95} }

// queue is a server whose latency grows towards its capacity, as that of one queue does (M/M/1).
type queue struct{ capacity, scatter, drift float64 }

// limit is the objective: five times the latency without load, which the queue has at four fifths of its capacity.
const limit = 5.0

func (q queue) truth() float64 { return q.capacity * (1 - 1/limit) }

// seek searches on a queue, and returns the last step and the number of trials.
func seek(r *rand.Rand, q queue, loads []float64, blocks int) (Step, int) {
	var trials [][]Trial
	closed, made, common := make([]bool, len(loads)), 0, 0.0
	for {
		step := Seek(trials, loads, closed, testObjective())
		if step.Stage == Found || len(trials) == blocks {
			return step, made
		}
		row := make([]Trial, len(loads))
		for _, i := range step.Measure {
			common = 0.95*common + q.drift*r.NormFloat64()
			latency := 1 / max(1-loads[i]/q.capacity, 1e-3)
			row[i] = Missed
			if latency*math.Exp(q.scatter*r.NormFloat64()+common) < limit {
				row[i] = Met
			}
			made++
		}
		trials = append(trials, row)
	}
}

// geometric are loads with a ratio between neighbours.
func geometric(from, to, ratio float64) []float64 {
	var out []float64
	for x := from; x < to*1.0001; x *= ratio {
		out = append(out, x)
	}
	return out
}

// TestSeek: under noise, the load at which half of the trials miss the objective lies between the bounds of a finished search
// as often as the confidence says. A machine that drifts moves that load itself, by a few per cent during a search; it then lies
// between the bounds or next to them. The search takes far fewer trials than each load in as many blocks.
func TestSeek(t *testing.T) {
	loads := geometric(500, 32000, 1.1)
	for _, c := range []struct{ drift, outside float64 }{{0, 0.05}, {0.02, 0.1}} {
		outside, beyond, all, trials := 0, 0, 0, 0
		const seeks = 200
		for _, scatter := range []float64{0.05, 0.15, 0.3} {
			foundHere, outsideHere, beyondHere, trialsHere := 0, 0, 0, 0
			for seed := range uint64(seeks) {
				r := rand.New(rand.NewPCG(seed, 11))
				q := queue{1000 * math.Exp(3*r.Float64()), scatter, c.drift}
				step, n := seek(r, q, loads, 24)
				trialsHere += n
				if step.Stage != Found {
					continue
				}
				foundHere++
				if step.Answer < 0 || step.Upper != step.Answer+1 {
					t.Errorf("seed %d: bounds %d and %d", seed, step.Answer, step.Upper)
					continue
				}
				if x := q.truth(); x < loads[step.Answer] || x > loads[step.Upper] {
					outsideHere++
					if x < loads[step.Answer]/1.1 || x > loads[step.Upper]*1.1 {
						beyondHere++
					}
				}
			}
			t.Logf("drift %.2f, scatter %.2f: %d of %d found, %d outside of the bounds, %d by more than a load, %.1f trials of %d", c.drift, scatter, foundHere, seeks, outsideHere, beyondHere, float64(trialsHere)/seeks, 24*len(loads))
			all, outside, beyond, trials = all+foundHere, outside+outsideHere, beyond+beyondHere, trials+trialsHere
		}
		if float64(outside) > c.outside*float64(all) || float64(beyond) > 0.01*float64(all) {
			t.Errorf("drift %.2f: %d of %d outside of the bounds, %d by more than a load", c.drift, outside, all, beyond)
		}
		if all < seeks*3/2 {
			t.Errorf("drift %.2f: %d of %d found", c.drift, all, 3*seeks)
		}
		if trials > 3*seeks*50 {
			t.Errorf("drift %.2f: %.1f trials a search", c.drift, float64(trials)/(3*seeks))
		}
	}
}

// TestSeekEnds: a range in which every load meets the objective, or none, has one bound; a load that cannot be measured is no
// bound, and one that failed again and again is an upper bound.
func TestSeekEnds(t *testing.T) {
	loads := []float64{100, 200, 300, 400}
	for _, c := range []struct {
		name         string
		capacity     float64
		lower, upper int
	}{
		{"all meet it", 1e6, 3, -1},
		{"none meets it", 10, -1, 0},
		{"the second is the highest", 300, 1, 2},
	} {
		step, _ := seek(rand.New(rand.NewPCG(1, 1)), queue{capacity: c.capacity}, loads, 24)
		if step.Stage != Found || step.Answer != c.lower || step.Upper != c.upper || step.Sure < 0.95 || len(step.Measure) > 0 {
			t.Errorf("%s: %+v", c.name, step)
		}
	}
	m, n := Met, Missed
	trials := [][]Trial{{m, 0, 0, n}, {m, 0, 0, n}, {m, 0, 0, n}}
	for range 7 {
		trials = append(trials, []Trial{m, 0, 0, 0})
	}
	step := Seek(trials, loads, []bool{false, true, true, true}, testObjective())
	if step.Stage != Found || step.Answer != 0 || step.Upper != 3 {
		t.Errorf("with loads that cannot be measured: %+v", step)
	}
	for _, c := range []struct {
		trials  []Trial
		measure []int
	}{
		{[]Trial{0, n, n, n}, []int{0, 1}}, {[]Trial{m, m, 0, 0}, []int{1, 3}}, {[]Trial{m, 0, 0, n}, []int{0, 1, 3}}, {[]Trial{m, n, 0, n}, []int{0, 1}},
	} {
		if step := Seek([][]Trial{c.trials}, loads, make([]bool, 4), testObjective()); !slices.Equal(step.Measure, c.measure) {
			t.Errorf("after %v it measures %v, want %v", c.trials, step.Measure, c.measure)
		}
	}
	if step := Seek(nil, loads, []bool{true, true, true, true}, testObjective()); len(step.Measure) > 0 || step.Answer != -1 {
		t.Errorf("without loads: %+v", step)
	}
	if step := Seek(nil, geometric(500, 32000, 1.1), make([]bool, 44), testObjective()); len(step.Measure) < 6 || len(step.Measure) > 8 {
		t.Errorf("the first block measures %v", step.Measure)
	}
}

// TestLoadClassification: a load is a bound as soon as the rest of the Goal Duration Sum cannot change it, as Appendix A
// of RFC 9971 has it; later trials may invalidate it.
func TestLoadClassification(t *testing.T) {
	o := testObjective()
	for _, c := range []struct {
		met, missed int
		want        Bound
	}{
		{0, 0, Undecided}, {4, 0, Undecided}, {5, 0, LowerBound}, {5, 4, LowerBound}, {4, 4, Undecided}, {0, 4, Undecided},
		{0, 5, UpperBound}, {4, 5, UpperBound}, {5, 5, LowerBound}, {5, 6, UpperBound}, {20, 20, LowerBound},
	} {
		if got := o.bound(c.met, c.missed); got != c.want {
			t.Errorf("%d met, %d missed: %q, want %q", c.met, c.missed, got, c.want)
		}
	}
	strict := Objective{Trials: 5, Exceed: 0, Confidence: 0.95}
	for want, of := range map[Bound][2]int{Undecided: {4, 0}, LowerBound: {5, 0}, UpperBound: {4, 1}} {
		if got := strict.bound(of[0], of[1]); got != want {
			t.Errorf("without a missed trial: %v is %q, want %q", of, got, want)
		}
	}
	if got := []string{fmt.Sprintf("%.3f", o.sure(5, 0)), fmt.Sprintf("%.3f", o.sure(0, 5)), fmt.Sprintf("%.3f", o.sure(3, 3))}; !slices.Equal(got, []string{"0.984", "0.016", "0.500"}) {
		t.Errorf("probabilities %v", got)
	}
}
